// A Dogecoin or Dash node for tests: its JSON-RPC (and Dash's ZMQ) in front of a real bitcoind on regtest without segwit, which checks signatures,
// double spends, fees, replacement, blocks and reorganisations. What it proves is our client and our accounting, not the daemons' own
// consensus: for that the same suite runs against a real one (DOGE_RPC_URL, DASH_RPC_URL).
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { Publisher } from 'zeromq';
import { bitcoindPath } from '../bitcoind.ts';
import { type CoreDaemon, freePort, startCoreDaemon } from '../core-daemon.ts';
import { post } from '../post.ts';
import { addressBook } from './addresses.ts';
import { type Answer, answerOf, type Below, type DialectState, learnTip } from './answers.ts';
import { DASH, type DialectCurrency, DOGE, SHARED_ARGUMENTS } from './currencies.ts';
import { headerMap } from './headers.ts';
import { createLocks } from './locks.ts';
import { numberOf, readJson, writeJson } from './lossless.ts';

export type DialectNode = {
  /** What it plays, and on what. */
  readonly version: string;
  readonly url: string;
  /** A call to its own interface; throws with the node's text. */
  rpc<T = unknown>(method: string, ...params: unknown[]): Promise<T>;
  /** A call to the bitcoind below. */
  readonly below: CoreDaemon;
  /** DASH: every new transaction and block is locked at once. */
  lockAll(always: boolean): void;
  /** DASH: locks one transaction, or the chain up to a height. */
  lockTransaction(txid: string): Promise<void>;
  lockChain(height: number): void;
  /** A block with exactly these raw transactions; refused when one of them is the rival of a locked one. */
  mineExactly(raw: readonly string[]): Promise<void>;
  mine(blocks: number): Promise<void>;
  stop(): Promise<void>;
  start(): Promise<void>;
  remove(): Promise<void>;
};

const USER = 'user:pa%ss';
const AUTHORIZATION = `Basic ${Buffer.from(USER).toString('base64')}`;

export async function startDialect(currency: DialectCurrency): Promise<DialectNode> {
  const facts = currency === 'DOGE' ? DOGE : DASH;
  const zmqPorts = currency === 'DASH' ? { tx: await freePort(), block: await freePort() } : null;
  const args = [...SHARED_ARGUMENTS, ...facts.arguments];
  const below = await startCoreDaemon({ binary: bitcoindPath(), name: currency.toLowerCase(), args, zmq: false });
  const state: DialectState = {
    facts,
    below: callBelow(below.url),
    headers: headerMap(facts, async (hash) => Buffer.from(await below.rpc<string>('getblockheader', hash, false), 'hex')),
    addresses: addressBook(facts),
    locks: createLocks(),
    zmq: zmqPorts && [
      { topic: 'rawtx', address: `tcp://127.0.0.1:${zmqPorts.tx}` },
      { topic: 'hashblock', address: `tcp://127.0.0.1:${zmqPorts.block}` },
    ],
  };
  const port = await freePort();
  const announcer = zmqPorts === null ? null : await announce(zmqPorts);
  const ask: Below = async (method, params) => {
    const answer = await answerOf(state, method, params);
    if ('result' in answer) await afterCall(state, announcer, method, answer.result);
    return answer;
  };
  let server = await serve(ask, port);
  const rpc = async <T>(method: string, ...params: unknown[]): Promise<T> => {
    const answer = await ask(method, params);
    if ('error' in answer) throw new Error(`${method}: ${answer.error.message} (${answer.error.code})`);
    return JSON.parse(writeJson(answer.result)) as T;
  };

  return {
    version: `${facts.subversion.replaceAll('/', '')} dialect over ${below.version}`,
    url: `http://${encodeURIComponent('user')}:${encodeURIComponent('pa%ss')}@127.0.0.1:${port}`,
    rpc,
    below,
    lockAll(always) {
      state.locks.auto = always;
    },
    lockTransaction: (txid) => lockTransaction(state, txid),
    lockChain(height) {
      state.locks.chainLock = height;
    },
    async mineExactly(raw) {
      for (const hex of raw) {
        const decoded = await below.rpc<{ txid: string; vin: { txid: string; vout: number }[] }>('decoderawtransaction', hex);
        if (state.locks.refuses(decoded.txid, decoded.vin)) throw new Error('TestBlockValidity failed: conflict-tx-lock (-25)');
      }
      await below.rpc('generateblock', await below.rpc('getnewaddress', '', 'legacy'), raw);
      await afterCall(state, announcer, 'generate', null);
    },
    async mine(blocks) {
      await rpc('generatetoaddress', blocks, await rpc('getnewaddress'));
    },
    async stop() {
      await closeServer(server);
      await below.stop();
    },
    async start() {
      await below.start();
      server = await serve(ask, port);
    },
    async remove() {
      await announcer?.close();
      await closeServer(server);
      await below.remove();
    },
  };
}

async function lockTransaction({ below, locks }: DialectState, txid: string): Promise<void> {
  const answer = await below('getrawtransaction', [txid, true]);
  if ('error' in answer) throw new Error(answer.error.message);
  locks.lock(txid, (answer.result as { vin: { txid: string; vout: unknown }[] }).vin);
}

type Announcer = { transaction(hex: string): Promise<void>; block(hash: string): Promise<void>; close(): Promise<void> };

/** What the quorums and the publishers do after a call has changed something. */
async function afterCall(state: DialectState, announcer: Announcer | null, method: string, result: unknown): Promise<void> {
  if (method === 'sendrawtransaction' || method === 'sendtoaddress') {
    if (state.locks.auto) await lockTransaction(state, result as string);
    const raw = await state.below('getrawtransaction', [result]);
    if (announcer !== null && 'result' in raw) await announcer.transaction(raw.result as string);
  }
  if (!/^generate|^invalidateblock$|^reconsiderblock$/.test(method)) return;
  const tip = await learnTip(state);
  const height = await state.below('getblockcount', []);
  if (state.locks.auto && 'result' in height) state.locks.chainLock = numberOf(height.result);
  await announcer?.block(state.headers.toCurrency(tip));
}

async function announce(ports: { tx: number; block: number }): Promise<Announcer> {
  const [transactions, blocks] = [new Publisher(), new Publisher()];
  await transactions.bind(`tcp://127.0.0.1:${ports.tx}`);
  await blocks.bind(`tcp://127.0.0.1:${ports.block}`);
  const numbers = { rawtx: 0, hashblock: 0 };
  const counter = (topic: keyof typeof numbers): Buffer => {
    const bytes = Buffer.alloc(4);
    bytes.writeUInt32LE(numbers[topic]++);
    return bytes;
  };
  return {
    transaction: (hex) => transactions.send(['rawtx', Buffer.from(hex, 'hex'), counter('rawtx')]),
    block: (hash) => blocks.send(['hashblock', Buffer.from(hash, 'hex'), counter('hashblock')]),
    async close() {
      transactions.close();
      blocks.close();
    },
  };
}

function callBelow(url: string): Below {
  const { username, password, origin } = new URL(url);
  const authorization = `Basic ${Buffer.from(`${decodeURIComponent(username)}:${decodeURIComponent(password)}`).toString('base64')}`;
  return async (method, params) => {
    const { text } = await post(origin, writeJson({ jsonrpc: '1.0', id: 1, method, params }), { authorization });
    const { result, error } = readJson(text) as {
      result: unknown;
      error: { code: unknown; message: string } | null;
    };
    return error === null ? { result } : { error: { code: numberOf(error.code), message: error.message } };
  };
}

type Call = { readonly id?: unknown; readonly method?: unknown; readonly params?: unknown };

async function serve(ask: Below, port: number): Promise<Server> {
  async function one(call: Call): Promise<Record<string, unknown>> {
    const id = call.id ?? null;
    if (typeof call.method !== 'string') return { result: null, error: { code: -32600, message: 'Missing method' }, id };
    const answer: Answer = await ask(call.method, (call.params ?? []) as unknown[]).catch((error: Error) => ({
      error: { code: -32603, message: error.message },
    }));
    return 'error' in answer ? { result: null, error: answer.error, id } : { result: answer.result ?? null, error: null, id };
  }
  async function answerTo(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    if (request.headers.authorization !== AUTHORIZATION) {
      response.writeHead(401).end();
      return;
    }
    const body = readJson(Buffer.concat(chunks).toString('utf8'));
    const many = Array.isArray(body);
    const answers = [];
    for (const call of (many ? body : [body]) as Call[]) answers.push(await one(call));
    const refused = many ? null : (answers[0]?.error as { code: number } | null);
    const status = refused === null ? 200 : refused.code === -32601 ? 404 : 500;
    response.writeHead(status, { 'content-type': 'application/json' }).end(writeJson(many ? answers : answers[0]));
  }
  const server = createServer((request, response) => void answerTo(request, response));
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve));
  return server;
}

async function closeServer(server: Server): Promise<void> {
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
}
