// A service on a real database that pays over Lightning: the signer's part with its own role, journal and rules, and the worker's job, both in this
// process and driven by the test.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'vitest';
import type { LightningPayer } from '../../src/core/lightning/payer.ts';
import type { LightningPort } from '../../src/core/lightning/port.ts';
import { requestLightningPayout } from '../../src/flow/lightning/payout-request.ts';
import { checkPayoutStatus } from '../../src/flow/payouts/reads.ts';
import { type ReimbursementRequest, readRefund, reimburseTransaction } from '../../src/flow/payouts/reimbursements.ts';
import { createLnd } from '../../src/outside/lightning/lnd.ts';
import { createLndPayer } from '../../src/outside/lightning/lnd-payer.ts';
import { isIntentSigned } from '../../src/signer/intent-trust.ts';
import { openKnownChannels } from '../../src/signer/lightning/known-channels.ts';
import { createPaying, type Paying, type PayingOptions } from '../../src/signer/lightning/paying.ts';
import { openPaymentJournal, type PaymentJournal } from '../../src/signer/lightning/payment-journal.ts';
import type { SignerLimits } from '../../src/signer/limits.ts';
import { createTurns } from '../../src/signer/turns.ts';
import { connect } from '../../src/store/postgres/connect.ts';
import { createInvoiceComparison } from '../../src/worker/lightning/jobs.ts';
import { createPaymentComparison, type SentPayments } from '../../src/worker/lightning/sent-comparison.ts';
import { lightningPayoutJob } from '../../src/worker/payouts/lightning/driver.ts';
import type { LightningPaying, LightningStep } from '../../src/worker/payouts/lightning/steps.ts';
import { type LightningEngine, type SimulatedEngine, simulatedEngine } from './lightning-engines.ts';
import { openLightningService } from './lightning-service.ts';
import { tellingTo } from './payout-jobs.ts';
import { INTENT_KEY } from './ports.ts';
import type { TestDatabase } from './postgres.ts';
import { eventually } from './service.ts';

export type LightningPayouts = Awaited<ReturnType<typeof openLightningPayouts>>;

/** For a look: of the request to pay the worker hears nothing, and the node has it. */
export const unheardBy = ({ paying }: Pick<LightningPayouts, 'paying'>): Pick<LightningPaying, 'send'> => ({
  async send(asked) {
    await paying.send(asked);
    throw Object.assign(new Error('no answer'), { fault: 'unreachable' });
  },
});
/** The worker's process has ended at a step. */
export class WorkerDied extends Error {}

const { keyId } = INTENT_KEY.sign(new Uint8Array());

/** As the signer's socket says it. */
async function saying<T>(ask: Promise<T>): Promise<T> {
  try {
    return await ask;
  } catch (error) {
    const { name } = error as Error;
    const fault = name === 'SigningRefused' ? 'refused' : name === 'NodeTrouble' ? 'node' : undefined;
    throw fault === undefined ? error : Object.assign(error as Error, { fault });
  }
}

export type LightningPayoutsOptions = {
  readonly limits?: SignerLimits;
  /** What leaves on chains, and is counted with it. */
  readonly onChains?: Pick<PayingOptions, 'countedAlone' | 'leftBesides'>;
  /** The journal as it behaves in this test. */
  readonly journalled?: (journal: PaymentJournal) => PaymentJournal;
};

/** A real node as the signer asks it, whose clock goes with that of a test. */
export function withClock(payer: LightningPayer, clock: { readonly skewMs: number }): LightningPayer {
  return {
    ...payer,
    async track(paymentHash) {
      const { saidAtMs, ...said } = await payer.track(paymentHash);
      return saidAtMs === undefined ? said : { ...said, saidAtMs: saidAtMs + clock.skewMs };
    },
  };
}

export async function openLightningPayouts(
  port: LightningPort,
  payer: LightningPayer,
  clock: { now(): number },
  { limits = {}, onChains, journalled = (journal) => journal }: LightningPayoutsOptions = {},
) {
  const service = await openLightningService(port, clock);
  const { ctx, admin, merchantId } = service;
  const folder = mkdtempSync(join(tmpdir(), 'bursar-paying-'));
  const readOnly = connect({ url: service.url, role: 'bursar_signer', maxConnections: 2, applicationName: 'test signer' });
  const journal = journalled(await openPaymentJournal(folder, 'regtest', clock));
  const channels = await openKnownChannels(folder, 'regtest');
  const troubles: string[] = [];
  const signerOn = (db: typeof readOnly): Paying =>
    createPaying({
      network: 'regtest',
      payer,
      db,
      journal: async () => journal,
      channels: async () => channels,
      intentKeys: async () => [keyId],
      limits,
      countedAlone: createTurns(),
      leftBesides: async () => [],
      ...onChains,
      now: () => clock.now(),
    });
  const payingBy = (signer: Paying): LightningPaying => ({
    node: () => saying(signer.node()),
    authorize: (of) => saying(signer.authorize(of)),
    send: (of) => saying(signer.send(of)),
    track: (hash) => saying(signer.track(hash)),
    channels: async (node) => (await saying(signer.knownChannels(node))).points,
    authorized: (after) => saying(signer.authorized(after)),
    payments: async (after) => (await saying(signer.payments(after.toString()))).payments,
  });
  const signer = signerOn(readOnly);
  const paying = payingBy(signer);
  const worker = (over: Partial<LightningPaying> = {}, diesAt: LightningStep | null = null, on = ctx) =>
    lightningPayoutJob(on, {
      paying: { ...paying, ...over },
      intents: async () => (intent, key, signature) => key === keyId && isIntentSigned(intent, key, signature),
      owner: 'test',
      ...tellingTo(troubles),
      reached: async (step) => {
        if (step === diesAt) throw new WorkerDied(step);
      },
    });

  const sent: SentPayments = {
    node: () => saying(signer.node()),
    payments: async (after: bigint) => (await signer.payments(after.toString())).payments,
  };
  return {
    ...service,
    troubles,
    paying,
    /** As its process has it, for a socket. */
    signer,
    /** What counts for the signer's limits. */
    leaving: () => journal.leaving(),
    /** One look of the worker. @param over what the signer does otherwise; `diesAt`: the worker's process ends there */
    async look(over: Partial<LightningPaying> = {}, diesAt: LightningStep | null = null): Promise<void> {
      try {
        await worker(over, diesAt).run();
      } catch (error) {
        if (!(error instanceof WorkerDied)) throw error;
      }
    },
    /** The same service on a copy of its database, with the node as it is, and the signer's folder too, or put back to before anything was sent. */
    async onCopy(copy: TestDatabase, forgets: Partial<LightningPaying> = {}) {
      const db = connect({ url: copy.url, role: 'bursar_signer', maxConnections: 2, applicationName: 'test signer' });
      const on = { ...ctx, db: copy.db };
      return { ctx: on, look: () => worker({ ...payingBy(signerOn(db)), ...forgets }, null, on).run(), close: () => db.close() };
    },
    request: (paymentRequest: string, amount: string, of = merchantId) =>
      requestLightningPayout(ctx, { merchantId: of, amount, destination: paymentRequest, paymentRequest }),
    payout: (payoutId: string, of = merchantId) => checkPayoutStatus(ctx, { merchantId: of, payoutId }),
    reimburse: (transactionId: string, destination: string, more: Partial<ReimbursementRequest> = {}) =>
      reimburseTransaction(ctx, { merchantId, transactionId, destination, part: null, currency: null, ...more }),
    refund: (transactionId: string) => readRefund(ctx, transactionId),
    /** The node's list of payments is compared. @param over what the signer does otherwise */
    async comparedPayments(over: Partial<SentPayments> = {}): Promise<void> {
      const compare = createPaymentComparison(ctx, { ...sent, ...over });
      while (await compare());
    },
    /** What the node has is compared before the job about its payments has run. @param over what the signer does otherwise */
    async comparedHoldings(over: Partial<SentPayments> = {}): Promise<string[]> {
      const compare = createInvoiceComparison(ctx, { port, watcher: null as never, sent: { ...sent, ...over } }, (_job, error) =>
        service.alarms.push(String(error)),
      );
      while (await compare());
      return service.findings();
    },
    /** What is booked, and what the node lists, is compared; everything that the audit finds wrong. */
    async compared(): Promise<string[]> {
      await this.comparedPayments();
      return this.comparedHoldings();
    },
    async payment(payoutId: string): Promise<Record<string, unknown>> {
      const { rows } = await admin.query('select * from lightning_payments where payout_id = $1', [payoutId]);
      return rows[0];
    },
    async close(): Promise<void> {
      await readOnly.close();
      await journal.close();
      await channels.close();
      payer.close();
      await service.drop();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/**
 * A transaction of the merchant that was paid and credited, whenever the node says so.
 * @returns its id
 */
export async function paidIn(at: LightningPayouts, engine: LightningEngine, usdMinor?: bigint): Promise<string> {
  const { transactionId, address } = await at.create(usdMinor);
  expect(await engine.pay(address, await at.hashOf(transactionId))).toBe(true);
  await eventually('it is credited', async () => {
    await at.work();
    return (await at.path(transactionId)).at(-1) === 'succeeded';
  });
  return transactionId;
}

/** The same on a simulated node of its own, with 500,000 satoshis that came in. */
export async function openSimulatedPayouts(
  clock: { now(): number },
  options: LightningPayoutsOptions = {},
): Promise<{ readonly engine: SimulatedEngine; readonly at: LightningPayouts; close(): Promise<void> }> {
  const engine = await simulatedEngine(() => clock.now());
  const port = createLnd(async () => engine.target(), { chain: 'regtest' });
  const payer = createLndPayer(async () => engine.payTarget());
  const at = await openLightningPayouts(port, payer, clock, options);
  await at.work();
  await at.look();
  const { transactionId, address } = await at.create(500_00n);
  await engine.pay(address, await at.hashOf(transactionId));
  await at.work();
  return {
    engine,
    at,
    async close() {
      await at.close();
      await engine.close();
    },
  };
}
