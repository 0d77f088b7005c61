// Payouts over Lightning on a simulated node of their own, paid by a merchant who has been paid 500 USD, with a clock that the test moves.
import { expect } from 'vitest';
import type { LightningPayer } from '../../src/core/lightning/payer.ts';
import { runAudit } from '../../src/flow/audit.ts';
import { addMerchant } from '../../src/flow/merchants/merchants.ts';
import { createTransaction } from '../../src/flow/transactions/create-cancel-resolve.ts';
import { createLnd } from '../../src/outside/lightning/lnd.ts';
import { createLndPayer } from '../../src/outside/lightning/lnd-payer.ts';
import type { SignerLimits } from '../../src/signer/limits.ts';
import { type SimulatedEngine, simulatedEngine } from '../support/lightning-engines.ts';
import {
  type LightningPayouts,
  type LightningPayoutsOptions,
  openLightningPayouts,
  unheardBy,
} from '../support/lightning-payouts.ts';
import { eventually } from '../support/service.ts';

export const MINUTE = 60_000;
export const AMOUNT = '0.00001';
/** `behindMs`: by how much the clock of the node is behind. */
export const clock = { nowMs: 0, behindMs: 0, now: () => clock.nowMs };
export function pass(ms: number): void {
  clock.nowMs += ms;
}
export let engine: SimulatedEngine;
export let at: LightningPayouts;

/** @param around the node as the signer asks it, changed by the test */
export async function open(
  limits: SignerLimits = {},
  around = (payer: LightningPayer): LightningPayer => payer,
  more: Omit<LightningPayoutsOptions, 'limits'> = {},
): Promise<void> {
  Object.assign(clock, { nowMs: Date.now(), behindMs: 0 });
  engine = await simulatedEngine(() => clock.nowMs - clock.behindMs);
  const port = createLnd(async () => engine.target(), { chain: 'regtest' });
  const payer = createLndPayer(async () => engine.payTarget());
  at = await openLightningPayouts(port, around(payer), clock, { limits, ...more });
  await at.work();
  await at.look();
  const { transactionId, address } = await at.create(500_00n);
  await engine.pay(address, await at.hashOf(transactionId));
  await at.work();
  expect(await at.available()).toBe(500_000n);
}
export async function close(): Promise<void> {
  await at.close();
  await engine.close();
}

export const outgoing = () => engine.node().outgoing;
/** An invoice of the outside world, for {@link AMOUNT} unless told otherwise. */
export const invoice = (behaviour: 'pay' | 'hold' | 'fail' = 'pay', amountMsat = 1_000_000n) =>
  outgoing().invoice({ amountMsat, expirySeconds: 3_600, behaviour });
/** The operator has the node pay an invoice without an amount by hand: as much as a payout would send. */
export async function sendByHand(request: string, payoutId: string): Promise<void> {
  const { rows } = await at.admin.query('select amount - fee_max as sends from payouts where id = $1', [payoutId]);
  outgoing().send(request, BigInt(rows[0].sends) * 1000n, 90_000n);
}
/** The worker looks again and again; each time what waits for a second or a retry is due. */
export async function looks(times: number, ms = 16_000): Promise<void> {
  for (let n = 0; n < times; n++) {
    pass(ms);
    await at.look();
  }
}
/** Everything is compared a minute later. @returns what stops payouts, and what is told of the node */
export async function toldAfterAMinute(): Promise<readonly string[]> {
  pass(MINUTE);
  await at.rate('100000.00');
  await at.work();
  const stops = await at.compared();
  const told = (await runAudit(at.ctx)).pages.filter(({ id }) => id.startsWith('LN-'));
  return [...stops, ...told.flatMap(({ id, findings }) => findings.map((finding) => `${id}: ${finding}`))];
}
export const status = async (id: string): Promise<string> => (await at.payout(id)).status;
/** The code of the refusal that a call ends with; `accepted` when it does not. */
export const code = (work: Promise<unknown>): Promise<unknown> =>
  work.then(
    () => 'accepted',
    (error: { code?: string }) => error.code,
  );

/** Another merchant of this installation; its number. */
export async function merchant(): Promise<bigint> {
  const of = { username: 'other', password: 'correct horse battery', email: 'other@example.com', businessName: 'Other' };
  const { affiliateId } = await addMerchant(at.ctx, of);
  const { rows } = await at.admin.query('select id from merchants where affiliate_id = $1', [affiliateId]);
  return BigInt(rows[0].id);
}
/** A transaction of another merchant here, and a payout of ours to its invoice. */
export async function toAnother() {
  const other = await merchant();
  const made = await createTransaction(at.ctx, {
    merchantId: other,
    usdMinor: 10_00n,
    method: 'BTC-LN',
    label: null,
    email: null,
  });
  const { id } = await at.request(made.address, '0.0001');
  return { other, made, id };
}

/** Whether the channel of the node is being closed by force. */
export const forced = (isForced: boolean): void => engine.node().own.setBetween(isForced, isForced);
/** The connections to the node that was put back have broken, and others are there. */
export const reached = async (): Promise<void> => {
  const answers = async (): Promise<boolean> => {
    await at.paying.track('00'.repeat(32));
    await at.ctx.ports.lightning?.isClosing();
    return (await at.paying.node()).identity !== '';
  };
  await eventually('the node is reached', () => answers().catch(() => false));
};
/** Of the request to pay the worker hears nothing, and the node has it. */
export const unheard = () => unheardBy(at);
