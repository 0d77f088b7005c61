// The search for an account's payments by a node's block filters, on a node that takes long: by the real RPC, from a server that takes a
// while for each block.
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { afterEach, expect, test } from 'vitest';
import { utxoRow } from '../../src/core/currency.ts';
import { createUtxoNode, type UtxoNode } from '../../src/outside/utxo/node/node.ts';
import { scanAccount } from '../../src/worker/rescan/account-scan.ts';

type Call = { readonly id: number; readonly method: string; readonly params: readonly unknown[] };
type Refusal = { readonly code: number; readonly message: string };

const TIP = 'ab'.repeat(32);
const HEIGHT = 400;
const open: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of open.splice(0)) await close();
});

/** A node that takes a millisecond for each block whose filter it searches; `ranges` are the numbers of blocks that it was asked for. */
async function slowNode(refusal: Refusal | null = null): Promise<{ node: UtxoNode; ranges: number[] }> {
  const ranges: number[] = [];
  async function answer({ id, method, params }: Call): Promise<object> {
    const of = (result: unknown) => ({ result, error: null, id });
    if (method === 'getblockchaininfo') return of({ blocks: HEIGHT, headers: HEIGHT, bestblockhash: TIP });
    if (method === 'getblockhash') return of(params[0] === 0 ? utxoRow('BTC').utxo.genesis.regtest : TIP);
    if (method === 'getblockheader') return of({ time: Math.floor(Date.now() / 1000) });
    if (method === 'getrawmempool') return of([]);
    if (method !== 'scanblocks') return of(1);
    if (refusal !== null) return { result: null, error: refusal, id };
    const blocks = (params[3] as number) - (params[2] as number) + 1;
    ranges.push(blocks);
    await delay(blocks);
    return of({ relevant_blocks: [] });
  }
  async function serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const parts: Buffer[] = [];
    for await (const part of request) parts.push(part as Buffer);
    const asked = JSON.parse(Buffer.concat(parts).toString()) as Call | Call[];
    response.end(JSON.stringify(Array.isArray(asked) ? await Promise.all(asked.map(answer)) : await answer(asked)));
  }
  const server = createServer((request, response) => void serve(request, response));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const url = `http://u:p@127.0.0.1:${(server.address() as AddressInfo).port}`;
  const node = createUtxoNode({ currency: 'BTC', url, network: 'regtest', clock: { now: () => Date.now() } });
  open.push(async () => {
    await node.close();
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });
  return { node, ranges };
}

const scriptOf = (_chain: 0 | 1, index: number): Uint8Array | null => (index < 10 ? Buffer.from([0, 20, index]) : null);

test('a node that needs long for its filters is asked for as many blocks at once as it answers in time', async () => {
  const { node, ranges } = await slowNode();
  const use = await scanAccount(node, { scriptOf, fromHeight: 0, answerMs: 20 });
  expect(use).toMatchObject({ by: 'filters', receive: null });
  const [probe, ...asked] = ranges;
  expect(probe).toBe(1);
  expect(asked.reduce((sum, one) => sum + one, 0)).toBe(HEIGHT + 1);
  expect(Math.max(...asked.slice(1))).toBeLessThanOrEqual(40);
});

test('a search that is refused, although there are filters, is not taken for a node without them', async () => {
  const { node } = await slowNode({ code: -8, message: 'Scan already in progress, use action "abort" or "status"' });
  await expect(scanAccount(node, { scriptOf, fromHeight: 0 })).rejects.toThrow(/Scan already in progress/);
});
