// A service on a database with merchants who have bitcoin: what the tests of payouts share.
import { afterAll, beforeAll, expect } from 'vitest';
import { Refusal } from '../../../src/core/refusal.ts';
import type { Context } from '../../../src/flow/context.ts';
import { setSettings } from '../../../src/flow/merchants/settings.ts';
import { requestPayout } from '../../../src/flow/payouts/bitcoin-request.ts';
import { tripBreaker } from '../../../src/store/ledger/breakers.ts';
import { createHeldPayouts } from '../../../src/worker/payouts/held-payouts.ts';
import { fund, OUTSIDE, tellFee } from '../../support/funded.ts';
import { openServiceOnDatabase, type ServiceOnDatabase } from '../../support/service-on-database.ts';

export let world: ServiceOnDatabase;
export let ctx: Context;
export let shops = 0;
/** Opens it before the tests of the file, and drops it afterwards. */
export function merchantsForAll(): void {
  beforeAll(async () => {
    world = await openServiceOnDatabase();
    ({ ctx } = world);
    await tellFee(ctx);
  });
  afterAll(() => world.drop());
}

export const SCOPES = new Set(['read', 'payments', 'payouts'] as const);
export const BTC = 100_000_000n;

/** A merchant with so much BTC. */
export async function shopWith(amount: bigint): Promise<bigint> {
  shops += 1;
  const merchantId = await world.openShop(`shop${shops}`);
  if (amount > 0n) await fund(ctx, merchantId, amount);
  return merchantId;
}
/** A merchant with half a bitcoin that is credited, and final after three more blocks. */
export async function shopNotFinal(): Promise<bigint> {
  const merchantId = await shopWith(0n);
  const paid = await world.create(50_000_00n, 'BTC', merchantId);
  await world.pay(paid.transactionId, BTC / 2n);
  // six confirmations credit it; final is the same depth, so a reorganisation of a credited payment is played by its height
  await world.mine(6);
  await world.judge();
  expect(await of(merchantId, 'available')).toBe(BTC / 2n);
  await world.admin.query('update payments set height = height + 3 where transaction_id = $1', [paid.transactionId]);
  return merchantId;
}

export const request = (merchantId: bigint, amount: string, destination = OUTSIDE, on = ctx) =>
  requestPayout(on, { merchantId, amount, destination });
export const refusedWith = async (work: Promise<unknown>): Promise<string> => {
  const error = await work.then(
    () => 'nothing was refused',
    (reason) => reason,
  );
  return error instanceof Refusal ? error.code : String(error);
};
export const of = (merchantId: bigint, kind: 'available' | 'held', currency = 'BTC') =>
  world.balance(`merchant:${merchantId}:${kind}:${currency}`);
export async function counts(): Promise<object> {
  const { rows } = await world.admin.query(
    `select (select count(*) from payouts) as payouts, (select count(*) from ledger.entry) as entries, (select count(*) from events) as events`,
  );
  return rows[0];
}
export async function row(id: string): Promise<Record<string, unknown>> {
  return (await world.admin.query('select * from payouts where id = $1', [id])).rows[0];
}
export const path = async (id: string): Promise<string[]> =>
  (await world.admin.query('select type from events where object_id = $1 order by sequence', [id])).rows.map(({ type }) => type);
/** What the audit finds wrong in the ledger: the balances of these merchants were given to them without payments. */
export const ledgerFindings = async (): Promise<string[]> =>
  (await world.findings()).filter((finding) => !/^(BOOK-3|INV-6|INV-7|CHAIN-2):/.test(finding));
/** One pass of the worker's job. */
export const held = async (on = ctx): Promise<void> => {
  const troubles: unknown[] = [];
  await createHeldPayouts(on, (_id, error) => troubles.push(error)).run();
  expect(troubles).toEqual([]);
};
export const trip = () =>
  tripBreaker(ctx.db, { name: 'payouts', by: ['INV-1'], findings: ['INV-1: x'], atMs: ctx.ports.clock.now() });
export const approvalAbove = (merchantId: bigint, usd: string | null) =>
  setSettings(ctx, { merchantId, scopes: SCOPES, change: { payoutApprovalAbove: usd } });
