// A server that answers as a node would not, for the tests of what goes wrong with a node; each is closed after its test.
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach } from 'vitest';
import { createUtxoNode, type UtxoNode } from '../../src/outside/utxo/node/node.ts';

export const GENESIS = '0f9188f13cb7b2c71f2a335e3a4fc328bf5beb436012afca590b1a11466e2206';
export const TIP = 'ab'.repeat(32);
export const nothing = { hasScript: () => false, hasOutpoint: () => false, fresh: async () => undefined };
export const clock = { now: () => Date.now() };
/** What a test has opened besides. */
export const opened: (() => Promise<unknown>)[] = [];
/** Registers the hook that closes what a test has opened. */
export function closeAfterEach(): void {
  afterEach(async () => {
    for (const close of opened.splice(0)) await close();
  });
}

export type Reply = (request: IncomingMessage, body: string, response: ServerResponse) => unknown;
export type Answers = Readonly<Record<string, unknown>>;

/** A node with the given answers. */
export async function badNode(
  reply: Reply,
  network: 'regtest' | 'mainnet' = 'regtest',
  currency: 'BTC' | 'BCH' = 'BTC',
): Promise<UtxoNode & { readonly url: string }> {
  const server = createServer((request, response) => {
    let body = '';
    request.on('data', (part) => {
      body += part;
    });
    request.on('end', () => void reply(request, body, response));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const url = `http://user:secret@127.0.0.1:${(server.address() as AddressInfo).port}`;
  const node = createUtxoNode({ currency, url, network, clock, silenceMs: 500 });
  opened.push(async () => {
    await node.close();
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });
  return { ...node, url };
}

type Call = { readonly id: unknown; readonly method: string; readonly params?: readonly unknown[] };

/** Answers each call of a request out of a table; one that is answered by its parameter has a map of its own. */
export function fromTable(answers: Answers): Reply {
  return (_, body, response) => {
    const one = (call: Call) => {
      const answer = answers[call.method];
      const result = answer instanceof Map ? answer.get(call.params?.[0]) : answer;
      return result === undefined
        ? { id: call.id, result: null, error: { code: answer instanceof Map ? -8 : -32601, message: 'refused' } }
        : { id: call.id, result, error: null };
    };
    const calls = JSON.parse(body) as Call[] | Call;
    response.end(JSON.stringify(Array.isArray(calls) ? calls.map(one) : one(calls)));
  };
}

export const info = { blocks: 7, headers: 7, bestblockhash: TIP, initialblockdownload: false };
export const blocks = (genesis: string, ...more: [number, string][]) =>
  new Map<unknown, string>([[0, genesis], [7, TIP], ...more]);
export const sound: Answers = {
  getblockchaininfo: info,
  getblockhash: blocks(GENESIS),
  getconnectioncount: 8,
  getblockheader: { time: Math.floor(Date.now() / 1000) },
};
