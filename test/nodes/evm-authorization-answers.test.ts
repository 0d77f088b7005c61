// What nodes answer of a transaction that carries authorizations (EIP-7702): who has signed them, and whether one has used the nonce of its account. Every
// kind of answer, from a node that says so.
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { AuthorizedByWord, Nonce } from '../../src/core/evm/port.ts';
import { authorizedAt, authorizedByWord, carrierIn, signersIn, signersOf } from '../../src/outside/evm/authorizations.ts';
import { createEvmSource, type EvmSource } from '../../src/outside/evm/source.ts';
import { createMember } from '../../src/outside/utxo/node/member.ts';
import { NodeTrouble } from '../../src/outside/utxo/node/trouble.ts';
import { addressOf, secretOf } from '../../src/sandbox/evm/transaction.ts';
import { closeServer, listen } from '../../src/sandbox/server.ts';
import { authorization } from '../support/evm/set-code.ts';

const CODE = `0x${'cd'.repeat(20)}`;
const TOKEN = `0x${'70'.repeat(20)}`;
const NOBODY = `0x${'e7'.repeat(20)}`;
const [secret, otherSecret] = [secretOf('our key'), secretOf('the key of somebody else')];
const [OURS, OTHER] = [addressOf(secret), addressOf(otherSecret)];
const hex = (value: unknown): string => (typeof value === 'string' ? value : `0x${BigInt(value as bigint).toString(16)}`);
/** As a node shows one. */
function shownOne(key: Uint8Array, nonce: number): Record<string, string> {
  const names = ['chainId', 'address', 'nonce', 'yParity', 'r', 's'];
  const signed = authorization(key, { code: CODE, nonce });
  return Object.fromEntries(names.map((name, at) => [name, hex(signed[at])]));
}
const by = (address: string, nonce: number): Nonce => ({ address, nonce });

describe('who has signed what a transaction carries', () => {
  const [ours, other] = [shownOne(secret, 5), shownOne(otherSecret, 5)];
  test.each<[string, object, readonly Nonce[], number?]>([
    ['each in their order', { authorizationList: [other, ours] }, [by(OTHER, 5), by(OURS, 5)]],
    ['only those with a nonce', { authorizationList: [other, shownOne(secret, 6)] }, [by(OURS, 6)], 6],
    ['nobody, where it carries none', {}, []],
    ['nobody, where the node shows no list', { authorizationList: 'x' }, []],
    ['not what the node shows wrongly', { authorizationList: [{ ...ours, r: 'x' }, null, other] }, [by(OTHER, 5)]],
    ['not what nobody can have signed', { authorizationList: [{ ...ours, r: '0x0' }, other] }, [by(OTHER, 5)]],
  ])('%s', (_what, transaction, signers, only) => {
    expect(signersOf(transaction, only)).toEqual(signers);
  });
});

const HASH = `0x${'b1'.repeat(32)}`;
const TXID = `0x${'a1'.repeat(32)}`;
const [HEIGHT, NONCE] = [100, 5];
const hashOf = (nth: number): string => `0x${String(nth).repeat(64)}`;
const topicOf = (address: string): string => `0x${address.slice(2).padStart(64, '0')}`;
const TRANSFER = '0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef';
const refusal = { error: { code: -32000, message: 'missing trie node' } };

/** What the node has. */
let node: {
  transaction: object | null;
  receipt: object | null;
  /** How many transactions the account has sent, by height, or why it does not say. */
  counts: Record<number, number | object>;
  /** The block at the height, by what it says of it now. */
  headerHash: string;
  /** The transactions of the block besides. */
  others: readonly object[];
  /** What it says instead of a method. */
  instead: Record<string, object>;
};
let served: Server;
let source: EvmSource;
const transactionOf = (nth: number, from: string, nonce: number, more: object = {}) => ({
  ...{ hash: hashOf(nth), from, to: NOBODY, value: '0x5', nonce: hex(nonce), input: '0x', type: '0x4' },
  ...{ blockHash: HASH, blockNumber: hex(HEIGHT), transactionIndex: '0x0' },
  ...more,
});
const transfer = (from: string, units: number) => ({
  ...{ address: TOKEN, blockHash: HASH, topics: [TRANSFER, topicOf(from), topicOf(NOBODY)] },
  data: `0x${units.toString(16).padStart(64, '0')}`,
});

beforeEach(async () => {
  const carrier = { ...transactionOf(1, OTHER, 9), hash: TXID };
  node = {
    transaction: { ...carrier, authorizationList: [shownOne(otherSecret, NONCE), shownOne(secret, NONCE)] },
    receipt: {
      ...{ transactionHash: TXID, blockHash: HASH, status: '0x1', gasUsed: '0x1', effectiveGasPrice: '0x1' },
      logs: [transfer(OURS, 7), transfer(OTHER, 8)],
    },
    counts: { [HEIGHT - 2]: 1, [HEIGHT - 1]: NONCE, [HEIGHT]: NONCE + 1, [HEIGHT + 1]: 99 },
    headerHash: HASH,
    others: [transactionOf(3, OURS, NONCE + 1), transactionOf(4, OTHER, NONCE)],
    instead: {},
  };
  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const asked = JSON.parse(Buffer.concat(await request.toArray()).toString());
    const answers = [asked].flat().map(({ id, ...call }) => ({ jsonrpc: '2.0', id, ...answerTo(call) }));
    response.writeHead(200, { 'Content-Type': 'application/json' });
    response.end(JSON.stringify(Array.isArray(asked) ? answers : answers[0]));
  }
  served = createServer((request, response) => void answer(request, response));
  source = createEvmSource({ url: `http://127.0.0.1:${await listen(served, 0)}` });
});
afterEach(async () => {
  await source.close();
  await closeServer(served);
});

function answerTo({ method, params }: { readonly method: string; readonly params: readonly unknown[] }): object {
  const instead = node.instead[method];
  if (instead !== undefined) return instead;
  if (method === 'eth_getTransactionByHash') return { result: node.transaction };
  if (method === 'eth_getTransactionReceipt') return { result: node.receipt };
  if (method === 'eth_getTransactionCount') {
    const count = node.counts[Number(params[1])];
    return params[0] === OURS && typeof count === 'number' ? { result: hex(count) } : refusal;
  }
  const header = { parentHash: hashOf(9), number: hex(HEIGHT), timestamp: '0x1' };
  if (method === 'eth_getBlockByNumber') return { result: { ...header, hash: node.headerHash } };
  const whole = [node.transaction, ...node.others].map((one, at) => ({ ...one, transactionIndex: hex(at) }));
  const transactions = params[1] === true ? whole : whole.map((one) => (one as { readonly hash?: string }).hash);
  return { result: { ...header, hash: HASH, transactions } };
}

describe('the transaction of a block that carries what an account has signed with a nonce', () => {
  test.each<[string, Nonce, string | null]>([
    ['carries others too', by(OURS, NONCE), TXID],
    ['is the one that carries it', by(OTHER, 6), hashOf(3)],
    ['is none, where it carries another nonce', by(OURS, 6), null],
    ['is none, where somebody else has signed', by(NOBODY, NONCE), null],
  ])('%s', async (_what, signer, txid) => {
    node.others = [transactionOf(3, OTHER, 1, { authorizationList: [shownOne(otherSecret, 6)] }), transactionOf(4, OTHER, 2)];
    expect(await carrierIn(source, HASH, signer)).toBe(txid);
  });

  test('who has signed what it carries is shown by its hash, and nobody of one that is not there', async () => {
    expect(await signersIn(source, TXID)).toEqual([by(OTHER, NONCE), by(OURS, NONCE)]);
    node.transaction = null;
    expect(await signersIn(source, TXID)).toEqual([]);
  });

  test.each([
    ['busy', { error: { code: -32005, message: 'too many requests' } }],
    ['bad_answer', { error: { code: -32000, message: 'a fault' } }],
  ])('a node that refuses is %s', async (state, answer) => {
    for (const method of ['eth_getBlockByHash', 'eth_getTransactionByHash']) node.instead[method] = answer;
    await expect(carrierIn(source, HASH, by(OURS, NONCE))).rejects.toMatchObject({ name: 'NodeTrouble', state });
    await expect(signersIn(source, TXID)).rejects.toMatchObject({ name: 'NodeTrouble', state });
  });
});

describe('whether one has used the nonce of its account', () => {
  const asked = (contract: string | null = TOKEN) => authorizedAt(source, { txid: TXID, signer: by(OURS, NONCE), contract });
  const shown = { height: HEIGHT, blockHash: HASH };
  const counted = (before: number, after: number) => () => {
    node.counts = { [HEIGHT - 1]: before, [HEIGHT]: after };
  };
  const COUNTS = { carried: shown };
  const [USED, NOT_USED, UNKNOWN] = [
    { ...COUNTS, isUsed: true, isDenied: false },
    { ...COUNTS, isUsed: false, isDenied: true },
    { ...COUNTS, isUsed: false, isDenied: false },
  ];
  const NOT_SHOWN = { carried: null, isUsed: false, isDenied: false };
  const altered = (more: Partial<typeof node>) => () => void Object.assign(node, more);
  const carrying =
    (...list: readonly object[]) =>
    () =>
      void Object.assign(node, { transaction: { ...node.transaction, authorizationList: list } });

  test.each<[string, () => void, object]>([
    ['its count rises in the block without a transaction of it', () => undefined, USED],
    ['it rises by more than one', counted(NONCE - 1, NONCE + 2), USED],
    ['it does not rise', counted(NONCE, NONCE), NOT_USED],
    ['it was beyond the nonce before', counted(NONCE + 1, NONCE + 2), NOT_USED],
    ['it is below the nonce afterwards', counted(NONCE - 1, NONCE), NOT_USED],
    ['a transaction of its own has the nonce', altered({ others: [transactionOf(3, OURS, NONCE)] }), NOT_USED],
    [
      'a transaction of its own has the nonce, among others',
      altered({ others: [transactionOf(3, OURS, NONCE), transactionOf(4, OTHER, 8)] }),
      NOT_USED,
    ],
    ['the node has forgotten both counts', altered({ counts: {} }), UNKNOWN],
    ['the node has forgotten one count', altered({ counts: { [HEIGHT]: NONCE + 1 } }), UNKNOWN],
    ['the node has another block there by now', altered({ headerHash: hashOf(7) }), UNKNOWN],
    ['the node shows no such transaction', altered({ transaction: null, receipt: null }), NOT_SHOWN],
    ['the node shows no receipt', altered({ receipt: null }), NOT_SHOWN],
    ['it carries another nonce of the account', carrying(shownOne(secret, NONCE + 1)), { ...NOT_SHOWN, isDenied: true }],
    ['it carries nothing of the account', carrying(shownOne(otherSecret, NONCE)), { ...NOT_SHOWN, isDenied: true }],
  ])('where %s', async (_what, change, wanted) => {
    change();
    expect(await asked()).toMatchObject(wanted);
  });

  test('one that is in no block is carried by none, whatever else the node says of it', async () => {
    node.transaction = { ...node.transaction, blockHash: null, blockNumber: null };
    expect(await asked()).toMatchObject({ carried: null });
  });

  const sent = async (contract: string | null): Promise<readonly bigint[] | undefined> =>
    (await asked(contract)).carried?.facts.outputs.map(({ amountMinor }) => amountMinor);
  test('what the account has sent by its code is shown of a token, and not what others have, nor ether', async () => {
    expect(await sent(TOKEN)).toEqual([7n]);
    expect(await sent(null)).toEqual([]);
    expect((await asked()).carried?.facts.spends).toHaveLength(1);
  });

  test('what its own transaction has sent is not the authorization’s', async () => {
    node.transaction = { ...node.transaction, from: OURS };
    expect(await sent(TOKEN)).toEqual([]);
    expect(await sent(null)).toEqual([]);
  });
});

describe('what several nodes say together', () => {
  const shownBy = (block: number, units: bigint, how: { isUsed?: boolean; isDenied?: boolean } = {}): AuthorizedByWord => {
    const outputs = [{ vout: 0, script: 'ab', amountMinor: units }];
    const facts = { txid: TXID, coinbase: false, inputs: [], outputs, spends: [] };
    const carried = { height: HEIGHT, blockHash: hashOf(block), facts };
    return { carried, isUsed: false, isDenied: false, said: [`says block ${block}`], ...how };
  };
  const used = (block: number, units = 1n) => shownBy(block, units, { isUsed: true });
  const denied = (block: number) => shownBy(block, 1n, { isDenied: true });
  const NOTHING: AuthorizedByWord = { carried: null, isUsed: false, isDenied: true, said: ['says nothing'] };
  const SILENT = new NodeTrouble('down', 'no answer');

  async function together(...words: readonly (AuthorizedByWord | NodeTrouble)[]) {
    const clock = { now: () => Date.now() };
    const waiting = { clock, patienceMs: 5_000, isInUse: () => false };
    const members = words.map((word, nth) => {
      const authorized = async (): Promise<AuthorizedByWord> => {
        if (word instanceof NodeTrouble) throw word;
        return word;
      };
      return createMember({ name: `node ${nth}`, authorized } as never, waiting);
    });
    const signer = by(OURS, NONCE);
    const { carried, isUsed, isDenied, said } = await authorizedByWord(members as never, { txid: TXID, signer }, waiting);
    return { block: carried === null ? null : Number(carried.blockHash[2]), isUsed, isDenied, said };
  }

  test.each<[string, readonly (AuthorizedByWord | NodeTrouble)[], object]>([
    ['the only one that has it used', [used(1)], { block: 1, isUsed: true, isDenied: false }],
    ['the only one that has it not', [denied(1)], { block: 1, isUsed: false, isDenied: true }],
    ['two that have it used', [used(1), used(1)], { block: 1, isUsed: true, isDenied: false }],
    ['one of two', [used(1), SILENT], { block: null, isUsed: false, isDenied: false }],
    ['one that has it used, and one that has it not', [used(1), denied(1)], { block: 1, isUsed: false, isDenied: false }],
    ['two of three', [used(1), SILENT, used(1)], { block: 1, isUsed: true, isDenied: false }],
    ['two that have it not', [denied(1), NOTHING], { block: null, isUsed: false, isDenied: true }],
    ['two blocks', [used(1), used(2)], { block: null, isUsed: false, isDenied: false }],
    ['two amounts', [used(1, 1n), used(1, 2n)], { block: null, isUsed: false, isDenied: false }],
    ['two blocks, of two each', [used(1), used(1), used(2), used(2)], { block: null, isUsed: false, isDenied: false }],
    [
      'two that show it, and two that show nothing',
      [used(1), used(1), NOTHING, NOTHING],
      { block: 1, isUsed: true, isDenied: true },
    ],
    ['two that show nothing', [NOTHING, NOTHING], { block: null, isUsed: false, isDenied: true }],
  ])('%s', async (_who, words, wanted) => {
    const said = words.map((word) => (word instanceof NodeTrouble ? word.message : word.said[0]));
    expect(await together(...words)).toEqual({ ...wanted, said });
  });
});
