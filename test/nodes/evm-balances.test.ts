// What a node says that addresses hold after a block: asked again while it has not got the block, believed only for the block that was meant, and
// done without where it cannot say.
import { expect, test } from 'vitest';
import type { EvmBlock } from '../../src/outside/evm/answers.ts';
import { createBalanceReader } from '../../src/outside/evm/balances.ts';
import type { RpcCall } from '../../src/outside/utxo/node/rpc.ts';
import { NodeTrouble, RpcRefusal } from '../../src/outside/utxo/node/trouble.ts';

const addressOf = (n: number): string => `0x${n.toString(16).padStart(40, '0')}`;
const hashOf = (height: number): string => `0x${height.toString(16).padStart(64, '0')}`;
const word = (value: bigint | number): string => BigInt(value).toString(16).padStart(64, '0');
const block = (height: number): EvmBlock => ({
  ...{ hash: hashOf(height), previousHash: hashOf(height - 1), height, timeMs: 0, transactions: [] },
  ...{ feeRecipient: null, baseFee: 0n, withdrawals: [] },
});

/** A node at which each address holds its number of wei for each block. */
function node() {
  const state = { answer: null as null | ((call: RpcCall) => unknown), ms: 0, calls: 0, batches: 0 };
  const honest = ({ params = [] }: RpcCall): string => {
    const [{ data }, { blockHash }] = params as [{ data: string }, { blockHash: string }];
    const height = Number(blockHash);
    const listed = data.slice(2 + 106).match(/.{40}/g) ?? [];
    return `0x${word(height)}${word(height - 1)}${listed.map((address) => word(Number(`0x${address}`) * height)).join('')}`;
  };
  const rpc = {
    name: 'node',
    async batch(calls: readonly RpcCall[]) {
      state.batches++;
      state.calls += calls.length;
      return calls.map((call) => (state.answer === null ? honest(call) : state.answer(call)));
    },
  };
  const reader = createBalanceReader(
    rpc,
    ({ code }) => code === -32005,
    () => state.ms,
  );
  const gains = async (height: number, addresses: readonly string[] = [addressOf(5)], total = addresses.length) =>
    reader.gains(block(height), addresses, total).catch((error: Error) => error);
  const refuse = (code: number, message: string): void => {
    state.answer = () => new RpcRefusal('eth_call', code, message);
  };
  return { state, reader, gains, refuse, honest };
}

test('many addresses are read in few calls, and what the block before left is known', async () => {
  const { state, gains, reader } = node();
  const all = Array.from({ length: 1_401 }, (_, n) => addressOf(n));
  const first = (await gains(9, all)) as ReadonlyMap<string, bigint>;
  expect([first.size, first.get(addressOf(1_400))]).toEqual([1_401, 1_400n]);
  expect([state.batches, state.calls]).toEqual([2, 6]);
  await gains(10, all);
  expect([state.batches, state.calls]).toEqual([3, 9]);
  await gains(11, [...all, addressOf(2_000)]);
  expect([state.batches, state.calls]).toEqual([5, 13]);
  reader.forget();
  await gains(12, all);
  expect(state.batches).toBe(7);
  expect([reader.answers(), reader.lacks()]).toEqual([true, []]);
});

test('what four blocks left is remembered, and of no addresses nothing is asked', async () => {
  const { state, gains } = node();
  for (let height = 9; height <= 13; height++) await gains(height);
  expect(state.batches).toBe(6);
  await gains(11);
  expect(state.batches).toBe(7);
  await gains(10);
  expect(state.batches).toBe(9);
  expect([await gains(14, []), state.batches]).toEqual([new Map(), 9]);
});

test('a block that was answered has its whole time again', async () => {
  const { state, gains, refuse } = node();
  for (const ms of [0, 40_000, 80_000]) {
    state.ms = ms;
    refuse(-32_000, 'header not found');
    expect(await gains(9)).toBeInstanceOf(NodeTrouble);
  }
  state.answer = null;
  expect(await gains(9)).toBeInstanceOf(Map);
  state.ms = 120_000;
  refuse(-32_000, 'header not found');
  expect(await gains(9)).toBeInstanceOf(NodeTrouble);
});

test('a node that has said it before and does not any more does not answer', async () => {
  const { state, gains, refuse, reader } = node();
  await gains(8);
  refuse(-32_000, 'header not found');
  for (const ms of [0, 40_000, 80_000]) {
    state.ms = ms;
    await gains(9);
    expect(reader.answers()).toBe(true);
  }
  state.ms = 120_000;
  expect([await gains(9), reader.answers()]).toEqual([null, false]);
});

test('what addresses hold is asked of one block', async () => {
  const { state, reader } = node();
  expect(await reader.held(block(9), [addressOf(5)])).toEqual(new Map([[addressOf(5), 45n]]));
  expect(await reader.held(block(9), [addressOf(5), addressOf(6)])).toEqual(
    new Map([
      [addressOf(5), 45n],
      [addressOf(6), 54n],
    ]),
  );
  expect([await reader.held(block(9), []), state.batches]).toEqual([new Map(), 2]);
});

test('more addresses than are looked at are told', async () => {
  const { gains, reader } = node();
  await gains(9, [addressOf(1)], 4_200);
  expect(reader.lacks()).toEqual([]);
  await gains(9, [addressOf(1)], 4_201);
  expect(reader.lacks().join()).toContain('the newest 4200 of 4201 addresses');
});

test('a block that the node has not got yet, or no state of, is asked for again, and after two minutes done without', async () => {
  for (const message of ['header not found', 'missing trie node 0bc3 (path ) state 0x63aa is not available', 'unknown block']) {
    const { state, gains, refuse, reader } = node();
    refuse(-32_000, message);
    for (const ms of [0, 40_000, 80_000]) {
      state.ms = ms;
      expect(await gains(9)).toBeInstanceOf(NodeTrouble);
    }
    state.ms = 120_000;
    expect(await gains(9)).toBe(null);
    expect(await gains(10)).toBe(null);
    expect(reader.answers()).toBe(false);
    state.answer = null;
    expect(await gains(11)).toEqual(new Map([[addressOf(5), 5n]]));
    refuse(-32_000, message);
    expect(await gains(12)).toBeInstanceOf(NodeTrouble);
  }
});

test('one block of which it has no state is done without, though it says it of others meanwhile', async () => {
  const { state, gains, honest } = node();
  state.answer = (call) =>
    honest(call).startsWith(`0x${word(9)}`) ? new RpcRefusal('eth_call', -32_000, 'missing trie node 0bc3') : honest(call);
  for (const ms of [0, 40_000, 80_000]) {
    state.ms = ms;
    expect(await gains(9)).toMatchObject({ isPassing: true });
    expect(await gains(80 + ms / 20_000)).toBeInstanceOf(Map);
  }
  state.ms = 120_000;
  expect(await gains(9)).toBe(null);
  // of one that was waited for meanwhile no patience is left over
  state.answer = () => new RpcRefusal('eth_call', -32_000, 'missing trie node 0bc3');
  expect(await gains(90)).toMatchObject({ isPassing: true });
});

test('a node that says what addresses hold after a block, and not before it, does not say what the block has brought', async () => {
  const { state, gains, honest, reader } = node();
  state.answer = (call) =>
    honest(call).startsWith(`0x${word(8)}`) ? new RpcRefusal('eth_call', -32_603, 'internal error') : honest(call);
  expect([await gains(9), reader.answers()]).toEqual([null, false]);
});

test('what an answer lacks is named, and full parts are no call more', async () => {
  const { state, gains } = node();
  await gains(
    9,
    Array.from({ length: 700 }, (_, n) => addressOf(n)),
  );
  expect([state.batches, state.calls]).toEqual([2, 2]);
  state.answer = () => '0x';
  expect(await gains(10)).toMatchObject({ message: expect.stringContaining('not what was asked for, or of another block') });
});

test('a node that does not know how is not asked twice for a block, and one that is asked too much always is', async () => {
  const { state, gains, refuse, reader } = node();
  refuse(-32_602, 'missing value for required argument "to"');
  expect([await gains(9), reader.answers()]).toEqual([null, false]);
  refuse(-32_005, 'limit exceeded');
  for (let n = 0; n < 10; n++) {
    state.ms += 60_000;
    expect(await gains(9)).toMatchObject({ state: 'busy' });
  }
});

test('what is said of another block, or by a node that has said it rightly before, is not believed', async () => {
  const { state, gains, honest } = node();
  const wrong: readonly ((call: RpcCall) => unknown)[] = [
    (call) => honest(call).replace(word(9), word(10)),
    (call) => honest(call).replace(word(8), word(7)),
    (call) => honest(call).slice(0, -64),
    () => '0x',
    () => 7,
  ];
  for (const answer of wrong) {
    state.answer = answer;
    expect(await gains(9)).toBe(null);
  }
  state.answer = null;
  expect(await gains(9)).toBeInstanceOf(Map);
  for (const answer of wrong.slice(2)) {
    state.answer = answer;
    expect(await gains(10)).toBeInstanceOf(NodeTrouble);
  }
});
