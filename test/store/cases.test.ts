// The judge's cases in the database: what is written is what is read again, field by field; statuses are guarded by the old one; balances
// are locked before a posting depends on them.
import { afterAll, beforeAll, expect, test } from 'vitest';
import { BalancesNeeded, type Case, type Payment } from '../../src/core/judge/case.ts';
import { judge } from '../../src/core/judge/judge.ts';
import { within } from '../../src/flow/context.ts';
import { decide } from '../../src/flow/transactions/decide.ts';
import { readFacts } from '../../src/flow/transactions/facts.ts';
import { lockBalances } from '../../src/store/ledger/ledger.ts';
import { readBlocks, readChainFacts } from '../../src/store/transactions/case-facts.ts';
import { type LockedTransaction, lockTransactions } from '../../src/store/transactions/cases.ts';
import { writeCases } from '../../src/store/transactions/verdicts.ts';
import { openServiceOnDatabase, type ServiceOnDatabase } from '../support/service-on-database.ts';

const MINUTE = 60_000;
let service: ServiceOnDatabase;
beforeAll(async () => {
  service = await openServiceOnDatabase({ feeBps: 100 });
});
afterAll(async () => {
  expect(await service.findings()).toEqual([]);
  await service.drop();
});

const lock = async (id: string): Promise<LockedTransaction> => (await lockTransactions(service.db, [id], { wait: true }))[0]!;
const paymentsOf = async (id: string): Promise<Payment[]> => [
  ...(await readChainFacts(service.db, [id], 1_000_00n)).payments.get(id)!,
];

async function load(id: string): Promise<Case> {
  const { transaction } = await lock(id);
  const { chains, payments } = await readChainFacts(service.db, [id], 1_000_00n);
  return {
    transaction,
    payments: payments.get(id)!,
    nowMs: service.now(),
    chains,
    blocks: new Map(),
    feeBps: 100,
    settlementMs: 86_400_000,
    balances: null,
    refunds: [],
    steps: [],
  };
}

test('a verdict comes back as it was written, every field of the transaction and its payments', async () => {
  const { transactionId } = await service.create();
  await service.pay(transactionId, [40_000n, 30_000n]);
  await service.pay(transactionId, 5n, { currency: 'LTC' });
  await service.mine();
  await service.mine(2, 'LTC');
  const it = await load(transactionId);
  expect(() => judge(structuredClone(it))).toThrow(BalancesNeeded);
  const ready: Case = { ...it, balances: await lockBalances(service.db, service.merchantId, ['BTC', 'LTC']) };
  const before = await lock(transactionId);
  const verdict = judge(ready);
  const { transaction, payments, steps } = ready;
  await service.db.transaction((sql) =>
    writeCases(sql, [
      { before, transaction, payments, later: [], steps, verdict, confirmations: 1, nowMs: service.now(), more: false },
    ]),
  );
  const again = await load(transactionId);
  expect(again.transaction).toEqual(ready.transaction);
  expect(again.payments).toEqual(ready.payments);
  expect(again.payments.map((payment) => [payment.currency, payment.credited, payment.fee, payment.inSuspense])).toEqual([
    ['BTC', 40_000n, 400n, 0n],
    ['BTC', 10_000n, 100n, 20_000n],
    ['LTC', 0n, 0n, 5n],
  ]);
  const row = await service.row(transactionId);
  expect([row.crypto_received, row.confirmed_from_height, row.confirmed_from_currency]).toEqual(['70000', 101, 'BTC']);
  expect(judge(again), 'asked again, nothing is added').toEqual(verdict);
  expect(again.steps).toEqual([]);
});

test('a payment that the verdict takes back and books anew keeps its history of keys', async () => {
  const { transactionId } = await service.create();
  const sent = await service.pay(transactionId, 50_000n);
  await service.mine();
  await service.judge();
  await service.reorganise([sent]);
  await service.judge();
  const [lost] = await paymentsOf(transactionId);
  expect(lost).toMatchObject({
    generation: 1,
    owed: 49_500n,
    owedFee: 500n,
    wasLost: true,
    partKey: null,
    inAvailable: 0n,
  });
  const { rows } = await service.admin.query(
    `select e.kind, d.reverses from ledger.entry e join ledger.part d on d.entry_id = e.id where e.transaction_id = $1 order by e.id`,
    [transactionId],
  );
  expect(rows).toEqual([
    { kind: 'deposit', reverses: null },
    { kind: 'deposit_lost', reverses: `dep:btc:${sent.facts.txid}:0` },
  ]);
});

test('the status is guarded by the old one: a verdict on an old case is not written', async () => {
  const { transactionId } = await service.create();
  const it = await load(transactionId);
  const verdict = judge(it);
  const locked = await lock(transactionId);
  const before = { ...locked, transaction: { ...locked.transaction, status: 'pending' as const } };
  const stale = {
    before,
    transaction: it.transaction,
    payments: [],
    later: [],
    steps: [],
    verdict,
    confirmations: 0,
    nowMs: service.now(),
    more: false,
  };
  await expect(service.db.transaction((sql) => writeCases(sql, [stale]))).rejects.toThrow('is no longer pending');
});

test('the events are numbered without gaps, with what was before, and both statuses of a booking', async () => {
  const { transactionId } = await service.create();
  await service.pay(transactionId, 50_000n);
  await service.pay(transactionId, 10_000n);
  await service.judge();
  await service.mine();
  await service.judge();
  const { rows } = await service.admin.query(
    'select sequence, type, status, previous, data from events where object_id = $1 order by sequence',
    [transactionId],
  );
  expect(rows.map((row) => [row.sequence, row.type, row.status, row.previous])).toEqual([
    [1, 'transaction.started', 'started', null],
    [2, 'transaction.pending', 'pending', 'started'],
    [3, 'transaction.confirmed', 'confirmed', 'pending'],
    [4, 'transaction.succeeded', 'succeeded', 'confirmed'],
  ]);
  expect(rows[3].data).toMatchObject({ rule: 5, shown: { received: '60000', confirmations: 1 } });
  await service.pay(transactionId, 700n);
  await service.judge();
  const last = await service.admin.query(
    'select sequence, type, status, data from events where object_id = $1 order by sequence desc limit 1',
    [transactionId],
  );
  expect(last.rows[0]).toMatchObject({
    sequence: 5,
    type: 'transaction.extra_payment',
    status: 'succeeded',
    data: { amount: '0.00000700' },
  });
});

test('a change of status is announced to those who wait, once it is committed', async () => {
  const notified: string[] = [];
  const { transactionId } = await service.create();
  const stop = await service.db.listen(
    ['transaction_changed'],
    (_channel, payload) => notified.push(payload),
    () => undefined,
  );
  await service.pay(transactionId, 50_000n);
  await service.db
    .transaction(async (sql) => {
      await decide(
        within(service.ctx, sql, () => undefined),
        transactionId,
      );
      throw new Error('undo');
    })
    .catch(() => undefined);
  await service.judge();
  const deadline = Date.now() + 5_000;
  while (notified.length === 0 && Date.now() < deadline) await service.db.query({ text: 'select pg_sleep(0.01)' });
  expect(notified).toEqual([transactionId]);
  await stop();
});

test('the rate of arrival is the last one before, at most five minutes old, else the first one after', async () => {
  await service.rate('90000.00');
  const { transactionId } = await service.create();
  await service.pay(transactionId, 5_000n);
  await service.rate('100000.00');
  const [first] = await paymentsOf(transactionId);
  expect(first!.arrivalRate).toBeDefined();
  await service.admin.query('delete from rate_history');
  const [none] = await paymentsOf(transactionId);
  expect(none!.arrivalRate).toBeNull();
  await service.admin.query(`insert into rate_history (currency, at, usd) values ('BTC', $1, 70000)`, [
    new Date(service.now() + MINUTE),
  ]);
  const [after] = await paymentsOf(transactionId);
  expect(after!.arrivalRate).toBe(70_000n * 10n ** 8n);
  await service.admin.query(`insert into rate_history (currency, at, usd) values ('BTC', $1, 60000)`, [
    new Date(service.now() - 4 * MINUTE),
  ]);
  const [before] = await paymentsOf(transactionId);
  expect(before!.arrivalRate).toBe(60_000n * 10n ** 8n);
  await service.admin.query(`update rate_history set at = $1 where usd = 60000`, [new Date(service.now() - 6 * MINUTE)]);
  expect((await paymentsOf(transactionId))[0]!.arrivalRate).toBe(70_000n * 10n ** 8n);
});

test('dates of blocks are read for the heights that are asked, and for late ones the rate of that date', async () => {
  const { rows } = await service.admin.query(
    `select height, time from blocks where currency = 'BTC' order by height desc limit 1`,
  );
  const [{ height, time }] = rows as [{ height: number; time: Date }];
  const timeMs = time.getTime();
  await service.admin.query('delete from rate_history');
  const rates = async (offsetMs: number, ratesAfterMs: number) => {
    if (offsetMs !== 0) {
      await service.admin.query(`insert into rate_history (currency, at, usd) values ('BTC', $1, $2)`, [
        new Date(timeMs + offsetMs),
        100_000 + offsetMs / MINUTE,
      ]);
    }
    const wanted = { currency: 'BTC' as const, heights: [height, 999_999], ratesAfterMs };
    const options = { tips: new Map(), nowMs: timeMs + 60 * MINUTE };
    const [blocks] = (await readBlocks(service.db, [wanted], options))!;
    expect([...blocks!.keys()]).toEqual([height]);
    expect(blocks!.get(height)?.timeMs).toBe(timeMs);
    return blocks!.get(height)?.rate;
  };
  expect(await rates(0, timeMs - 1)).toBeNull();
  expect(await rates(30 * MINUTE, timeMs)).toBeNull();
  expect(await rates(20 * MINUTE, timeMs - 1)).toBe(100_020n * 10n ** 8n);
  expect(await rates(-6 * MINUTE, timeMs - 1)).toBe(100_020n * 10n ** 8n);
  expect(await rates(-4 * MINUTE, timeMs - 1)).toBe(99_996n * 10n ** 8n);
});

test('payments are read again while the chain reorganises under the reading, five times at most', async () => {
  const { transactionId } = await service.create();
  await service.pay(transactionId, 1_000n);
  await service.mine();
  const locked = [await lock(transactionId)];
  const reading = async (reorganisations: number) => {
    let readings = 0;
    const [facts] = await readFacts(service.ctx, service.db, locked, async (ids) => {
      const found = await readChainFacts(service.db, ids, 1_000_00n);
      if (readings++ < reorganisations) await service.reorganise([]);
      return found;
    });
    return { readings, payments: facts?.payments.length, blocks: facts?.blocks.size };
  };
  expect(await reading(0)).toEqual({ readings: 1, payments: 1, blocks: 1 });
  expect(await reading(4)).toEqual({ readings: 5, payments: 1, blocks: 1 });
  await expect(reading(5)).rejects.toThrow(`the chain reorganised 5 times while the payments of ${transactionId} were read`);
  expect(await readFacts(service.ctx, service.db, [])).toEqual([]);
});
