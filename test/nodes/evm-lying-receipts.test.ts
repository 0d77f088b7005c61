// The node that is read lies about our own transactions under block hashes that every node has: what would give money back is asked of all of them.
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { requestTokenPayout } from '../../src/flow/evm/request.ts';
import { closeServer, listen } from '../../src/sandbox/server.ts';
import { openBreakers } from '../../src/store/ledger/breakers.ts';
import { readPayout } from '../../src/store/payouts/reads.ts';
import { type EvmService, openEvmService } from './evm-service.ts';

const TIMEOUT = 300_000;
const PAYEE = `0x${'a9'.repeat(20)}`;
const FINAL = 70;
type Answer = { id: number; result?: unknown };
type Receipt = { transactionHash: string; status: string; logs: unknown[] };
let server: Server;
let service: EvmService;
/** The transactions that have failed, as the first node says. */
const denied = new Set<string>();

const lying = (receipt: Receipt): Receipt =>
  denied.has(receipt.transactionHash) ? { ...receipt, status: '0x0', logs: [] } : receipt;
function changed({ id, result, ...rest }: Answer): object {
  const of = (one: unknown): unknown =>
    typeof one === 'object' && one !== null && 'transactionHash' in one && 'status' in one ? lying(one as Receipt) : one;
  return { id, ...rest, ...(result === undefined ? {} : { result: Array.isArray(result) ? result.map(of) : of(result) }) };
}
/** Passes everything on, and changes receipts. */
async function through(url: string): Promise<string> {
  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const parts: Buffer[] = [];
    for await (const part of request) parts.push(part as Buffer);
    const honest = await fetch(url, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: Buffer.concat(parts),
    });
    const all = (await honest.json()) as Answer | Answer[];
    response.setHeader('content-type', 'application/json');
    response.end(JSON.stringify(Array.isArray(all) ? all.map(changed) : changed(all)));
  }
  server = createServer((request, response) => void answer(request, response));
  return `http://127.0.0.1:${await listen(server, 0)}`;
}

beforeAll(async () => {
  service = await openEvmService({ through, alsoDirectly: true });
  const { address } = await service.owe('USDT', 300_00n);
  await service.pay('USDT', address, 300_000_000n);
  await service.mine(FINAL);
}, TIMEOUT);
afterAll(async () => {
  await service?.close();
  if (server !== undefined) await closeServer(server);
}, TIMEOUT);

test('a payout that has paid, says one of them, is not given back for another’s failed receipt: payouts stop', {
  timeout: TIMEOUT,
}, async () => {
  const { ctx, merchantId, db } = service;
  await service.price();
  const { id } = await requestTokenPayout(ctx, { merchantId, amount: '50', destination: PAYEE });
  await service.work(30_000);
  const { rows } = await db.query<{ txid: string }>({ text: 'select txid from outgoing_attempts' });
  for (const { txid } of rows) denied.add(txid);
  await service.mine(FINAL);
  await service.work(61_000);
  expect(await readPayout(db, id)).toMatchObject({ status: 'processing', error: null });
  const [open] = await openBreakers(db);
  expect(open?.findings.join()).toMatch(/has paid, says a node of ours, and the one that is read says/);
  await service.work(61_000);
  expect(await readPayout(db, id)).toMatchObject({ status: 'processing', error: null });
});
