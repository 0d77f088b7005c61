// The whole service on nodes of one currency, without its API: merchant, keys, a rate, workers whose passes a test runs, the judge; for
// tests that follow money from a real wallet into the books.
import { setTimeout as delay } from 'node:timers/promises';
import type { UtxoCode } from '../../src/core/currency.ts';
import { parseRate, type Rate } from '../../src/core/rate.ts';
import { createAddressPool } from '../../src/flow/addresses/pool.ts';
import { runAudit } from '../../src/flow/audit.ts';
import type { Context } from '../../src/flow/context.ts';
import { addMerchant } from '../../src/flow/merchants/merchants.ts';
import { createTransaction } from '../../src/flow/transactions/create-cancel-resolve.ts';
import { createTransactionBatches } from '../../src/flow/transactions/request-batches.ts';
import { createChainNodes } from '../../src/outside/utxo/by-currency.ts';
import { addSignerKey } from '../../src/store/chain/xpubs.ts';
import { readAvailable } from '../../src/store/ledger/ledger.ts';
import { createBatchOfKey } from '../../src/store/postgres/batch.ts';
import { saveRates } from '../../src/store/transactions/rates.ts';
import { createWatchedScripts } from '../../src/worker/chain/watch-list.ts';
import { type ChainWatcher, createChainWatcher } from '../../src/worker/chain/watcher.ts';
import { createJudgeDue } from '../../src/worker/judge-due.ts';
import { regtestAccountKey } from '../keys/vectors.ts';
import { portsFor, SEALS } from '../support/ports.ts';
import { freshDatabase, type TestDatabase } from '../support/postgres.ts';
import { openSigner } from '../support/signer.ts';

const SETTLES_WITHIN_MS = 30_000;
const NEXT_PASS_MS = 50;

/**
 * @param urls RPC URLs of the currency's nodes
 * @param account path of the account key that addresses are derived from; null: the test brings one
 * @param options.database one that was used before, and what is left of the signer's folder
 */
export async function openBursar(
  currency: UtxoCode,
  account: string | null,
  urls: readonly string[],
  options: { readonly database?: TestDatabase; readonly signerFolder?: string } = {},
) {
  const { db, url, drop } = options.database ?? (await freshDatabase());
  const signer = await openSigner(db, options.signerFolder === undefined ? {} : { folder: options.signerFolder });
  const clock = { now: () => Date.now() };
  const nodes = createChainNodes({ network: 'regtest', clock, urls: new Map([[currency, urls]]), tokenContract: null });
  const ports = portsFor('regtest', clock, { chains: nodes.chains });
  const pool = createAddressPool({ db, ports }, currency, { ready: 10 });
  const ctx: Context = {
    db,
    ports,
    network: 'regtest',
    currencies: [currency],
    tokenContract: null,
    feeBps: 0,
    settlementSeconds: 86_400,
    contestedLimitMinor: 1_000_00n,
    unfinalPayoutMinor: null,
    exposureMinor: null,
    hasBank: false,
    batches: createTransactionBatches(db, SEALS, async () => pool.next()),
    batchOfKey: createBatchOfKey(),
  };
  if (account !== null) await addSignerKey(db, { currency, xpub: regtestAccountKey(account), at: new Date() });
  const usd = parseRate('50000.00') as Rate;
  await saveRates(
    db,
    SEALS,
    [{ currency, usd, used: [{ source: 'kraken', usd, atMs: Date.now() }], leftOut: [] }] as never,
    Date.now(),
  );
  const shop = { username: 'shop', password: 'correct horse battery', email: 'shop@example.com', businessName: 'Shop' };
  const merchants = () => db.query<{ id: bigint }>({ text: 'select id from merchants' });
  if ((await merchants()).rows.length === 0) await addMerchant(ctx, shop);
  const { rows } = await merchants();
  const judge = createJudgeDue(ctx, (id, error) => {
    throw new Error(`judge ${id}: ${String(error)}`);
  });
  const watchers: ChainWatcher[] = [];
  const bursar = {
    ctx,
    url,
    signer,
    merchantId: (rows[0] as { id: bigint }).id,
    /** A worker that starts. */
    worker(blocksPerPass = 2) {
      const watcher = createChainWatcher(ctx, currency, { scripts: createWatchedScripts(ctx), blocksPerPass });
      watchers.push(watcher);
      return watcher;
    },
    /** Passes until the watcher has caught up and nothing is due. A chain may change under a pass, and a busy node be late: it has time. */
    async settle(watcher: ChainWatcher) {
      for (const until = performance.now() + SETTLES_WITHIN_MS; ; ) {
        const result = await watcher.pass();
        while (await judge());
        if (result.caughtUp) return;
        if (!result.more) await delay(NEXT_PASS_MS);
        if (performance.now() > until) throw new Error(`the watcher did not catch up: ${JSON.stringify(result)}`);
      }
    },
    judge,
    /** A payment request; the currency costs 50,000 dollars. */
    owe: (usdMinor: bigint) =>
      createTransaction(ctx, { merchantId: bursar.merchantId, usdMinor, method: currency, label: null, email: null }),
    async scriptOf(id: string): Promise<Buffer> {
      const found = await db.query<{ script: Buffer }>({ text: 'select script from transactions where id = $1', values: [id] });
      return (found.rows[0] as { script: Buffer }).script;
    },
    available: async () => (await readAvailable(db, bursar.merchantId)).get(currency),
    async story(id: string) {
      const events = await db.query<{ status: string }>({
        text: 'select status from events where object_id = $1 order by sequence',
        values: [id],
      });
      const deposits = await db.query<{ n: bigint }>({
        text: 'select count(*) as n from ledger.entry where transaction_id = $1',
        values: [id],
      });
      return { statuses: events.rows.map((row) => row.status), entries: Number(deposits.rows[0]?.n) };
    },
    /** What the audit finds wrong. */
    findings: async () => (await runAudit(ctx)).answers.flatMap((answer) => answer.findings.map((one) => `${answer.id}: ${one}`)),
    async close() {
      for (const watcher of watchers) await watcher.close();
      await nodes.close();
      await signer.close();
      await drop();
    },
  };
  return bursar;
}
