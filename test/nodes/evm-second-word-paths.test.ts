// Two nodes on Ethereum's chain, of which the one that is read says what the other does not: on no way that blocks are read is its word enough.
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { reconcile } from '../../src/worker/rescan/reconciler.ts';
import { lookUpAgain } from '../../src/worker/rescan/rescan.ts';
import { type Alteration, type Receipt, receipts } from '../support/nodes/altered-node.ts';
import { openOnTwoNodes, type TwoNodes } from './two-nodes.ts';

const TIMEOUT = 300_000;
const FINAL = 70;
const LATER_MS = 61_000;
const TRANSFER = '0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef';
const STRANGER = `0x${'5e'.repeat(20)}`;
type Json = Record<string, unknown>;
let nodes: TwoNodes;
let liar: TwoNodes['read'];
let honest: TwoNodes['other'];
let service: TwoNodes['service'];

beforeAll(async () => {
  nodes = await openOnTwoNodes();
  ({ service, read: liar, other: honest } = nodes);
}, TIMEOUT);
afterAll(() => nodes?.close(), TIMEOUT);
afterEach(async () => {
  liar.alter({});
  honest.alter({});
  // what was unconfirmed is asked about again, and what was read of the newest blocks is forgotten
  for (let look = 0; look < 2; look++) {
    await service.work(LATER_MS);
    await service.mine(10);
  }
  expect(await service.findings()).toEqual([]);
}, TIMEOUT);

const word = (address: string): string => `0x${address.slice(2).padStart(64, '0')}`;
const hex = (amount: bigint): string => `0x${amount.toString(16)}`;
const height = async (): Promise<number> => Number(await service.anvil.rpc<string>('eth_blockNumber'));
const transferLog = (to: string, amount: bigint, { blockHash }: Receipt): Json => ({
  address: service.anvil.token,
  topics: [TRANSFER, word(STRANGER), word(to)],
  data: word(hex(amount)),
  blockHash,
  removed: false,
});
const strangers = async (): Promise<string> => (await service.anvil.send({ to: STRANGER, value: 1n })).hash;
async function payments(id: string): Promise<readonly bigint[]> {
  const { rows } = await service.db.query<{ amount: string }>({
    text: `select amount from payments where transaction_id = $1 and state = 'mined' order by amount`,
    values: [id],
  });
  return rows.map(({ amount }) => BigInt(amount));
}
const scriptOf = async (id: string): Promise<Uint8Array> => {
  const { rows } = await service.db.query<{ script: Buffer }>({
    text: 'select script from transactions where id = $1',
    values: [id],
  });
  return (rows[0] as { script: Buffer }).script;
};
/** A token's event that the first node makes up in this transaction. */
const madeUp = (txid: string, to: string, amount: bigint): Alteration =>
  receipts((one) => (one.transactionHash === txid ? { ...one, logs: [transferLog(to, amount, one)] } : one));
/** It answers everything but what is in blocks. */
const SAYS_NOTHING: Alteration = {
  instead: ({ method }) =>
    /ByHash$|Receipts?$|^debug_|^trace_/.test(method) ? { error: { code: -32005, message: 'limit exceeded' } } : null,
};

test('the last look-up of an unpaid transaction records nothing by one word', { timeout: TIMEOUT }, async () => {
  const { id, address } = await service.owe('USDT', 5_000_00n);
  const fromHeight = await height();
  const txid = await strangers();
  await service.mine(10);
  liar.alter(madeUp(txid, address, 5_000_000_000n));
  expect(await lookUpAgain(service.ctx, 'USDT', { fromHeight, scripts: [await scriptOf(id)] })).toBe(true);
  await service.mine(FINAL);
  expect([await payments(id), await service.status(id)]).toEqual([[], 'started']);
});

test.each(['denied', 'gone'])(
  'what the second reading has found of a payment that is taken back is read again: %s',
  {
    timeout: TIMEOUT,
  },
  async (how) => {
    honest.alter(SAYS_NOTHING);
    const { id, address } = await service.owe('USDT', 20_00n);
    const txid = await strangers();
    liar.alter(madeUp(txid, address, 20_000_000n));
    await service.mine(FINAL);
    expect([await payments(id), await service.status(id)]).toEqual([[20_000_000n], 'succeeded']);
    while ((await reconcile(service.ctx, 'USDT')).more);
    honest.alter({});
    if (how === 'gone') liar.alter({});
    await service.mine(10);
    await service.work(LATER_MS);
    await service.settle();
    expect(await payments(id)).toEqual([]);
    expect((await service.findings()).filter((one) => !/INV-10/.test(one))).toEqual([]);
  },
);

/** Both nodes have read more blocks since than is kept of what they said of each. */
async function forgotten(): Promise<void> {
  for (let n = 0; n < 7; n++) {
    const { address } = await service.owe('USDT', 20_00n);
    await service.pay('USDT', address, 20_000_000n);
    await service.mine();
  }
}

test('a payment of both nodes that one of them denies later stays in the second reading', { timeout: TIMEOUT }, async () => {
  const { id, address } = await service.owe('USDT', 20_00n);
  await service.pay('USDT', address, 20_000_000n);
  await service.mine(FINAL);
  expect(await service.status(id)).toBe('succeeded');
  await forgotten();
  honest.alter(receipts((one) => ({ ...one, logs: one.logs.filter(({ topics }) => topics[2] !== word(address)) })));
  await service.findings();
  honest.alter({});
  expect(await service.findings()).toEqual([]);
});

test('a payment that was denied while the second reading passed it is read again when it is recorded', {
  timeout: TIMEOUT,
}, async () => {
  const { id, address } = await service.owe('USDT', 20_00n);
  await service.pay('USDT', address, 20_000_000n);
  honest.alter(receipts((one) => ({ ...one, logs: one.logs.filter(({ topics }) => topics[2] !== word(address)) })));
  await service.mine(FINAL);
  expect([await payments(id), await service.findings()]).toEqual([[], []]);
  honest.alter({});
  await service.work(LATER_MS);
  await service.settle();
  expect([await payments(id), await service.findings()]).toEqual([[20_000_000n], []]);
});

test('a second node that refuses what it is asked in one request stops nothing', { timeout: TIMEOUT }, async () => {
  honest.alter({
    instead: ({ method }) => (method === 'eth_getBlockReceipts' ? { error: { code: -32601, message: 'no such method' } } : null),
    batch: (calls) =>
      calls.some(({ method }) => method === 'eth_getTransactionReceipt')
        ? { error: { code: -32600, message: 'batch too large' } }
        : null,
  });
  const { id, address } = await service.owe('USDT', 20_00n);
  await service.pay('USDT', address, 20_000_000n);
  await service.mine(FINAL);
  expect([await payments(id), await service.status(id)]).toEqual([[20_000_000n], 'succeeded']);
});

test('many blocks of which nobody could say what they pay are asked about without pauses between them', {
  timeout: TIMEOUT,
}, async () => {
  honest.alter(SAYS_NOTHING);
  for (let n = 0; n < 12; n++) {
    const { address } = await service.owe('USDT', 20_00n);
    await service.pay('USDT', address, 20_000_000n);
    await service.mine();
  }
  const left = async (): Promise<number> =>
    (await service.db.query<{ n: number }>({ text: 'select count(*)::int as n from unconfirmed_blocks' })).rows[0]?.n ?? 0;
  expect(await left()).toBe(12);
  honest.alter({});
  await service.work(LATER_MS);
  for (let look = 0; look < 4; look++) {
    await service.settle();
    await service.work(1_100);
  }
  expect(await left()).toBe(0);
});
