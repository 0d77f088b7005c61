// A transaction's life through outages and clocks that differ, on a real database: what a watcher finds late is handled in the order in
// which it happened, and no timer is missed because another chain's clock was used.
import { randomBytes } from 'node:crypto';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { TransactionFacts } from '../../../src/core/ports.ts';
import { reconsider, resolveTransaction } from '../../../src/flow/transactions/create-cancel-resolve.ts';
import { checkTransaction } from '../../../src/flow/transactions/reads.ts';
import { insertBlocks, moveCursor, readCursor, setCaughtUp } from '../../../src/store/chain/blocks.ts';
import { compareWithMempool, recordMempoolChanges, recordSightings } from '../../../src/store/chain/sightings.ts';
import { readUnmined } from '../../../src/store/chain/unmined.ts';
import { openServiceOnDatabase, type ServiceOnDatabase } from '../../support/service-on-database.ts';

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
type Chain = 'BTC' | 'LTC';
let service: ServiceOnDatabase;
beforeEach(async () => {
  service = await openServiceOnDatabase();
});
afterEach(async () => {
  expect(await service.findings()).toEqual([]);
  await service.drop();
});

const hash = () => randomBytes(32).toString('hex');
const statusOf = async (transactionId: string) =>
  (await checkTransaction(service.ctx, { merchantId: service.merchantId, transactionId }))?.status;
const cursorOf = async (currency: Chain) => (await readCursor(service.db, currency))!;

async function payment(
  transactionId: string,
  amountMinor: bigint,
  inputs = [{ txid: hash(), vout: 0 }],
): Promise<TransactionFacts> {
  const { rows } = await service.admin.query(`select encode(script, 'hex') as script from transactions where id = $1`, [
    transactionId,
  ]);
  return { txid: hash(), coinbase: false, inputs, outputs: [{ vout: 0, script: rows[0].script, amountMinor }], spends: [] };
}
/** Reads a block that was dated earlier. */
async function readBlock(currency: Chain, facts: readonly TransactionFacts[], timeMs: number): Promise<void> {
  const cursor = await cursorOf(currency);
  const block = { height: cursor.height + 1, hash: hash(), previousHash: cursor.hash, timeMs };
  const context = { block, caughtUpAtMs: cursor.caughtUpAtMs, atMs: service.now() };
  await service.db.transaction(async (sql) => {
    await moveCursor(sql, currency, cursor, block, service.now());
    await insertBlocks(sql, currency, [block]);
    await recordSightings(
      sql,
      currency,
      context,
      facts.map((one) => ({ facts: one, seenAtMs: service.now() })),
    );
  });
}
async function readMempool(currency: Chain, facts: readonly TransactionFacts[], seenAtMs = service.now()): Promise<void> {
  const { caughtUpAtMs } = await cursorOf(currency);
  await service.db.transaction((sql) =>
    recordSightings(
      sql,
      currency,
      { block: null, caughtUpAtMs, atMs: service.now() },
      facts.map((one) => ({ facts: one, seenAtMs })),
    ),
  );
}
/** The whole mempool is compared. */
async function listMempool(currency: Chain, facts: readonly TransactionFacts[]): Promise<void> {
  const listed = new Set(facts.map((one) => one.txid));
  await service.db.transaction(async (sql) =>
    recordMempoolChanges(
      sql,
      currency,
      compareWithMempool(await readUnmined(sql, currency, 0, { txids: listed, changed: null }), listed, service.now()),
    ),
  );
}
/** Time passes while no chain is read. */
async function outage(ms: number): Promise<void> {
  const { rows } = await service.admin.query('select currency, caught_up_at from chain_cursors');
  await service.wait(ms);
  for (const row of rows) {
    await service.admin.query('update chain_cursors set caught_up_at = $2 where currency = $1', [row.currency, row.caught_up_at]);
  }
}

describe('found after an outage', () => {
  test('paid and mined in the window, found after W + 24 h at a lower price: the quote is honoured', async () => {
    for (const usdMinor of [50_00n, 150_00n]) {
      await service.rate('100000.00');
      const { transactionId } = await service.create(usdMinor);
      const paidAtMs = service.now() + 5 * MINUTE;
      await outage(25 * HOUR);
      await service.rate('80000.00');
      await readBlock('BTC', [await payment(transactionId, usdMinor * 10n)], paidAtMs);
      await readBlock('BTC', [], paidAtMs + MINUTE);
      await service.judge();
      expect(await statusOf(transactionId)).toBe('succeeded');
      await service.catchUp();
    }
  });

  test('a late one in the mempool, which came before the block of the one on time was read, does not stand before it', async () => {
    const { transactionId } = await service.create();
    const createdAtMs = service.now();
    await service.admin.query(`update transactions set late_payments = 'review'`);
    await outage(4 * HOUR);
    await readBlock('BTC', [await payment(transactionId, 50_000n)], createdAtMs + 5 * MINUTE);
    await readMempool('BTC', [await payment(transactionId, 50_000n)], createdAtMs + 3 * HOUR);
    await service.catchUp();
    await service.judge();
    expect(await service.path(transactionId)).toEqual(['started', 'pending', 'confirmed', 'succeeded']);
    expect(await service.available()).toBe(50_000n);
  });

  test('a late one in a block is worth what it was worth at the date of the block', async () => {
    const { transactionId } = await service.create();
    const createdAtMs = service.now();
    await service.wait(3 * HOUR);
    await outage(30 * MINUTE);
    await service.rate('50000.00');
    await readBlock('BTC', [await payment(transactionId, 50_000n)], createdAtMs + 3 * HOUR);
    await service.catchUp();
    await service.judge();
    expect(await statusOf(transactionId)).toBe('succeeded');
  });
});

test('in review the confirmations are the least of all payments, however each chain grows', async () => {
  const { transactionId } = await service.create();
  await service.admin.query(`update transactions set late_payments = 'review'`);
  await service.wait(3 * HOUR);
  await service.catchUp();
  await service.judge();
  const shown = async () => {
    await service.judge();
    const checked = await checkTransaction(service.ctx, { merchantId: service.merchantId, transactionId });
    return [checked?.status, checked?.confirmations];
  };
  await readBlock('BTC', [await payment(transactionId, 50_000n)], service.now());
  await readBlock('LTC', [await payment(transactionId, 50_000n)], service.now());
  expect(await shown()).toEqual(['review', 1]);
  for (let n = 0; n < 8; n++) await readBlock('BTC', [], service.now());
  expect(await shown()).toEqual(['review', 1]);
  await readBlock('LTC', [], service.now());
  expect(await shown()).toEqual(['review', 2]);
});

test('a payment that was on time and was replaced before anyone looked leaves its place to the one that replaced it', async () => {
  const { transactionId } = await service.create();
  await service.admin.query(`update transactions set late_payments = 'review'`);
  const first = await payment(transactionId, 50_000n);
  await service.wait(15 * MINUTE + 50 * SECOND);
  await readMempool('BTC', [first]);
  await service.wait(20 * SECOND);
  const second = await payment(transactionId, 50_001n, [...first.inputs] as { txid: string; vout: number }[]);
  await readMempool('BTC', [second]);
  await service.judge();
  await readBlock('BTC', [second], service.now());
  await service.catchUp();
  await service.judge();
  expect(await statusOf(transactionId)).toBe('succeeded');
});

test('a payment whose rival has left the mempool too is not waited for beyond its 72 hours', async () => {
  const { transactionId } = await service.create();
  const kept = await payment(transactionId, 30_000n);
  const lost = await payment(transactionId, 10_000n);
  await readMempool('BTC', [kept, lost]);
  await service.judge();
  const rival = { ...lost, txid: hash(), outputs: [], spends: lost.inputs };
  await readMempool('BTC', [rival]);
  await listMempool('BTC', [kept, rival]);
  await service.judge();
  await listMempool('BTC', [kept]);
  await readBlock('BTC', [kept], service.now());
  await service.catchUp();
  await service.judge();
  await service.wait(71 * HOUR);
  await service.judge();
  expect(await statusOf(transactionId)).toBe('pending');
  await service.wait(HOUR);
  await service.judge();
  expect(await statusOf(transactionId)).toBe('declined');
});

describe('a credited payment in another currency that is nowhere', () => {
  async function credited(): Promise<string> {
    const { transactionId } = await service.create();
    await service.pay(transactionId, 100_000_000n, { currency: 'LTC' });
    await service.mine(12, 'LTC');
    await service.judge();
    await resolveTransaction(service.ctx, {
      merchantId: service.merchantId,
      transactionId,
      action: 'accept',
      part: 'excess',
    });
    expect(await service.available('LTC')).toBe(100_000_000n);
    await service.vanish('LTC', 12);
    await service.judge();
    return transactionId;
  }

  test('is lost after ten minutes on its own chain, though the other chain was read a moment before', async () => {
    await credited();
    await outage(10 * MINUTE);
    await setCaughtUp(service.db, 'BTC', await cursorOf('BTC'), service.now());
    await service.judge();
    expect(await service.available('LTC')).toBe(100_000_000n);
    await setCaughtUp(service.db, 'LTC', await cursorOf('LTC'), service.now());
    await service.judge();
    expect(await service.available('LTC')).toBe(0n);
  });

  test('is lost though the node of the other chain is down', async () => {
    await credited();
    await outage(11 * MINUTE);
    await setCaughtUp(service.db, 'LTC', await cursorOf('LTC'), service.now());
    await service.judge();
    expect(await service.available('LTC')).toBe(0n);
  });
});

test('the end of an outage that is written while a judge reads does not make a payment look lost', async () => {
  const { transactionId } = await service.create();
  await service.pay(transactionId, 50_000n);
  await service.mine();
  await service.judge();
  await service.vanish('BTC', 1);
  await service.judge();
  await outage(30 * MINUTE);
  await service.admin.query(`update node_conditions set outage = true where currency = 'BTC'`);
  const db = {
    ...service.db,
    transaction: (work: (sql: never) => Promise<unknown>) =>
      service.db.transaction((sql) => {
        const query = async (statement: { name?: string }) => {
          const result = await sql.query(statement as never);
          if (statement.name === 'read_payments') await setCaughtUp(service.db, 'BTC', await cursorOf('BTC'), service.now());
          return result;
        };
        return work({ ...sql, query } as never);
      }),
  };
  await reconsider({ ...service.ctx, db } as never, transactionId);
  expect(await statusOf(transactionId)).toBe('succeeded');
  await service.judge();
  expect(await statusOf(transactionId)).toBe('succeeded');
});
