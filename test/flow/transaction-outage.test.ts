// A transaction's life through outages and clocks that do not go together, on a real database: what a watcher finds late is told in the order
// in which it happened, and no timer is missed because another chain's clock was asked.
import { randomBytes } from 'node:crypto';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { TransactionFacts } from '../../src/core/ports.ts';
import { reconsider, resolveTransaction } from '../../src/flow/transaction-life.ts';
import { checkTransaction } from '../../src/flow/transaction-reads.ts';
import { insertBlock, moveCursor, readCursor, setCaughtUp } from '../../src/store/blocks.ts';
import { compareWithMempool, readUnmined, recordMempoolChanges, recordSightings } from '../../src/store/chain-facts.ts';
import { type House, openHouse } from '../support/house.ts';

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
type Chain = 'BTC' | 'LTC';
let house: House;
beforeEach(async () => {
  house = await openHouse();
});
afterEach(async () => {
  expect(await house.findings()).toEqual([]);
  await house.drop();
});

const hash = () => randomBytes(32).toString('hex');
const statusOf = async (transactionId: string) =>
  (await checkTransaction(house.ctx, { merchantId: house.merchantId, transactionId }))?.status;
const cursorOf = async (currency: Chain) => (await readCursor(house.db, currency))!;

async function payment(
  transactionId: string,
  amountMinor: bigint,
  inputs = [{ txid: hash(), vout: 0 }],
): Promise<TransactionFacts> {
  const { rows } = await house.admin.query(`select encode(script, 'hex') as script from transactions where id = $1`, [
    transactionId,
  ]);
  return { txid: hash(), coinbase: false, inputs, outputs: [{ vout: 0, script: rows[0].script, amountMinor }], spends: [] };
}
/** Reads a block that was dated earlier. */
async function readBlock(currency: Chain, facts: readonly TransactionFacts[], timeMs: number): Promise<void> {
  const cursor = await cursorOf(currency);
  const block = { height: cursor.height + 1, hash: hash(), previousHash: cursor.hash, timeMs };
  const context = { block, caughtUpAtMs: cursor.caughtUpAtMs, atMs: house.now() };
  await house.db.transaction(async (sql) => {
    await moveCursor(sql, currency, cursor, block, house.now());
    await insertBlock(sql, currency, block);
    await recordSightings(
      sql,
      currency,
      context,
      facts.map((one) => ({ facts: one, seenAtMs: house.now() })),
    );
  });
}
async function readMempool(currency: Chain, facts: readonly TransactionFacts[], seenAtMs = house.now()): Promise<void> {
  const { caughtUpAtMs } = await cursorOf(currency);
  await house.db.transaction((sql) =>
    recordSightings(
      sql,
      currency,
      { block: null, caughtUpAtMs, atMs: house.now() },
      facts.map((one) => ({ facts: one, seenAtMs })),
    ),
  );
}
/** The whole mempool is compared. */
async function listMempool(currency: Chain, facts: readonly TransactionFacts[]): Promise<void> {
  const listed = new Set(facts.map((one) => one.txid));
  await house.db.transaction(async (sql) =>
    recordMempoolChanges(sql, currency, compareWithMempool(await readUnmined(sql, currency, 0), listed, house.now())),
  );
}
/** Time passes while no chain is read. */
async function outage(ms: number): Promise<void> {
  const { rows } = await house.admin.query('select currency, caught_up_at from chain_cursors');
  await house.wait(ms);
  for (const row of rows) {
    await house.admin.query('update chain_cursors set caught_up_at = $2 where currency = $1', [row.currency, row.caught_up_at]);
  }
}

describe('found after an outage', () => {
  test('paid and mined in the window, found after W + 24 h at a lower price: the quote is honoured', async () => {
    for (const usdMinor of [50_00n, 150_00n]) {
      await house.rate('100000.00');
      const { transactionId } = await house.create(usdMinor);
      const paidAtMs = house.now() + 5 * MINUTE;
      await outage(25 * HOUR);
      await house.rate('80000.00');
      await readBlock('BTC', [await payment(transactionId, usdMinor * 10n)], paidAtMs);
      await readBlock('BTC', [], paidAtMs + MINUTE);
      await house.judge();
      expect(await statusOf(transactionId)).toBe('succeeded');
      await house.catchUp();
    }
  });

  test('a late one in the mempool, which came before the block of the one on time was read, does not stand before it', async () => {
    const { transactionId } = await house.create();
    const createdAtMs = house.now();
    await house.admin.query(`update transactions set late_payments = 'review'`);
    await outage(4 * HOUR);
    await readBlock('BTC', [await payment(transactionId, 50_000n)], createdAtMs + 5 * MINUTE);
    await readMempool('BTC', [await payment(transactionId, 50_000n)], createdAtMs + 3 * HOUR);
    await house.catchUp();
    await house.judge();
    expect(await house.path(transactionId)).toEqual(['started', 'pending', 'confirmed', 'succeeded']);
    expect(await house.available()).toBe(50_000n);
  });

  test('a late one in a block is worth what it was worth at the date of the block', async () => {
    const { transactionId } = await house.create();
    const createdAtMs = house.now();
    await house.wait(3 * HOUR);
    await outage(30 * MINUTE);
    await house.rate('50000.00');
    await readBlock('BTC', [await payment(transactionId, 50_000n)], createdAtMs + 3 * HOUR);
    await house.catchUp();
    await house.judge();
    expect(await statusOf(transactionId)).toBe('succeeded');
  });
});

test('in review the confirmations are the least of all payments, however each chain grows', async () => {
  const { transactionId } = await house.create();
  await house.admin.query(`update transactions set late_payments = 'review'`);
  await house.wait(3 * HOUR);
  await house.catchUp();
  await house.judge();
  const shown = async () => {
    await house.judge();
    const checked = await checkTransaction(house.ctx, { merchantId: house.merchantId, transactionId });
    return [checked?.status, checked?.confirmations];
  };
  await readBlock('BTC', [await payment(transactionId, 50_000n)], house.now());
  await readBlock('LTC', [await payment(transactionId, 50_000n)], house.now());
  expect(await shown()).toEqual(['review', 1]);
  for (let n = 0; n < 8; n++) await readBlock('BTC', [], house.now());
  expect(await shown()).toEqual(['review', 1]);
  await readBlock('LTC', [], house.now());
  expect(await shown()).toEqual(['review', 2]);
});

test('a payment that was on time and was replaced before anyone looked leaves its place to the one that replaced it', async () => {
  const { transactionId } = await house.create();
  await house.admin.query(`update transactions set late_payments = 'review'`);
  const first = await payment(transactionId, 50_000n);
  await house.wait(15 * MINUTE + 50 * SECOND);
  await readMempool('BTC', [first]);
  await house.wait(20 * SECOND);
  const second = await payment(transactionId, 50_001n, [...first.inputs] as { txid: string; vout: number }[]);
  await readMempool('BTC', [second]);
  await house.judge();
  await readBlock('BTC', [second], house.now());
  await house.catchUp();
  await house.judge();
  expect(await statusOf(transactionId)).toBe('succeeded');
});

test('a payment whose rival has left the mempool too is not waited for beyond its 72 hours', async () => {
  const { transactionId } = await house.create();
  const kept = await payment(transactionId, 30_000n);
  const lost = await payment(transactionId, 10_000n);
  await readMempool('BTC', [kept, lost]);
  await house.judge();
  const rival = { ...lost, txid: hash(), outputs: [], spends: lost.inputs };
  await readMempool('BTC', [rival]);
  await listMempool('BTC', [kept, rival]);
  await house.judge();
  await listMempool('BTC', [kept]);
  await readBlock('BTC', [kept], house.now());
  await house.catchUp();
  await house.judge();
  await house.wait(71 * HOUR);
  await house.judge();
  expect(await statusOf(transactionId)).toBe('pending');
  await house.wait(HOUR);
  await house.judge();
  expect(await statusOf(transactionId)).toBe('declined');
});

describe('a credited payment in another coin that is nowhere', () => {
  async function credited(): Promise<string> {
    const { transactionId } = await house.create();
    await house.pay(transactionId, 100_000_000n, { currency: 'LTC' });
    await house.mine(12, 'LTC');
    await house.judge();
    await resolveTransaction(house.ctx, {
      merchantId: house.merchantId,
      transactionId,
      action: 'accept',
      part: 'excess',
      destination: null,
    });
    expect(await house.available('LTC')).toBe(100_000_000n);
    await house.vanish('LTC', 12);
    await house.judge();
    return transactionId;
  }

  test('is lost after ten minutes on its own chain, though the other chain was read a moment before', async () => {
    await credited();
    await outage(10 * MINUTE);
    await setCaughtUp(house.db, 'BTC', await cursorOf('BTC'), house.now());
    await house.judge();
    expect(await house.available('LTC')).toBe(100_000_000n);
    await setCaughtUp(house.db, 'LTC', await cursorOf('LTC'), house.now());
    await house.judge();
    expect(await house.available('LTC')).toBe(0n);
  });

  test('is lost though the node of the other chain is down', async () => {
    await credited();
    await outage(11 * MINUTE);
    await setCaughtUp(house.db, 'LTC', await cursorOf('LTC'), house.now());
    await house.judge();
    expect(await house.available('LTC')).toBe(0n);
  });
});

test('the end of an outage that is written while a judge reads does not make a payment look lost', async () => {
  const { transactionId } = await house.create();
  await house.pay(transactionId, 50_000n);
  await house.mine();
  await house.judge();
  await house.vanish('BTC', 1);
  await house.judge();
  await outage(30 * MINUTE);
  await house.admin.query(`update node_conditions set outage = true where currency = 'BTC'`);
  const db = {
    ...house.db,
    transaction: (work: (sql: never) => Promise<unknown>) =>
      house.db.transaction((sql) => {
        const query = async (statement: { name?: string }) => {
          const result = await sql.query(statement as never);
          if (statement.name === 'read_coins') await setCaughtUp(house.db, 'BTC', await cursorOf('BTC'), house.now());
          return result;
        };
        return work({ ...sql, query } as never);
      }),
  };
  await reconsider({ ...house.ctx, db } as never, transactionId);
  expect(await statusOf(transactionId)).toBe('succeeded');
  await house.judge();
  expect(await statusOf(transactionId)).toBe('succeeded');
});
