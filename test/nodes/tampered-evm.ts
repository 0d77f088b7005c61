// An Ethereum node whose answers a test changes, refuses or counts, and a watcher on it.
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { afterAll, afterEach, beforeAll, beforeEach } from 'vitest';
import { createServedEvm, type ServedEvm } from '../../src/sandbox/evm/served-evm.ts';
import { closeServer, listen } from '../../src/sandbox/server.ts';
import { post } from '../support/post.ts';
import { addressOf, type Owed, type WatchedChain, watchChain } from './watched-chain.ts';

export const TOKEN = '0x5fbdb2315678afecb367f032d93f642f64180aa3';

export type Call = { readonly method: string; readonly params: readonly unknown[] };
export type Answer = { result?: unknown; error?: { code: number; message: string } };
/** Changes an answer of the node, or gives another. */
export type Tamper = (call: Call, answer: Answer) => Answer;
export const refuse =
  (code: number, message: string, ...methods: readonly string[]): Tamper =>
  ({ method }, answer) =>
    methods.includes(method) ? { error: { code, message } } : answer;

const JSON_BODY = { 'content-type': 'application/json' };

/** Serves one for the tests of a file; nothing is changed at the beginning of each. */
export function withTamperedEvm() {
  let server: Server;
  let isOpen = false;
  const evm = {
    honest: null as unknown as ServedEvm,
    url: '',
    tamper: ((_call, answer) => answer) as Tamper,
    /** What is answered to the calls of one request as a whole (null: each is answered). */
    whole: ((_calls) => null) as (calls: readonly Call[]) => Answer | readonly (Answer & { readonly id: number })[] | null,
    /** The methods of each request. */
    requests: [] as string[][],
    /** Statuses to answer instead, one a request. */
    statuses: [] as { readonly status: number; readonly headers: Record<string, string> }[],
    chain: null as unknown as WatchedChain,
    async watch(currency: 'ETH' | 'USDT'): Promise<Owed> {
      evm.chain = await watchChain(currency, evm.url, { contract: currency === 'USDT' ? TOKEN : null });
      isOpen = true;
      await evm.chain.catchUp();
      return evm.chain.owe();
    },
    pay: (currency: 'ETH' | 'USDT', owed: Owed, minor = 5_000_000n): string =>
      evm.honest.pay(currency, [{ to: addressOf(owed), minor }], null)?.hash as string,
  };
  beforeAll(async () => {
    evm.honest = await createServedEvm({ folder: null, now: () => Date.now() });
    server = createServer((request, response) => void answer(request, response));
    async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
      const parts: Buffer[] = [];
      for await (const part of request) parts.push(part as Buffer);
      const instead = evm.statuses.shift();
      if (instead !== undefined) return void response.writeHead(instead.status, instead.headers).end('slow down');
      const asked = JSON.parse(Buffer.concat(parts).toString('utf8')) as (Call & { id: number }) | (Call & { id: number })[];
      evm.requests.push([asked].flat().map(({ method }) => method));
      const whole = Array.isArray(asked) ? evm.whole(asked) : null;
      if (whole !== null)
        return void response
          .writeHead(200, JSON_BODY)
          .end(JSON.stringify('length' in whole ? whole : { jsonrpc: '2.0', id: null, ...whole }));
      const authorization = `Basic ${Buffer.from('bursar:simulated').toString('base64')}`;
      const { origin, pathname } = new URL(evm.honest.url);
      const honestAnswer = await post(origin + pathname, JSON.stringify(asked), { authorization });
      const answers = [JSON.parse(honestAnswer.text)].flat() as (Answer & { id: number })[];
      const changed = answers.map(({ id, ...answer }) => {
        const call = [asked].flat().find((one) => one.id === id) as Call;
        return { jsonrpc: '2.0', id, ...evm.tamper(call, answer) };
      });
      response.writeHead(200, JSON_BODY).end(JSON.stringify(Array.isArray(asked) ? changed : changed[0]));
    }
    evm.url = `http://127.0.0.1:${await listen(server, 0)}/key-in-the-path`;
  });
  afterAll(async () => {
    await closeServer(server);
    await evm.honest.stop();
  });
  beforeEach(() => {
    evm.tamper = (_call, answer) => answer;
    evm.whole = () => null;
    evm.statuses = [];
    evm.requests = [];
  });
  afterEach(async () => {
    if (isOpen) await evm.chain.close();
    isOpen = false;
  });
  return evm;
}
