// The whole service on a real EVM without its API: addresses of a signer with a seed, watchers, judge, second reading and the job of payouts for
// ether and USDT, whose passes a test runs.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import type { EvmCode } from '../../src/core/currency.ts';
import { parseRate, type Rate } from '../../src/core/rate.ts';
import { createAddressPool } from '../../src/flow/addresses/pool.ts';
import { runAudit } from '../../src/flow/audit.ts';
import type { Context } from '../../src/flow/context.ts';
import { hotAddress } from '../../src/flow/evm/batches.ts';
import { requestTokenPayout } from '../../src/flow/evm/request.ts';
import { addMerchant } from '../../src/flow/merchants/merchants.ts';
import { createTransaction } from '../../src/flow/transactions/create-cancel-resolve.ts';
import { createTransactionBatches } from '../../src/flow/transactions/request-batches.ts';
import { openIntentKey } from '../../src/main/wiring/intent-key.ts';
import { createChainNodes } from '../../src/outside/utxo/by-currency.ts';
import { clearBreakers, tripBreaker } from '../../src/store/ledger/breakers.ts';
import { createBatchOfKey } from '../../src/store/postgres/batch.ts';
import { saveRates } from '../../src/store/transactions/rates.ts';
import { createWatchedScripts } from '../../src/worker/chain/watch-list.ts';
import { createChainWatcher } from '../../src/worker/chain/watcher.ts';
import { createJudgeDue } from '../../src/worker/judge-due.ts';
import type { Job } from '../../src/worker/loop.ts';
import type { DriverOptions, Signing } from '../../src/worker/payouts/driver-options.ts';
import { payoutJobs } from '../../src/worker/payouts/job.ts';
import { compareBalances } from '../../src/worker/rescan/address-balances.ts';
import { reconcile } from '../../src/worker/rescan/reconciler.ts';
import { type Anvil, callData, startAnvil } from '../support/evm/anvil.ts';
import { QUIRKY_TOKEN } from '../support/evm/compiled.ts';
import { oneAfterTheOther, tellingTo } from '../support/payout-jobs.ts';
import { openPayoutSigner } from '../support/payout-signer.ts';
import { portsFor, SEALS } from '../support/ports.ts';
import { freshDatabase } from '../support/postgres.ts';
import { openSigner } from '../support/signer.ts';

const BOTH: readonly EvmCode[] = ['ETH', 'USDT'];
const PRICES = { ETH: '3000.00', USDT: '1.00' } as const;

export type EvmService = Awaited<ReturnType<typeof openEvmService>>;
/** What the service needs of a real node. */
type RealNode = Pick<Anvil, 'url' | 'token' | 'rpc' | 'mine' | 'send' | 'remove'>;

/**
 * Both currencies have capital of the service's own: ten ether, and a thousand USDT with an ether for gas.
 * @param through what stands between the service and its node, by the node's URL
 * @param second what stands between the service and a second node, which is compared with the first; absent: there is none
 * @param gasOfUsdt the wei that USDT's sending address has at the beginning
 */
export async function openEvmService(
  options: {
    readonly through?: (url: string) => Promise<string>;
    readonly second?: (url: string) => Promise<string>;
    readonly gasOfUsdt?: bigint;
  } = {},
) {
  return openEvmServiceOn(await startAnvil(), options);
}

/** The same on another real node. */
export async function openEvmServiceOn<N extends RealNode>(
  anvil: N,
  { through = async (url: string) => url, second, gasOfUsdt = 10n ** 18n }: Parameters<typeof openEvmService>[0] = {},
) {
  const nodeUrls = [await through(anvil.url), ...(second === undefined ? [] : [await second(anvil.url)])];
  const { db, url, drop } = await freshDatabase();
  const folder = mkdtempSync(join(tmpdir(), 'bursar-evm-service-'));
  let skew = 0;
  const clock = { now: () => Date.now() + skew, steady: () => performance.now() + skew };
  const addresses = await openSigner(db, { now: clock.now });
  const urls = new Map(BOTH.map((currency) => [currency, nodeUrls]));
  const nodes = createChainNodes({ network: 'regtest', clock, urls, tokenContract: anvil.token });
  const intentKey = await openIntentKey(folder);
  const ports = { ...portsFor('regtest', clock, { chains: nodes.chains }), intentKey };
  const pools = new Map(BOTH.map((currency) => [currency, createAddressPool({ db, ports }, currency, { ready: 5 })]));
  const ctx: Context = {
    db,
    ports,
    network: 'regtest',
    currencies: BOTH,
    tokenContract: anvil.token,
    feeBps: 0,
    settlementSeconds: 86_400,
    contestedLimitMinor: 1_000_00n,
    unfinalPayoutMinor: null,
    exposureMinor: null,
    hasBank: false,
    sweepGasMultiple: 20,
    batches: createTransactionBatches(db, SEALS, async (currency) => pools.get(currency as EvmCode)!.next()),
    batchOfKey: createBatchOfKey(),
  };
  const signer = await openPayoutSigner({ db, url }, { folder, currencies: BOTH, tokenContract: anvil.token });
  await addMerchant(ctx, { username: 'shop', password: 'shop-shop-shop', email: 'shop@example.com', businessName: 'Shop' });
  const { rows } = await db.query<{ id: bigint }>({ text: 'select id from merchants' });
  const merchantId = (rows[0] as { id: bigint }).id;
  const judge = createJudgeDue(ctx, (id, error) => {
    throw new Error(`judge ${id}: ${String(error)}`);
  });
  const newWatchers = () => BOTH.map((currency) => createChainWatcher(ctx, currency, { scripts: createWatchedScripts(ctx) }));
  let watchers = newWatchers();
  const told: string[] = [];
  /** Signatures whose answers are lost, by batch. */
  let losesAnswers = false;
  let refusal: Error | null = null;
  const lost = new Set<string>();
  const asked: Signing = {
    async sign(request) {
      if (refusal !== null) throw refusal;
      const signed = await signer.signing.sign(request).catch((error: Error) => {
        throw Object.assign(error, { fault: 'refused' });
      });
      if (!losesAnswers || lost.has(request.batchId)) return signed;
      lost.add(request.batchId);
      throw Object.assign(new Error('no answer'), { fault: 'unreachable' });
    },
    signed: signer.signing.signed,
  };
  const newJob = (reached?: NonNullable<DriverOptions['reached']>): Job =>
    oneAfterTheOther(
      payoutJobs(
        ctx,
        BOTH,
        { signing: asked, owner: 'test', intents: async () => null, ...(reached === undefined ? {} : { reached }) },
        (made) => made(tellingTo(told)),
      ),
    );
  let job = newJob();

  const service = {
    anvil,
    ctx,
    db,
    url,
    signing: asked,
    journal: signer.journal,
    merchantId,
    /** What the signer answers instead of a signature from now on; null = it signs. */
    refuse(answer: string | null): void {
      refusal = answer === null ? null : Object.assign(new Error(answer), { fault: 'refused' });
    },
    /** The first answer of the signer for each batch is lost from now on, or is not any more. */
    loseAnswers(loses: boolean): void {
      losesAnswers = loses;
    },
    /** What the job has told an operator. */
    told,
    async price(): Promise<void> {
      const all = BOTH.map((currency) => {
        const usd = parseRate(PRICES[currency]) as Rate;
        return { currency, usd, used: [{ source: 'kraken', usd, atMs: clock.now() }], leftOut: [] };
      });
      await saveRates(db, SEALS, all as never, clock.now());
    },
    /** Everything that blocks and judge make of what is mined. */
    async settle(): Promise<void> {
      await service.price();
      for (const watcher of watchers)
        for (let result = await watcher.pass(); !result.caughtUp; result = await watcher.pass())
          if (!result.more && result.state !== 'ready') throw new Error(JSON.stringify(result));
      while (await judge());
    },
    async mine(blocks = 1): Promise<void> {
      await anvil.mine(blocks);
      await service.settle();
    },
    /** The worker's job, later than any lease or retry. */
    async work(laterMs = 0): Promise<void> {
      skew += laterMs;
      await service.price();
      await job.run();
    },
    /** A worker that starts; `reached` may end it at a step. */
    restart(reached?: NonNullable<DriverOptions['reached']>): void {
      job = newJob(reached);
    },
    async restartWatchers(): Promise<void> {
      for (const watcher of watchers) await watcher.close();
      watchers = newWatchers();
    },
    /** A transaction of so many cents; its address. */
    async owe(currency: EvmCode, cents: bigint): Promise<{ readonly id: string; readonly address: string }> {
      await service.price();
      const made = await createTransaction(ctx, { merchantId, usdMinor: cents, method: currency, label: null, email: null });
      const found = await db.query<{ address: string }>({
        text: 'select address from transactions where id = $1',
        values: [made.transactionId],
      });
      return { id: made.transactionId, address: String(found.rows[0]?.address).toLowerCase() };
    },
    /** A customer pays so much, from an address nobody used before. */
    pay: (currency: EvmCode, to: string, amount: bigint) =>
      currency === 'ETH'
        ? anvil.send({ to, value: amount })
        : anvil.send(
            { to: anvil.token, input: callData(QUIRKY_TOKEN, 'transfer(address,uint256)', to, amount) },
            { units: 10n ** 15n },
          ),
    /** The merchant asks for a payout of 50 USDT at today's price: its id. */
    async request(destination: string): Promise<string> {
      await service.price();
      return (await requestTokenPayout(ctx, { merchantId, amount: '50', destination })).id;
    },
    /** The key of an address: another wallet with the same words has it too. */
    secret: async (currency: EvmCode, { chain, index }: { readonly chain: 0 | 1; readonly index: number }): Promise<Uint8Array> =>
      (await signer.keyring.spend(currency, (account) =>
        Uint8Array.from(account.deriveChild(chain).deriveChild(index).privateKey as Uint8Array),
      )) as Uint8Array,
    hot: async (currency: EvmCode): Promise<string> => (await hotAddress(ctx, db, currency))?.address as string,
    ether: async (address: string): Promise<bigint> => BigInt(await anvil.rpc<string>('eth_getBalance', address, 'latest')),
    units: async (address: string): Promise<bigint> =>
      BigInt(
        await anvil.rpc<string>(
          'eth_call',
          { to: anvil.token, data: callData(QUIRKY_TOKEN, 'balanceOf(address)', address) },
          'latest',
        ),
      ),
    async status(id: string): Promise<string | undefined> {
      const found = await db.query<{ status: string }>({ text: 'select status from transactions where id = $1', values: [id] });
      return found.rows[0]?.status;
    },
    async balance(code: string): Promise<bigint> {
      const found = await db.query<{ amount: string }>({
        text: 'select coalesce(sum(amount), 0) as amount from ledger.account_balance where code = $1',
        values: [code],
      });
      return BigInt(found.rows[0]?.amount ?? 0);
    },
    batches: async (purpose: 'sweep' | 'top_up') =>
      (
        await db.query<{ id: string; currency: EvmCode; state: string; attempts: number; nonce: number }>({
          text: `select b.id, b.currency, b.state, i.vout as nonce, (select count(*)::int from outgoing_attempts a where a.batch_id = b.id) as attempts
                   from outgoing_batches b join outgoing_inputs i on i.batch_id = b.id where b.purpose = $1 order by b.id`,
          values: [purpose],
        })
      ).rows,
    /** As a copy of the database from before knows nothing of them. */
    async forgetMoves(ids: readonly string[]): Promise<void> {
      const admin = new pg.Client({ connectionString: url });
      await admin.connect();
      await admin.query(
        `update payments p set spent = false from transactions t, outgoing_inputs i where t.id = p.transaction_id and t.script = i.script and i.batch_id = any ($1)`,
        [ids],
      );
      for (const table of ['outgoing_attempts', 'outgoing_inputs'])
        await admin.query(`delete from ${table} where batch_id = any ($1)`, [ids]);
      await admin.query('delete from outgoing_batches where id = any ($1)', [ids]);
      await admin.end();
    },
    stop: (by: string) => tripBreaker(db, { name: 'payouts', by: [by], findings: ['a test'], atMs: clock.now() }),
    goOn: () => clearBreakers(db, 'a test', clock.now()),
    /** What the audit finds, after the second reading. */
    async findings(): Promise<readonly string[]> {
      for (const currency of BOTH) while ((await reconcile(ctx, currency)).more);
      const unread = await compareBalances(ctx, BOTH);
      if (unread !== null) throw new Error(unread);
      const { answers, pages } = await runAudit(ctx);
      return [...answers, ...pages].flatMap(({ id, findings }) => findings.map((finding) => `${id}: ${finding}`));
    },
    async close(): Promise<void> {
      for (const watcher of watchers) await watcher.close();
      await nodes.close();
      await addresses.close();
      await signer.close();
      await drop();
      await anvil.remove();
      rmSync(folder, { recursive: true, force: true });
    },
  };
  await service.settle();
  await job.run();
  await anvil.send({ to: await service.hot('ETH'), value: 10n ** 19n });
  if (gasOfUsdt > 0n) await anvil.send({ to: await service.hot('USDT'), value: gasOfUsdt });
  await service.pay('USDT', await service.hot('USDT'), 1_000_000_000n);
  await service.mine(70);
  await service.work(30_000);
  return service;
}
