// A small service on a real database, without nodes: merchant, keys, rates, a clock that the test moves, and functions that record what a
// chain would show, the way the real watchers do.

import { randomBytes } from 'node:crypto';
import pg from 'pg';
import type { CurrencyCode, UtxoCode } from '../../src/core/currency.ts';
import type { Outpoint, OutputFacts, TransactionFacts } from '../../src/core/ports.ts';
import { parseRate } from '../../src/core/rate.ts';
import { createAddressPool } from '../../src/flow/addresses/pool.ts';
import { runAudit } from '../../src/flow/audit.ts';
import type { Context } from '../../src/flow/context.ts';
import { addMerchant } from '../../src/flow/merchants/merchants.ts';
import { type CreatedTransaction, createTransaction, reconsider } from '../../src/flow/transactions/create-cancel-resolve.ts';
import { createTransactionBatches } from '../../src/flow/transactions/request-batches.ts';
import {
  beginCursor,
  deleteBlocksAbove,
  insertBlocks,
  moveCursor,
  readCursor,
  setCaughtUp,
} from '../../src/store/chain/blocks.ts';
import { recordCondition } from '../../src/store/chain/node-conditions.ts';
import { compareWithMempool, recordMempoolChanges, recordSightings, takeBackAbove } from '../../src/store/chain/sightings.ts';
import { readUnmined } from '../../src/store/chain/unmined.ts';
import { addSignerKey } from '../../src/store/chain/xpubs.ts';
import { createBatchOfKey } from '../../src/store/postgres/batch.ts';
import { transactionByIndex } from '../../src/store/postgres/connect.ts';
import { dueTransactions, finishLookup, wantedLookup } from '../../src/store/transactions/due.ts';
import { saveRates } from '../../src/store/transactions/rates.ts';
import { createOwnClock } from '../../src/worker/chain/own-clock.ts';
import { regtestAccountKey } from '../keys/vectors.ts';
import { markWatched } from './mark-watched.ts';
import { portsFor, SEALS } from './ports.ts';
import { freshDatabase } from './postgres.ts';
import { openSigner } from './signer.ts';

const CHAINS = ['BTC', 'LTC'] as const;
const hash = (): string => randomBytes(32).toString('hex');
export type Sent = { readonly facts: TransactionFacts; readonly currency: UtxoCode };
export type ServiceOnDatabase = Awaited<ReturnType<typeof openServiceOnDatabase>>;

export async function openServiceOnDatabase(options: { feeBps?: number; settlementSeconds?: number; also?: UtxoCode } = {}) {
  const { db, url, drop } = await freshDatabase();
  let nowMs = Date.UTC(2026, 5, 1);
  let steadyMs = 0;
  const clock = { now: () => nowMs, steady: () => steadyMs };
  const ports = portsFor('regtest', clock);
  const chains: readonly UtxoCode[] = [...CHAINS, ...(options.also === undefined ? [] : [options.also])];
  const pools = new Map(CHAINS.map((code) => [code as CurrencyCode, createAddressPool({ db, ports }, code, { ready: 50 })]));
  const ctx: Context = {
    db,
    ports,
    network: 'regtest',
    currencies: chains,
    tokenContract: null,
    feeBps: options.feeBps ?? 0,
    settlementSeconds: options.settlementSeconds ?? 86_400,
    contestedLimitMinor: 1_000_00n,
    unfinalPayoutMinor: null,
    exposureMinor: null,
    hasBank: true,
    batches: createTransactionBatches(db, SEALS, async (currency) => pools.get(currency)?.next() ?? null),
    batchOfKey: createBatchOfKey(),
  };
  const signer = await openSigner(db);
  const admin = new pg.Pool({ connectionString: url, max: 3 });
  admin.on('error', () => undefined); // its idle sessions end with the database
  for (const [index, currency] of chains.entries()) {
    await addSignerKey(db, { currency, xpub: regtestAccountKey(`m/84'/1'/${index}'`), at: new Date(nowMs) });
    await beginCursor(db, currency, { height: 100, hash: hash(), previousHash: hash(), timeMs: nowMs }, nowMs);
  }
  async function openShop(username: string): Promise<bigint> {
    const { affiliateId } = await addMerchant(ctx, {
      username,
      password: 'correct horse battery',
      email: 'shop@example.com',
      businessName: 'Shop',
    });
    const { rows } = await admin.query('select id from merchants where affiliate_id = $1', [affiliateId]);
    return BigInt(rows[0].id);
  }
  const merchantId = await openShop('shop');
  /** What waits in each mempool. */
  const mempool: Sent[] = [];
  const scripts = new Map<string, string>();

  async function rate(usd: string): Promise<void> {
    const price = parseRate(usd)!;
    const judgements = chains.map((currency) => ({
      currency,
      usd: price,
      used: [{ source: 'kraken', usd: price, atMs: nowMs }],
      leftOut: [],
    }));
    await saveRates(db, SEALS, judgements as never, nowMs);
    for (const code of chains)
      await recordCondition(db, code, { state: 'ready', height: 100, hash: hash(), tipTimeMs: nowMs, peers: 1 }, nowMs);
    await markWatched(db);
  }

  const cursorOf = async (currency: UtxoCode) => (await readCursor(db, currency))!;
  async function see(sent: readonly Sent[], currency: UtxoCode): Promise<void> {
    const cursor = await cursorOf(currency);
    const seen = sent.map(({ facts }) => ({ facts, seenAtMs: nowMs }));
    const at = { block: null, caughtUpAtMs: cursor.caughtUpAtMs, atMs: nowMs };
    await transactionByIndex(db, (sql) => recordSightings(sql, currency, at, seen));
  }

  async function mineBlock(currency: UtxoCode, taken: readonly Sent[]): Promise<void> {
    const cursor = await cursorOf(currency);
    const block = { height: cursor.height + 1, hash: hash(), previousHash: cursor.hash, timeMs: nowMs };
    await transactionByIndex(db, async (sql) => {
      await moveCursor(sql, currency, cursor, block, nowMs);
      await insertBlocks(sql, currency, [block]);
      const sightings = taken.map(({ facts }) => ({ facts, seenAtMs: nowMs }));
      await recordSightings(sql, currency, { block, caughtUpAtMs: cursor.caughtUpAtMs, atMs: nowMs }, sightings);
    });
    for (const sent of taken) mempool.splice(mempool.indexOf(sent), 1);
  }

  const ownClocks = chains.map((currency) => createOwnClock(ctx, currency));
  async function lookAtClock(): Promise<void> {
    for (const one of ownClocks) await one.look();
  }

  await lookAtClock();
  await rate('100000.00');
  return {
    ctx,
    db,
    url,
    admin,
    merchantId,
    /** Another merchant. */
    openShop,
    now: clock.now,
    rate,
    async drop(): Promise<void> {
      await signer.close();
      await admin.end();
      await drop();
    },
    /** A payment request; one cent is ten satoshi. */
    async create(usdMinor = 50_00n, method: 'BTC' | 'LTC' = 'BTC', shop = merchantId): Promise<CreatedTransaction> {
      const made = await createTransaction(ctx, { merchantId: shop, usdMinor, method, label: null, email: null });
      const found = await admin.query(`select encode(script, 'hex') as script from transactions where id = $1`, [
        made.transactionId,
      ]);
      scripts.set(made.transactionId, found.rows[0].script);
      return made;
    },
    /** A transaction that pays this one, in the mempool and seen. */
    async pay(
      transactionId: string,
      amounts: bigint | readonly bigint[],
      to: { currency?: UtxoCode; inputs?: readonly Outpoint[] } = {},
    ): Promise<Sent> {
      const currency = to.currency ?? 'BTC';
      const script = scripts.get(transactionId)!;
      const outputs = (typeof amounts === 'bigint' ? [amounts] : amounts).map((amountMinor, vout) => ({
        vout,
        script,
        amountMinor,
      }));
      const sent: Sent = {
        currency,
        facts: { txid: hash(), coinbase: false, inputs: to.inputs ?? [{ txid: hash(), vout: 0 }], outputs, spends: [] },
      };
      mempool.push(sent);
      await see([sent], currency);
      return sent;
    },
    /** A transaction with this id that spends outputs of ours, in the mempool; `coinbase`: what a miner makes with the next block. */
    spend(txid: string, spends: readonly Outpoint[], outputs: readonly OutputFacts[] = [], coinbase = false): Sent {
      const inputs = spends.map(({ txid: from, vout }) => ({ txid: from, vout }));
      const sent: Sent = { currency: 'BTC', facts: { txid, coinbase, inputs, spends: inputs, outputs } };
      mempool.push(sent);
      return sent;
    },
    /** Mines the mempool, then empty blocks. */
    async mine(count = 1, currency: UtxoCode = 'BTC'): Promise<void> {
      for (let n = 0; n < count; n++)
        await mineBlock(currency, n === 0 ? mempool.filter((sent) => sent.currency === currency) : []);
      await this.catchUp();
    },
    /** Removes the top block and puts two others in its place; there, others spend the inputs of its payments. */
    async reorganise(lost: readonly Sent[]): Promise<void> {
      const cursor = await cursorOf('BTC');
      const top = await admin.query(`select previous from blocks where currency = 'BTC' and height = $1`, [cursor.height]);
      const block = { height: cursor.height, hash: hash(), previousHash: top.rows[0].previous as string, timeMs: nowMs };
      await db.transaction(async (sql) => {
        await moveCursor(sql, 'BTC', cursor, block, nowMs);
        await deleteBlocksAbove(sql, 'BTC', cursor.height - 1);
        await takeBackAbove(sql, 'BTC', { height: cursor.height - 1, oldTip: cursor.height, newTip: cursor.height, atMs: nowMs });
        await insertBlocks(sql, 'BTC', [block]);
        const rivals = lost.map(({ facts }) => ({ facts: { ...facts, txid: hash(), outputs: [] }, seenAtMs: nowMs }));
        await recordSightings(sql, 'BTC', { block, caughtUpAtMs: cursor.caughtUpAtMs, atMs: nowMs }, rivals);
        const listed = new Set(mempool.map((sent) => sent.facts.txid));
        await recordMempoolChanges(
          sql,
          'BTC',
          compareWithMempool(await readUnmined(sql, 'BTC', 0, { txids: listed, changed: null }), listed, nowMs),
        );
      });
      await this.catchUp();
    },
    /** A payment leaves the mempool; nothing conflicts with it. */
    async evict(sent: Sent): Promise<void> {
      mempool.splice(mempool.indexOf(sent), 1);
      const { currency } = sent;
      const listed = new Set(mempool.map(({ facts }) => facts.txid));
      const { height } = await cursorOf(currency);
      await db.transaction(async (sql) =>
        recordMempoolChanges(
          sql,
          currency,
          compareWithMempool(await readUnmined(sql, currency, 0, { txids: listed, changed: null }), listed, nowMs, height),
        ),
      );
    },
    /** Removes the top blocks and puts one more, all empty, in their place; their payments are in no block and no mempool. */
    async vanish(currency: UtxoCode, depth: number): Promise<void> {
      const cursor = await cursorOf(currency);
      const height = cursor.height - depth;
      const { rows } = await admin.query('select hash from blocks where currency = $1 and height = $2', [currency, height]);
      const first = { height: height + 1, hash: hash(), previousHash: rows[0]?.hash ?? hash(), timeMs: nowMs };
      await db.transaction(async (sql) => {
        await moveCursor(sql, currency, cursor, first, nowMs);
        await deleteBlocksAbove(sql, currency, height);
        await takeBackAbove(sql, currency, { height, oldTip: cursor.height, newTip: first.height, atMs: nowMs });
        await insertBlocks(sql, currency, [first]);
      });
      for (let n = 0; n < depth; n++) await mineBlock(currency, []);
      await this.catchUp();
    },
    /** Both chains are read to their end at this moment. */
    async catchUp(): Promise<void> {
      await lookAtClock();
      for (const currency of chains) await setCaughtUp(db, currency, await cursorOf(currency), nowMs);
    },
    /** Time passes, and nobody reads the chains. */
    pass(ms: number): void {
      nowMs += ms;
      steadyMs += ms;
    },
    /** Time passes. */
    async wait(ms: number): Promise<void> {
      this.pass(ms);
      await rate('100000.00');
      await this.catchUp();
    },
    /** Our clock is set; no time passes, and the watchers have not looked at it yet. */
    setClock(byMs: number): void {
      nowMs += byMs;
    },
    /** The watchers find their clock set. */
    lookAtClock,
    /** The watchers end, and others begin: what they know of the clock is what the database says. */
    restart(): void {
      for (const one of ownClocks) one.forget();
    },
    /** Judges whatever is due until nothing is, as the worker's job does; looks up what rule 8 wants. */
    async judge(): Promise<void> {
      for (;;) {
        const due = await dueTransactions(db);
        const wanted = (await Promise.all(chains.map((code) => wantedLookup(db, code)))).filter((one) => one !== null);
        for (const { id } of due) await reconsider(ctx, id);
        for (const one of wanted) await finishLookup(db, one.ids, nowMs);
        if (due.length === 0 && wanted.length === 0) return;
      }
    },
    async row(transactionId: string): Promise<Record<string, never>> {
      return (await admin.query('select * from transactions where id = $1', [transactionId])).rows[0];
    },
    async path(transactionId: string): Promise<string[]> {
      const history = await admin.query(
        `select status from events where object_id = $1 and type = 'transaction.' || status order by sequence`,
        [transactionId],
      );
      return history.rows.map((row) => row.status);
    },
    async balance(code: string): Promise<bigint> {
      const found = await admin.query('select amount from ledger.account_balance where code = $1', [code]);
      return BigInt(found.rows[0]?.amount ?? 0);
    },
    available(currency: UtxoCode = 'BTC'): Promise<bigint> {
      return this.balance(`merchant:${merchantId}:available:${currency}`);
    },
    /** What the audit finds wrong. */
    async findings(): Promise<string[]> {
      const report = await runAudit(ctx);
      return report.answers.flatMap((answer) => answer.findings.map((finding) => `${answer.id}: ${finding}`));
    },
  };
}
