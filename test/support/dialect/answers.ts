// One call of a dialect server: what the currency's node would answer, from the bitcoind below.
import type { AddressBook } from './addresses.ts';
import { type CurrencyFacts, DOGE_METHODS, NOT_IN_DASH } from './currencies.ts';
import type { HeaderMap } from './headers.ts';
import type { Locks } from './locks.ts';
import { mapStrings, numberOf } from './lossless.ts';
import { objection, type RpcFailure, reworded } from './policy.ts';
import { shapeBlock, shapeHeader, shapeOutput, shapeTransaction } from './shapes.ts';

export type Answer = { readonly result: unknown } | { readonly error: RpcFailure };
/** Calls the bitcoind below. */
export type Below = (method: string, params: readonly unknown[]) => Promise<Answer>;

export type DialectState = {
  readonly facts: CurrencyFacts;
  readonly below: Below;
  readonly headers: HeaderMap;
  readonly addresses: AddressBook;
  readonly locks: Locks;
  /** Where the server announces its ZMQ; null = the node has none, or no way to say so. */
  readonly zmq: { readonly topic: string; readonly address: string }[] | null;
};

type Own = (state: DialectState, params: readonly unknown[]) => Promise<Answer> | Answer;
type Fields = Record<string, unknown>;

const failure = (code: number, message: string): Answer => ({ error: { code, message } });
const NO_METHOD = failure(-32601, 'Method not found');

/** @returns what the currency's node answers */
export async function answerOf(state: DialectState, method: string, given: readonly unknown[]): Promise<Answer> {
  const { facts } = state;
  if (facts.currency === 'DOGE' ? !DOGE_METHODS.has(method) : NOT_IN_DASH.has(method)) return NO_METHOD;
  const own = (facts.currency === 'DOGE' ? DOGE_OWN : DASH_OWN)[method];
  return own === undefined ? passedOn(state, method, given) : own(state, given);
}

async function passedOn(state: DialectState, method: string, given: readonly unknown[]): Promise<Answer> {
  const { facts, headers, addresses, below } = state;
  const known = (text: string): string => headers.toBitcoin(addresses.toBitcoin(text));
  const params = mapStrings(given, known) as unknown[];
  if (method === 'sendrawtransaction') {
    const no = await objection(facts, state.locks, askOf(below), given[0]);
    if (no !== null) return { error: no };
    params.splice(1);
    if (facts.currency === 'DOGE') params.push(0);
  }
  if (method === 'getnewaddress') params.splice(0, 2, '', 'legacy');
  if (method === 'getblock' && typeof params[1] === 'boolean') params[1] = params[1] ? 1 : 0;
  if (method === 'getrawtransaction' && params[1] !== undefined) params[1] = params[1] === true || numberOf(params[1]) > 0;
  const answer = await below(method, params);
  if ('error' in answer) return { error: reworded(facts, answer.error) };
  await learnTip(state);
  return { result: await shaped(state, method, params, answer.result) };
}

export async function learnTip(state: DialectState): Promise<string> {
  const tip = await askOf(state.below)('getbestblockhash');
  await state.headers.learn(tip as string);
  return tip as string;
}

const askOf =
  (below: Below) =>
  async (method: string, ...params: unknown[]): Promise<unknown> => {
    const answer = await below(method, params);
    return 'error' in answer ? undefined : answer.result;
  };

async function shaped(state: DialectState, method: string, params: readonly unknown[], result: unknown): Promise<unknown> {
  const { facts, headers, addresses, locks } = state;
  if (typeof result === 'string' && (method === 'getblock' || method === 'getblockheader'))
    return headers.rewritten(params[0] as string, Buffer.from(result, 'hex')).toString('hex');
  const heightOf = async (hash: unknown): Promise<number | undefined> => {
    const header = hash === undefined ? undefined : ((await askOf(state.below)('getblockheader', hash)) as Fields);
    return header === undefined ? undefined : numberOf(header.height);
  };
  const place = method === 'getrawtransaction' ? await heightOf((result as Fields | null)?.blockhash) : undefined;
  const renamed = mapStrings(result, (text) => headers.toCurrency(addresses.toCurrency(text)));
  if (typeof renamed !== 'object' || renamed === null) return renamed;
  const fields = renamed as Fields;
  if (method === 'getrawtransaction') shapeTransaction(facts.currency, fields, locks, place);
  if (method === 'decoderawtransaction') for (const output of fields.vout as Fields[]) shapeOutput(facts.currency, output);
  if (method === 'gettxout') shapeOutput(facts.currency, fields);
  if (method === 'getblock') shapeBlock(facts.currency, fields, locks, facts.blockVersion);
  if (method === 'getblockheader') shapeHeader(fields, facts.blockVersion);
  if (method === 'getnetworkinfo') Object.assign(fields, { version: facts.version, subversion: facts.subversion });
  if (method === 'getblockchaininfo' && facts.currency === 'DOGE') delete fields.initialblockdownload;
  return renamed;
}

const DOGE_OWN: Readonly<Record<string, Own>> = {
  estimatefee: () => ({ result: -1 }),
  estimatesmartfee: (_, [blocks]) => ({ result: { feerate: -1, blocks: blocks ?? 1 } }),
  getblock: (state, params) =>
    params.length > 1 && typeof params[1] !== 'boolean'
      ? failure(-1, 'JSON value is not a boolean as expected')
      : passedOn(state, 'getblock', params),
  async getinfo({ facts, below }) {
    const blocks = await askOf(below)('getblockcount');
    return {
      result: { version: facts.version, protocolversion: 70015, blocks, connections: 0, proxy: '', testnet: false, errors: '' },
    };
  },
  async signrawtransaction(state, [hex]) {
    const answer = await state.below('signrawtransactionwithwallet', [hex]);
    return 'error' in answer ? answer : { result: answer.result };
  },
};

const DASH_OWN: Readonly<Record<string, Own>> = {
  // no place is kept for the priority of old
  prioritisetransaction: (state, [txid, delta]) => passedOn(state, 'prioritisetransaction', [txid, 0, delta]),
  async getbestchainlock({ locks, below, headers }) {
    if (locks.chainLock < 0) return failure(-32603, 'Unable to find any ChainLock');
    const hash = await askOf(below)('getblockhash', locks.chainLock);
    return {
      result: {
        blockhash: headers.toCurrency(hash as string),
        height: locks.chainLock,
        signature: '00'.repeat(96),
        known_block: true,
      },
    };
  },
  getislocks: ({ locks }, [txids]) => ({
    result: (txids as string[]).map((txid) =>
      locks.has(txid)
        ? { txid, inputs: locks.inputsOf(txid), id: '00'.repeat(32), cycleHash: '00'.repeat(32), signature: '00'.repeat(96) }
        : 'None',
    ),
  }),
  getzmqnotifications: ({ zmq }) => ({
    result: (zmq ?? []).map(({ topic, address }) => ({ type: `pub${topic}`, address, hwm: 1000 })),
  }),
};
