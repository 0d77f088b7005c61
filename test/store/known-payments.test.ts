// The known payments of a large transaction from one verdict to the next: whatever watchers, judge and prices do in between, the judge gets
// what one reading of everything would have shown.
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { Payment } from '../../src/core/judge/case.ts';
import type { Sql } from '../../src/store/postgres/connect.ts';
import { type ChainFacts, readChainFacts } from '../../src/store/transactions/case-facts.ts';
import {
  createKnownCases,
  type KnownPayments,
  MuchChanged,
  readAhead,
  readKnown,
} from '../../src/store/transactions/known-payments.ts';
import { randomBelow } from '../support/random.ts';
import { openServiceOnDatabase, type Sent, type ServiceOnDatabase } from '../support/service-on-database.ts';

const MINUTE = 60_000;
const contestedLimitMinor = 1_000_00n;
let service: ServiceOnDatabase;
beforeEach(async () => {
  service = await openServiceOnDatabase();
});
afterEach(() => service.drop());

const readAll = (id: string) => readChainFacts(service.db, [id], contestedLimitMinor);
const read = (id: string, known: KnownPayments, sql: Sql = service.db) => readKnown(sql, id, known, { contestedLimitMinor });

/** Neither booked nor to be booked: what was replaced, of which a large transaction reads only what matters. */
const isReplaced = (one: Payment): boolean =>
  one.state === 'conflicted' && !one.present && one.generation === 0 && one.owed === 0n;
const withoutReplaced = ({ payments, ...facts }: ChainFacts) => ({
  ...facts,
  payments: new Map([...payments].map(([id, all]) => [id, all.filter((one) => !isReplaced(one))])),
});

test.each([1, 2, 3, 4])('after every move it is what one reading of all shows (seed %i)', { timeout: 60_000 }, async (seed) => {
  const roll = randomBelow(seed);
  const { transactionId: id } = await service.create();
  const waiting: Sent[] = [];
  const moves: readonly (() => Promise<unknown>)[] = [
    async () => waiting.push(await service.pay(id, [BigInt(600 + roll(1_000)), 700n])),
    async () => waiting.push(await service.pay(id, 50_000n)),
    () => service.pay(id, 90_000n, { currency: 'LTC' }),
    () => service.mine(1 + roll(3)).then(() => waiting.splice(0)),
    () => service.mine(1, 'LTC'),
    () => service.judge(),
    () => service.judge(),
    () => service.rate(`${90_000 + roll(20_000)}.00`),
    () => service.wait(roll(2) === 0 ? MINUTE : 20 * MINUTE),
    () => service.vanish('BTC', 1).then(() => waiting.splice(0)),
    async () => {
      const sent = waiting.pop();
      if (sent !== undefined) await service.evict(sent);
    },
    async () => {
      const sent = waiting.at(-1);
      if (sent === undefined) return;
      waiting.push(await service.pay(id, [800n, 801n], { inputs: sent.facts.inputs }));
    },
    () => service.admin.query(`update payments set lock = 'chainlock' where transaction_id = $1 and vout = 0`, [id]),
  ];
  const known: KnownPayments = new Map();
  for (let n = 0; n < 40; n++) {
    await moves[roll(moves.length)]?.();
    if (roll(3) === 0) await readAhead(service.db, id, known);
    if (roll(3) === 0) continue;
    expect(withoutReplaced(await read(id, known)), `after move ${n}`).toEqual(withoutReplaced(await readAll(id)));
  }
});

test('what is known is not read again, and much that has changed is not read where it may not be', async () => {
  const { transactionId: id } = await service.create();
  await service.pay(id, [600n, 601n, 602n]);
  const known: KnownPayments = new Map();
  const asked: string[] = [];
  const sql: Sql = {
    query: (statement) => {
      asked.push(statement.name ?? '');
      return service.db.query<never>(statement);
    },
  };
  await expect(readKnown(sql, id, known, { contestedLimitMinor, most: 2 })).rejects.toThrow(MuchChanged);
  expect(asked.splice(0)).toEqual(['read_payment_versions']);
  await readAhead(sql, id, known);
  expect(asked.splice(0)).toEqual(['read_payment_versions', 'read_changed_payments']);
  expect(await readKnown(sql, id, known, { contestedLimitMinor, most: 0 })).toEqual(await readAll(id));
  expect(asked).toEqual(['read_payment_versions', 'read_arrival_rates']);
});

test('a payment that changes while it is read is not mixed with an older tip', async () => {
  const { transactionId: id } = await service.create();
  await service.pay(id, 50_000n);
  const known: KnownPayments = new Map();
  const asked: string[] = [];
  const sql: Sql = {
    async query(statement) {
      asked.push(statement.name ?? '');
      if (asked.join(' ') === 'read_payment_versions read_changed_payments') await service.mine(2);
      return service.db.query<never>(statement);
    },
  };
  const facts = await read(id, known, sql);
  expect(facts).toEqual(await readAll(id));
  expect(facts.chains.get('BTC')?.tipHeight).toBe(102);
  expect(asked).toEqual(['read_payment_versions', 'read_changed_payments', 'read_payment_versions', 'read_arrival_rates']);
});

test('payments that no longer exist are forgotten, and of many transactions those that were decided last are kept', async () => {
  const { transactionId: id } = await service.create();
  await service.pay(id, [600n, 601n]);
  const known: KnownPayments = new Map();
  await read(id, known);
  await service.admin.query('delete from payments where transaction_id = $1 and vout = 1', [id]);
  expect(await read(id, known)).toEqual(await readAll(id));
  expect(known.size).toBe(1);

  const cases = createKnownCases(5);
  const fill = (name: string, count: number): KnownPayments => {
    const one = cases.of(name);
    const [first] = known.values();
    for (let n = 0; n < count; n++) one.set(n, first as never);
    return one;
  };
  fill('a', 2);
  const b = fill('b', 2);
  fill('c', 2);
  expect([cases.of('b'), cases.of('a').size]).toEqual([b, 0]);
});
