// What the calls inside transactions show of ether that moves, read from a node that cannot show them, and from deep trees of calls.
import { expect, test } from 'vitest';
import { type Asked, type EvmBlock, readFlatTraces } from '../../src/outside/evm/answers.ts';
import { createTraceReader, type Shown } from '../../src/outside/evm/traces.ts';
import { NodeTrouble, RpcRefusal } from '../../src/outside/utxo/node/trouble.ts';

const [BLOCK, PAYEE] = [`0x${'a'.repeat(64)}`, `0x${'1'.repeat(40)}`];
const hashOf = (n: number): string => `0x${String(n).padStart(64, '0')}`;
const transaction = (n: number) => ({ hash: hashOf(n), from: PAYEE, to: PAYEE, value: 0n, nonce: n, input: '0x' });
const block: EvmBlock = {
  ...{ hash: BLOCK, previousHash: BLOCK, height: 7, timeMs: 0, transactions: [1, 2, 3].map(transaction) },
  ...{ feeRecipient: null, baseFee: 0n, withdrawals: [] },
};
const frame = { type: 'CALL', to: PAYEE, value: '0x0', calls: [{ type: 'CALL', to: PAYEE, value: '0x5' }] };

/** A node that answers a method as the test says; `at` moves the clock. */
function reader(answer: (method: string, hash: unknown) => unknown) {
  const clock = { ms: 0 };
  const asked: Asked = async (method, params, read) => {
    const said = answer(method, params[0]);
    if (said instanceof Error) throw said;
    return read(said);
  };
  const traces = createTraceReader(asked, {
    isUnknown: ({ code }) => code === -32601,
    trouble: ({ message }) => new NodeTrouble('bad_answer', message),
    steadyMs: () => clock.ms,
  });
  const later = async (ms: number): Promise<unknown> => {
    clock.ms += ms;
    return traces.read(block).catch((error: Error) => error.message);
  };
  return { traces, later, clock };
}
const pruned = new RpcRefusal('debug_traceBlockByHash', -32_000, 'required historical state unavailable (reexec=128)');

test('a block whose state a node has pruned is waited for, then read without, and told', async () => {
  const { traces, later } = reader(() => pruned);
  for (const ms of [0, 30_000, 30_000, 30_000]) expect(await later(ms)).toMatch('historical state unavailable');
  const shown = await later(30_000);
  expect(shown).toEqual([null, null, null]);
  expect(traces.lacks()).toEqual([]);
  traces.missed(block, shown as Shown);
  expect(traces.lacks().join()).toContain(`inside 3 transactions was not seen, the last one ${hashOf(1)} in block 7`);
});

test('one block that a node cannot show is read without, though it shows those after it meanwhile', async () => {
  const next = { ...block, hash: `0x${'b'.repeat(64)}`, height: 8 };
  const { traces, later, clock } = reader((_, hash) =>
    hash === next.hash ? next.transactions.map(() => ({ result: frame })) : pruned,
  );
  for (const ms of [0, 40_000, 40_000]) {
    expect(await later(ms)).toMatch('historical state unavailable');
    expect(await traces.read(next)).toHaveLength(3);
  }
  expect(await later(40_000)).toEqual([null, null, null]);
  // one that follows such a block is not waited for again, one that follows a block that was shown is
  const child = (parent: string) => ({ ...block, hash: `0x${'c'.repeat(64)}`, previousHash: parent, height: 9 });
  expect(await traces.read({ ...child(next.hash), hash: `0x${'d'.repeat(64)}` }).catch((error: Error) => error)).toBeInstanceOf(
    NodeTrouble,
  );
  expect(await traces.read(child(BLOCK))).toEqual([null, null, null]);
  expect(clock.ms).toBe(120_000);
});

test('one transaction at which the node falls silent leaves the others seen', async () => {
  const silence = new NodeTrouble('down', 'no answer for 15 s');
  const { traces, later } = reader((method, hash) =>
    method === 'debug_traceBlockByHash' || hash === hashOf(2) ? silence : frame,
  );
  for (const ms of [0, 40_000, 40_000]) expect(await later(ms)).toBe('no answer for 15 s');
  const shown = await later(40_000);
  expect(shown).toEqual([[{ to: PAYEE, value: 5n }], null, [{ to: PAYEE, value: 5n }]]);
  traces.missed(block, shown as Shown);
  expect(traces.lacks().join()).toContain(hashOf(2));
});

test('a node without traces is asked again after a while', async () => {
  const none = new RpcRefusal('trace_block', -32_601, 'the method does not exist/is not available');
  let has = false;
  const { traces, later } = reader(() => (has ? block.transactions.map(() => ({ result: frame })) : none));
  expect(await later(0)).toBe(null);
  expect(traces.hasNone()).toBe(true);
  has = true;
  expect(await later(1_000)).toBe(null);
  expect(await later(600_000)).toEqual(block.transactions.map(() => [{ to: PAYEE, value: 5n }]));
  expect(traces.hasNone()).toBe(false);
});

test('a node that has had traces, and refuses them as unknown for two minutes, is read without them at one call a block', async () => {
  const none = new RpcRefusal('debug_traceBlockByHash', -32_601, 'the method does not exist/is not available');
  let has = true;
  let calls = 0;
  const { traces, later } = reader(() => {
    calls++;
    return has ? block.transactions.map(() => ({ result: frame })) : none;
  });
  expect(await later(0)).toHaveLength(3);
  has = false;
  for (const ms of [0, 40_000, 40_000]) expect(await later(ms)).toContain('does not exist');
  calls = 0;
  expect(await later(40_000)).toBe(null);
  expect([calls, traces.hasNone()]).toEqual([1, true]);
  expect(await later(1_000)).toBe(null);
  expect(calls).toBe(1);
  has = true;
  expect(await later(600_000)).toHaveLength(3);
});

test('a node that is asked too much is not read without what it would show', async () => {
  const { later } = reader(() => new NodeTrouble('busy', 'rate limit'));
  for (let n = 0; n < 10; n++) expect(await later(60_000)).toBe('rate limit');
});

test('a tree of calls 200 deep is read in time that grows with its size', () => {
  const action = { callType: 'call', to: PAYEE, value: '0x1' };
  const one = { ...block, transactions: [transaction(1)] };
  const at = { type: 'call', action, blockHash: BLOCK, transactionHash: hashOf(1) };
  const deep = Array<number>(200).fill(0);
  const frames: object[] = [
    { ...at, traceAddress: [] },
    { ...at, error: 'Reverted', traceAddress: [1] },
  ];
  for (let n = 0; n < 20_000; n++) frames.push({ ...at, traceAddress: [...deep, n] });
  for (let n = 0; n < 20_000; n++) frames.push({ ...at, traceAddress: [1, ...deep, n] });
  const began = process.cpuUsage();
  expect(readFlatTraces(frames, one)[0]).toHaveLength(20_000);
  const { user, system } = process.cpuUsage(began);
  expect((user + system) / 1000).toBeLessThan(3_000);
});
