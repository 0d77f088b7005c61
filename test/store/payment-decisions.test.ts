// What was decided of payments whose rows are not written yet: whoever reads it sees it as decided, and writing the rows changes nothing of
// that.
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { Payment } from '../../src/core/judge/case.ts';
import { readKnown } from '../../src/store/transactions/known-payments.ts';
import { keepDecisions, writeDecisions } from '../../src/store/transactions/payment-decisions.ts';
import { openServiceOnDatabase, type ServiceOnDatabase } from '../support/service-on-database.ts';

const contestedLimitMinor = 1_000_00n;
let service: ServiceOnDatabase;
let id: string;
beforeEach(async () => {
  service = await openServiceOnDatabase();
  ({ transactionId: id } = await service.create());
  await service.pay(id, [5_000n, 5_001n, 5_002n]);
});
afterEach(() => service.drop());

const read = () => readKnown(service.db, id, new Map(), { contestedLimitMinor });
const shown = async () => (await service.admin.query('select * from decided_payments order by id')).rows;
const rows = async () => (await service.admin.query('select * from payments order by id')).rows;

/** Every field of the judge's is another one than before. */
function decided(payment: Payment, n: number): Payment {
  const units = { credited: 11n, suspended: 12n, fee: 13n, inAvailable: 14n, inSuspense: 15n, inRefund: 16n, sentBack: 17n };
  const flags = { classified: n !== 1, present: true, wasLost: true, counted: true };
  return {
    ...payment,
    ...units,
    ...flags,
    onTimeMinor: 10n,
    owed: 18n,
    owedFee: 19n,
    valueRate: n === 2 ? null : 123_456_789n,
    judgedBlockHash: n === 2 ? null : 'aa',
    generation: 3,
    partKey: `dep:btc:${payment.txid}:${payment.vout}#4`,
    dueHeight: n === 2 ? null : 900,
    dueAtMs: n === 2 ? null : service.now(),
  };
}
async function keep(of: (payments: readonly Payment[]) => readonly Payment[]): Promise<void> {
  const payments = (await read()).payments.get(id) ?? [];
  await keepDecisions(
    service.db,
    of(payments).map((payment) => ({ transactionId: id, payment, nowMs: service.now() })),
  );
}

test('the view of what was decided has every column of payments, in its type', async () => {
  const columns = async (table: string) =>
    (
      await service.admin.query(
        'select column_name, data_type from information_schema.columns where table_name = $1 order by column_name',
        [table],
      )
    ).rows;
  expect(await columns('decided_payments')).toEqual(await columns('payments'));
});

test('it is shown as decided before the rows are written, and the same afterwards', async () => {
  const before = await rows();
  expect(await shown()).toEqual(before);
  await keep((payments) => payments.map(decided));
  const then = await shown();
  for (const [n, row] of then.entries()) {
    expect(row).toMatchObject({ credited: '11', owed_fee: '19', generation: 3, noticed_at: n === 1 ? null : expect.any(Date) });
  }
  expect(await rows(), 'no row is written yet').toEqual(before);
  expect((await read()).unwritten).toEqual(new Set([id]));
  expect(await service.db.transaction((sql) => writeDecisions(sql, id, 2))).toBe(true);
  expect(await shown()).toEqual(then);
  expect(await service.db.transaction((sql) => writeDecisions(sql, id, 2))).toBe(false);
  expect([await shown(), await rows()]).toEqual([then, then]);
  expect((await read()).unwritten).toEqual(new Set());
});

test('a payment of which something is kept is not decided again, and what its row would refuse is refused at once', async () => {
  await keep((payments) => payments.slice(0, 1));
  const [first, second] = [...(await readKnownAnyway())];
  const keepOne = (payment: Payment) => keepDecisions(service.db, [{ transactionId: id, payment, nowMs: service.now() }]);
  await expect(keepOne(first as Payment)).rejects.toThrow(/duplicate key/);
  for (const field of ['credited', 'inAvailable', 'inSuspense', 'owed'] as const)
    await expect(keepOne({ ...(second as Payment), [field]: -1n }), field).rejects.toThrow(/check constraint/);
  await expect(keepOne({ ...(second as Payment), valueRate: 0n })).rejects.toThrow(/check constraint/);
});

/** The payments as their rows are, although something of them is not written yet. */
async function readKnownAnyway(): Promise<readonly Payment[]> {
  const other = await service.create();
  await service.admin.query('update payment_decisions set transaction_id = $1', [other.transactionId]);
  const payments = (await read()).payments.get(id) ?? [];
  await service.admin.query('update payment_decisions set transaction_id = $1', [id]);
  return payments;
}
