// Ether that contracts sent in a block, read twice: by its calls, by balances, or by one after the other. It is recorded once, under the name that
// it got first, and what a second reading says counts for it only where the sums agree.
import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { BALANCE_PLACE } from '../../src/core/currencies/evm.ts';
import { sortableId } from '../../src/core/ids.ts';
import type { TransactionFacts } from '../../src/core/ports.ts';
import { asRecorded, paidInside } from '../../src/store/chain/inner-ether.ts';
import { recordSightings, takeBackAbove } from '../../src/store/chain/sightings.ts';
import { postEntries } from '../../src/store/ledger/ledger.ts';
import type { Database } from '../../src/store/postgres/connect.ts';
import { freshDatabase } from '../support/postgres.ts';

const T0 = Date.UTC(2026, 0, 1);
let db: Database;
let drop: () => Promise<void>;
let merchant: bigint;
let script: string;
let neighbour: string;
let height = 100;
let block: { height: number; hash: string; timeMs: number };
beforeAll(async () => {
  ({ db, drop } = await freshDatabase());
  const { rows } = await db.query<{ id: bigint }>({
    text: `insert into merchants (affiliate_id, email, business_name, created_at) values ('a', 'a@example.com', 'A', now()) returning id`,
  });
  merchant = (rows[0] as { id: bigint }).id;
});
afterAll(() => drop?.());
beforeEach(async () => {
  script = await owed();
  neighbour = await owed();
  height += 1;
  block = { height, hash: hash(`block ${height}`), timeMs: T0 };
});

/** The script of another transaction that waits for its payment. */
async function owed(): Promise<string> {
  const made = `65766d${randomBytes(20).toString('hex')}`;
  await db.query({
    text: `insert into transactions (id, merchant_id, currency, status, usd_minor, amount_due, rate, rate_at, rate_sources, tolerance_bps, late_payments,
                                     address, script, created_at, window_ends_at)
             values ($1, $2, 'ETH', 'started', 1000, 100000, 1, now(), '[]', 100, 'accept', $1, $3, now(), now())`,
    values: [sortableId('txn_', T0, randomBytes(10)), merchant, Buffer.from(made, 'hex')],
  });
  return made;
}

const hash = (text: string): string => `0x${Buffer.from(text.padEnd(32, '.')).toString('hex')}`;
const AT = BALANCE_PLACE + 7;
const byBalance = (amountMinor: bigint, ...more: readonly { readonly script: string; readonly amountMinor: bigint }[]) => ({
  ...{ txid: block.hash, coinbase: false, inputs: [], spends: [] },
  outputs: [{ script, amountMinor }, ...more].map((one) => ({ ...one, vout: AT, byBalance: true as const })),
});
/** A transaction that pays so much by itself (the first amount) and by calls. */
const calls = (name: string, ...amounts: readonly bigint[]): TransactionFacts => ({
  ...{ txid: hash(`${name} ${height}`), coinbase: false, inputs: [{ txid: name.padStart(64, '0'), vout: 1 }], spends: [] },
  outputs: amounts.flatMap((amountMinor, vout) => (amountMinor > 0n ? [{ vout, script, amountMinor }] : [])),
});
const record = (...seen: readonly TransactionFacts[]) =>
  db.transaction((sql) =>
    recordSightings(
      sql,
      'ETH',
      { block, caughtUpAtMs: T0, atMs: T0 },
      seen.map((facts) => ({ facts, seenAtMs: T0 })),
    ),
  );
const recorded = async (of = script): Promise<readonly bigint[]> =>
  (
    await db.query<{ amount: string }>({
      text: `select p.amount from payments p join transactions t on t.id = p.transaction_id where t.script = $1 and p.state = 'mined' order by 1`,
      values: [Buffer.from(of, 'hex')],
    })
  ).rows.map(({ amount }) => BigInt(amount));
/** What a second reading is taken for: what it shows still, and what it counts for. */
async function read(...seen: readonly TransactionFacts[]) {
  const { facts, instead } = await asRecorded(db, 'ETH', block.hash, seen);
  const sums = (all: readonly { readonly amountMinor: bigint }[]): readonly bigint[] => all.map(({ amountMinor }) => amountMinor);
  return { shown: sums(facts.flatMap(({ outputs }) => outputs)), instead: sums(instead) };
}

test('found by balance, then by calls: the same sum is the same, another one is neither', async () => {
  await record(byBalance(5n));
  expect(await read(byBalance(5n))).toEqual({ shown: [5n], instead: [] });
  expect(await read(calls('a', 0n, 2n, 3n))).toEqual({ shown: [], instead: [5n] });
  expect(await read(calls('a', 1n, 2n), calls('b', 0n, 3n))).toEqual({ shown: [1n], instead: [5n] });
  for (const other of [2n, 9n]) expect(await read(calls('a', 0n, other))).toEqual({ shown: [], instead: [] });
  await record(calls('a', 0n, 2n, 3n));
  await record(calls('a', 0n, 9n));
  await record(byBalance(5n));
  expect(await recorded()).toEqual([5n]);
});

test('found by calls, then by balance: the same sum is the same, more is the rest, less is nothing', async () => {
  await record(calls('a', 0n, 2n, 3n));
  expect(await read(byBalance(5n))).toEqual({ shown: [], instead: [2n, 3n] });
  expect(await read(byBalance(9n))).toEqual({ shown: [4n], instead: [2n, 3n] });
  expect(await read(byBalance(4n))).toEqual({ shown: [], instead: [] });
  expect(await read(calls('a', 0n, 2n, 3n), calls('b', 0n, 1n))).toEqual({ shown: [2n, 3n, 1n], instead: [] });
  await record(byBalance(5n));
  await record(byBalance(9n));
  await record(byBalance(9n));
  expect(await recorded()).toEqual([2n, 3n, 4n]);
  expect(await read(byBalance(9n))).toEqual({ shown: [], instead: [2n, 3n, 4n] });
});

test('half by calls and half by balance, then all by calls, is what it was', async () => {
  await record(calls('a', 7n, 2n), byBalance(3n));
  expect(await read(calls('a', 7n, 2n), calls('b', 0n, 3n))).toEqual({ shown: [7n], instead: [2n, 3n] });
  await record(calls('a', 7n, 2n), calls('b', 0n, 3n));
  expect(await recorded()).toEqual([2n, 3n, 7n]);
});

test('what transactions themselves pay, what a block pays by itself and tokens are left as they are', async () => {
  await record(calls('a', 7n));
  const fees: TransactionFacts = { ...byBalance(1n), coinbase: true, outputs: [{ vout: 1, script, amountMinor: 6n }] };
  await record(fees);
  expect(await read(calls('a', 7n), fees)).toEqual({ shown: [7n, 6n], instead: [] });
  expect(await read(byBalance(5n))).toEqual({ shown: [5n], instead: [] });
  await record(byBalance(5n));
  const tokens = [calls('b', 0n, 5n)];
  expect(await asRecorded(db, 'USDT', block.hash, tokens)).toEqual({ facts: tokens, instead: [] });
  expect(await asRecorded(db, 'ETH', hash('another'), tokens)).toEqual({ facts: tokens, instead: [] });
});

describe('two addresses whose places are the same', () => {
  const both = () => byBalance(5n, { script: neighbour, amountMinor: 6n });
  const second = (): TransactionFacts => ({ ...byBalance(5n), outputs: both().outputs.slice(1) });
  const atBoth = async () => [await recorded(), await recorded(neighbour)];

  test('are both paid in one block, and it is the same however often it is read', async () => {
    for (const reading of [both(), both(), second(), byBalance(5n)]) {
      await record(reading);
      expect(await atBoth()).toEqual([[5n], [6n]]);
    }
    expect(await read(both())).toEqual({ shown: [5n], instead: [6n] });
    expect(await read(second())).toEqual({ shown: [], instead: [6n] });
  });

  test('are both paid when one of them is found later', async () => {
    await record(second());
    await record(byBalance(5n));
    expect(await atBoth()).toEqual([[5n], [6n]]);
    await record(both());
    expect(await atBoth()).toEqual([[5n], [6n]]);
  });

  test('are both paid though the books have one at the place of the other, from a branch that comes back', async () => {
    const { block: first } = { block };
    await record(byBalance(5n));
    const { rows } = await db.query<{ id: string }>({
      text: 'select id from transactions where script = $1',
      values: [Buffer.from(script, 'hex')],
    });
    const key = `dep:eth:${block.hash}:${AT}`;
    const postings = [
      { account: 'asset:chain:ETH', amount: 5n },
      { account: `merchant:${merchant}:available:ETH`, amount: -5n },
    ];
    const entry = { key, kind: 'deposit', postings, parts: [{ key, amount: 5n, reversesKey: null }] };
    await postEntries(db, [{ entry, transactionId: rows[0]?.id ?? null, atMs: T0 }]);
    const replaced = () =>
      db.transaction((sql) =>
        takeBackAbove(sql, 'ETH', { height: block.height - 1, oldTip: block.height, newTip: block.height, atMs: T0 }),
      );
    await replaced();
    block = { ...block, hash: hash(`other ${height}`) };
    await record(byBalance(5n));
    await replaced();
    block = first;
    await record({ ...both(), outputs: both().outputs.toReversed() });
    expect(await atBoth()).toEqual([[5n], [6n]]);
  });

  test('are both there again after their block has been replaced and has come back', async () => {
    await record(both());
    const back = { ...both(), outputs: both().outputs.toReversed() };
    await db.transaction((sql) =>
      takeBackAbove(sql, 'ETH', { height: block.height - 1, oldTip: block.height, newTip: block.height, atMs: T0 }),
    );
    expect(await atBoth()).toEqual([[], []]);
    await record(back);
    expect(await atBoth()).toEqual([[5n], [6n]]);
  });
});

test('what a contract sends on that an address of ours has paid is a payment, and what that address sends itself is none', async () => {
  const ours = { txid: neighbour.slice(6).padStart(64, '0'), vout: 0 };
  await record({ ...calls('a', 7n, 2n), inputs: [ours] });
  expect(await recorded()).toEqual([2n]);
  await record(byBalance(2n));
  expect(await recorded()).toEqual([2n]);
});

test('the addresses at which contracts paid in a block are named, and no others', async () => {
  await record(calls('a', 7n));
  expect(await paidInside(db, 'ETH', block)).toEqual([]);
  await record(byBalance(5n));
  expect((await paidInside(db, 'ETH', block)).map((one) => one.toString('hex'))).toEqual([script]);
  expect(await paidInside(db, 'ETH', { ...block, hash: hash('another') })).toEqual([]);
  expect(await paidInside(db, 'USDT', block)).toEqual([]);
});
