// A small service on a real database with a Lightning node: merchant, rates, the watcher of the node, and the judge, all driven by the test.
import pg from 'pg';
import type { LightningPort } from '../../src/core/lightning/port.ts';
import { parseRate } from '../../src/core/rate.ts';
import { runAudit } from '../../src/flow/audit.ts';
import type { Context } from '../../src/flow/context.ts';
import { addMerchant } from '../../src/flow/merchants/merchants.ts';
import { type CreatedTransaction, createTransaction, reconsider } from '../../src/flow/transactions/create-cancel-resolve.ts';
import { createTransactionBatches } from '../../src/flow/transactions/request-batches.ts';
import { dueTransactions } from '../../src/store/transactions/due.ts';
import { saveRates } from '../../src/store/transactions/rates.ts';
import { createInvoiceComparison, lookUpJob } from '../../src/worker/lightning/jobs.ts';
import { createLightningWatcher, type LightningWatcher } from '../../src/worker/lightning/watcher.ts';
import { portsFor, SEALS } from './ports.ts';
import { freshDatabase } from './postgres.ts';

export type LightningService = Awaited<ReturnType<typeof openLightningService>>;

/** @param clock moves only when the test moves it */
export async function openLightningService(port: LightningPort, clock: { now(): number }) {
  const { db, url, drop } = await freshDatabase();
  const ctx: Context = {
    db,
    ports: portsFor('regtest', clock, { lightning: port }),
    network: 'regtest',
    tokenContract: null,
    currencies: [],
    feeBps: 0,
    settlementSeconds: 86_400,
    contestedLimitMinor: 1_000_00n,
    unfinalPayoutMinor: null,
    exposureMinor: null,
    hasBank: false,
    batches: createTransactionBatches(db, SEALS, async () => null),
  };
  const admin = new pg.Pool({ connectionString: url, max: 2 });
  admin.on('error', () => undefined); // its idle sessions end with the database
  const shop = { username: 'shop', password: 'correct horse battery', email: 'shop@example.com', businessName: 'Shop' };
  const { affiliateId } = await addMerchant(ctx, shop);
  const found = await admin.query('select id from merchants where affiliate_id = $1', [affiliateId]);
  const merchantId = BigInt(found.rows[0].id);
  async function rate(usd: string): Promise<void> {
    const price = parseRate(usd)!;
    const used = [{ source: 'kraken', usd: price, atMs: clock.now() }];
    await saveRates(db, SEALS, [{ currency: 'BTC', usd: price, used, leftOut: [] }] as never, clock.now());
  }
  await rate('100000.00');
  let watcher: LightningWatcher = createLightningWatcher(ctx, port);
  const alarms: string[] = [];
  const compare = createInvoiceComparison(ctx, { port, watcher }, (_job, error) => alarms.push(String(error)));
  const lookUps = lookUpJob(ctx, { port, watcher }, () => undefined);

  async function judge(): Promise<void> {
    for (;;) {
      const due = await dueTransactions(db);
      if (due.length === 0) return;
      for (const { id } of due) await reconsider(ctx, id);
    }
  }
  return {
    ctx,
    url,
    admin,
    merchantId,
    rate,
    judge,
    /** What the worker does when it is hurried: reads the node, judges, looks up what rule 8 wants. */
    async work(): Promise<Awaited<ReturnType<LightningWatcher['pass']>>> {
      let result = await watcher.pass();
      while (result.more) result = await watcher.pass();
      await judge();
      await lookUps.run();
      await judge();
      return result;
    },
    /** The worker ends, and another begins. */
    async restartWorker(): Promise<void> {
      // the port is the test's
      await watcher.close();
      watcher = createLightningWatcher(ctx, port);
    },
    /** Nobody reads the node. */
    async stopWorker(): Promise<void> {
      await watcher.close();
    },
    /** The worker compares the node's list of invoices with the books, some pages of it. */
    compare,
    /** What the comparison had to say. */
    alarms,
    create(usdMinor = 50_00n): Promise<CreatedTransaction> {
      return createTransaction(ctx, { merchantId, usdMinor, method: 'BTC-LN', label: 'order 1042', email: null });
    },
    async hashOf(transactionId: string): Promise<string> {
      const { rows } = await admin.query('select payment_hash from lightning_invoices where transaction_id = $1', [
        transactionId,
      ]);
      return rows[0].payment_hash;
    },
    async path(transactionId: string): Promise<string[]> {
      const { rows } = await admin.query(
        `select status from events where object_id = $1 and type = 'transaction.' || status order by sequence`,
        [transactionId],
      );
      return rows.map((row) => row.status);
    },
    async balance(code: string): Promise<bigint> {
      const { rows } = await admin.query('select amount from ledger.account_balance where code = $1', [code]);
      return BigInt(rows[0]?.amount ?? 0);
    },
    available(): Promise<bigint> {
      return this.balance(`merchant:${merchantId}:available:BTC`);
    },
    /** What the audit finds wrong. */
    async findings(): Promise<string[]> {
      const report = await runAudit(ctx);
      return report.answers.flatMap((answer) => answer.findings.map((finding) => `${answer.id}: ${finding}`));
    },
    async drop(): Promise<void> {
      await watcher.close();
      await admin.end();
      await drop();
    },
  };
}
