// What of a transaction's outputs its sender had itself, where that is now, and what is booked of it.
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { Refusal } from '../../../src/core/refusal.ts';
import type { Context } from '../../../src/flow/context.ts';
import { type Beside, bookBeside, fateOf, fateOfCalled, fatesOf } from '../../../src/flow/sweeps/sent-beside.ts';
import { insertWriteOff } from '../../../src/store/sweeps/written-off.ts';
import { portsFor } from '../../support/ports.ts';
import { freshDatabase } from '../../support/postgres.ts';

const AT_MS = Date.UTC(2026, 5, 1);
const TXID = `0x${'a1'.repeat(32)}`;
const scriptOf = (address: string): string => `65766d${address.repeat(20)}`;
/** Nobody's, two addresses that payouts leave from, and the sender's. */
const [NOBODY, ETHER, DOLLARS, SENDER] = ['5a', 'e1', 'd1', '5e'].map(scriptOf) as [string, string, string, string];

let database: Awaited<ReturnType<typeof freshDatabase>>;
let ctx: Context;
const rows = async (text: string, values: readonly unknown[] = []) =>
  (await database.db.query({ text, values: [...values] })).rows;
beforeAll(async () => {
  database = await freshDatabase();
  ctx = { db: database.db, ports: portsFor('regtest', { now: () => AT_MS }) } as Context;
  await rows(`insert into account_xpubs (currency, xpub, origin, created_at) values ('ETH', 'x', 'signer', now())`);
  for (const [at, currency, script] of [
    [0, 'ETH', ETHER],
    [1, 'USDT', DOLLARS],
  ])
    await rows(
      `insert into own_addresses (account_xpub_id, address_index, currency, script) select id, $1, $2, decode($3, 'hex') from account_xpubs`,
      [at, currency, script],
    );
});
afterAll(() => database.drop());

const paid = (vout: number, amountMinor: bigint, script = NOBODY) => ({ vout, script, amountMinor });
const beside = (currency: Beside['currency'], ...outputs: readonly ReturnType<typeof paid>[]): Beside => ({
  currency,
  facts: { txid: TXID, coinbase: false, inputs: [], spends: [], outputs },
});
const refused = (what: string): Refusal => new Refusal('not_resolvable', { message: what });
const fates = (all: readonly Beside[], acceptsLoss = true) => fatesOf(database.db, { beside: all, acceptsLoss }, refused);

test('what a contract has sent on in the same transaction is neither lost nor arrived', async () => {
  const outputs = [paid(0, 5n), { ...paid(1, 7n), sentOn: true as const }, paid(2, 11n)];
  expect(await fateOf(database.db, outputs)).toEqual({ arrived: new Map(), lost: 16n });
  expect(await fateOf(database.db, outputs.slice(1, 2))).toEqual({ arrived: new Map(), lost: 0n });
});

test('what is at an address of ours has arrived, all of it together, and the rest is lost', async () => {
  const outputs = [paid(0, 5n, ETHER), paid(1, 7n), paid(2, 11n, ETHER), paid(3, 13n, DOLLARS)];
  const arrived = new Map([
    [ETHER, 16n],
    [DOLLARS, 13n],
  ]);
  expect(await fateOf(database.db, outputs)).toEqual({ arrived, lost: 7n });
});

test('what others have made it send has arrived only where nobody looks for that currency', async () => {
  const [ether, dollars] = [paid(0, 5n, ETHER), paid(1, 7n, DOLLARS)];
  expect(await fateOfCalled(database.db, beside('USDT', ether, dollars))).toEqual({ arrived: new Map([[ETHER, 5n]]), lost: 7n });
  expect(await fateOfCalled(database.db, beside('ETH', ether, dollars))).toEqual({ arrived: new Map([[DOLLARS, 7n]]), lost: 5n });
});

describe('in each currency', () => {
  test('what has left counts, be it lost or with us, and nothing else', async () => {
    const all = [beside('ETH'), beside('USDT', paid(0, 1n)), beside('ETH', paid(0, 5n, DOLLARS))];
    expect(await fates(all)).toEqual([
      { currency: 'USDT', arrived: new Map(), lost: 1n },
      { currency: 'ETH', arrived: new Map([[DOLLARS, 5n]]), lost: 0n },
    ]);
  });

  test('a loss that nobody accepts is refused, and what is with us needs no word', async () => {
    await expect(fates([beside('USDT', paid(0, 1n))], false)).rejects.toThrow('--accept-loss');
    expect(await fates([beside('USDT', paid(0, 1n, ETHER))], false)).toHaveLength(1);
  });
});

describe('booked', () => {
  const block = { height: 7, hash: `0x${'b1'.repeat(32)}` };
  const books = async (all: readonly Beside[], batchId: string | null, txid = TXID) => {
    const of = { facts: { txid }, block, by: 'operator test', acceptsLoss: true, batchId, script: Buffer.from(SENDER, 'hex') };
    return bookBeside(ctx, database.db, of, await fates(all));
  };
  /** What was written off since. */
  const off = (after: number) =>
    rows(
      `select currency, encode(script, 'hex') as script, amount::int as amount, batch_id as batch, left_by as by from written_off
        order by id offset $1`,
      [after],
    );
  const lost = async (currency: string): Promise<bigint> =>
    BigInt(
      (
        await rows('select coalesce(sum(amount), 0) as amount from ledger.account_balance where code = $1', [
          `expense:unknown_outflow:${currency}`,
        ])
      )[0]?.amount,
    );

  test('all of it is gone from its sender, what has arrived is there, and what is lost is an expense', async () => {
    const [dollars, ether] = [beside('USDT', paid(0, 1n), paid(1, 7n, ETHER)), beside('ETH', paid(0, 5n, DOLLARS))];
    expect(await books([dollars, ether], null)).toEqual([{ currency: 'USDT', lost: 1n }]);
    expect(await off(0)).toEqual([
      { currency: 'USDT', script: SENDER, amount: 8, batch: null, by: TXID },
      { currency: 'USDT', script: ETHER, amount: -7, batch: null, by: null },
      { currency: 'ETH', script: SENDER, amount: 5, batch: null, by: TXID },
      { currency: 'ETH', script: DOLLARS, amount: -5, batch: null, by: null },
    ]);
    expect(await Promise.all(['USDT', 'ETH'].map(lost))).toEqual([1n, 0n]);
  });

  test('what has left beside a batch is that of the batch', async () => {
    const [other, before] = [`0x${'a2'.repeat(32)}`, (await off(0)).length];
    expect(await books([beside('USDT', paid(0, 3n))], 'a batch', other)).toEqual([{ currency: 'USDT', lost: 3n }]);
    expect(await off(before)).toEqual([{ currency: 'USDT', script: SENDER, amount: 3, batch: 'a batch', by: null }]);
  });

  test('a payment that has left its address waits for no sweep, and one that lies there does', async () => {
    const [from, to] = ['f1', 'f2'].map(scriptOf) as [string, string];
    for (const script of [from, to]) {
      await rows(
        `insert into transactions (id, merchant_id, currency, status, usd_minor, amount_due, rate, rate_at, rate_sources, tolerance_bps, late_payments,
                                   address, script, created_at, window_ends_at)
           values ($1, 1, 'USDT', 'succeeded', 1000, 1000, 1, now(), '[]', 0, 'accept', $1, decode($1, 'hex'), now(), now())`,
        [script],
      );
      await rows(
        `insert into payments (transaction_id, currency, txid, vout, amount, twin_key, state, height, block_hash, seen_at, caught_up_at, found_mined,
                               part_key, spent)
           values ($1, 'USDT', $1, 0, 9, '', 'mined', 5, '0xb5', now(), now(), true, $1, $2)`,
        [script, script === to],
      );
    }
    // it was swept, by what is known
    const swept = { currency: 'USDT', script: Buffer.from(to, 'hex'), amount: 9n, block, batchId: null } as const;
    await insertWriteOff(database.db, { ...swept, by: 'operator test', evidence: 'it has left', atMs: AT_MS });
    const of = { facts: { txid: `0x${'a3'.repeat(32)}` }, block, by: 'operator test', acceptsLoss: true, batchId: null };
    await bookBeside(
      ctx,
      database.db,
      { ...of, script: Buffer.from(from, 'hex') },
      await fates([beside('USDT', paid(0, 9n, to))]),
    );
    expect(await rows('select transaction_id as at, spent from payments order by transaction_id')).toEqual([
      { at: from, spent: true },
      { at: to, spent: false },
    ]);
  });
});
