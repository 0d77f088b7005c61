// A payout from its request to the moment the driver takes it: what is refused, what is held, what is booked, who may stop it.
import { createPublicKey, verify } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { intentBytes } from '../../src/core/payouts/intent.ts';
import { Refusal } from '../../src/core/refusal.ts';
import type { Context } from '../../src/flow/context.ts';
import { reconsiderPayout } from '../../src/flow/payout-holds.ts';
import { approvePayout, cancelPayout, requestPayout } from '../../src/flow/payout-life.ts';
import { checkPayoutStatus } from '../../src/flow/payout-reads.ts';
import { setSettings } from '../../src/flow/settings.ts';
import { clearBreakers, tripBreaker } from '../../src/store/ledger/breakers.ts';
import { createHeldPayouts } from '../../src/worker/held-payouts.ts';
import { FEE_MAX, fund, OUTSIDE, owe, tellFee } from '../support/funded.ts';
import { openServiceOnDatabase, type ServiceOnDatabase } from '../support/service-on-database.ts';

let world: ServiceOnDatabase;
let ctx: Context;
let shops = 0;
beforeAll(async () => {
  world = await openServiceOnDatabase();
  ({ ctx } = world);
  await tellFee(ctx);
});
afterAll(() => world.drop());

const SCOPES = new Set(['read', 'payments', 'payouts'] as const);
const BTC = 100_000_000n;

/** A merchant with so much BTC. */
async function shopWith(amount: bigint): Promise<bigint> {
  shops += 1;
  const merchantId = await world.openShop(`shop${shops}`);
  if (amount > 0n) await fund(ctx, merchantId, amount);
  return merchantId;
}
const request = (merchantId: bigint, amount: string, destination = OUTSIDE, on = ctx) =>
  requestPayout(on, { merchantId, method: 'bitcoin', amount, destination });
const refusedWith = async (work: Promise<unknown>): Promise<string> => {
  const error = await work.then(
    () => 'nothing was refused',
    (reason) => reason,
  );
  return error instanceof Refusal ? error.code : String(error);
};
const of = (merchantId: bigint, kind: 'available' | 'held', currency = 'BTC') =>
  world.balance(`merchant:${merchantId}:${kind}:${currency}`);
async function counts(): Promise<object> {
  const { rows } = await world.admin.query(
    `select (select count(*) from payouts) as payouts, (select count(*) from ledger.entry) as entries, (select count(*) from events) as events`,
  );
  return rows[0];
}
async function row(id: string): Promise<Record<string, unknown>> {
  return (await world.admin.query('select * from payouts where id = $1', [id])).rows[0];
}
const path = async (id: string): Promise<string[]> =>
  (await world.admin.query('select type from events where object_id = $1 order by sequence', [id])).rows.map(({ type }) => type);
/** What the audit finds wrong in the ledger: the balances of these merchants were given to them without payments. */
const ledgerFindings = async (): Promise<string[]> =>
  (await world.findings()).filter((finding) => !/^(BOOK-3|INV-7|CHAIN-2):/.test(finding));
/** One pass of the worker's job. */
const held = async (on = ctx): Promise<void> => {
  const troubles: unknown[] = [];
  await createHeldPayouts(on, (_id, error) => troubles.push(error)).run();
  expect(troubles).toEqual([]);
};
const trip = () => tripBreaker(ctx.db, { name: 'payouts', by: ['INV-1'], findings: ['INV-1: x'], atMs: ctx.ports.clock.now() });
const approvalAbove = (merchantId: bigint, usd: string | null) =>
  setSettings(ctx, { merchantId, scopes: SCOPES, change: { payoutApprovalAbove: usd } });

describe('a request', () => {
  test('that nothing holds is processing: amount and highest fee leave available for held, one event', async () => {
    const merchantId = await shopWith(BTC);
    const made = await request(merchantId, '0.50');
    expect(made).toMatchObject({ status: 'processing', step: 'queued', heldReason: null, amountText: '0.50', amount: BTC / 2n });
    expect(made).toMatchObject({ usdMinor: 50_000_00n, feeMax: FEE_MAX, fee: null, automatic: false });
    expect(await of(merchantId, 'available')).toBe(BTC / 2n - FEE_MAX);
    expect(await of(merchantId, 'held')).toBe(BTC / 2n + FEE_MAX);
    expect(await path(made.id)).toEqual(['payout.processing']);
    const { rows } = await world.admin.query('select key, kind from ledger.entry where payout_id = $1', [made.id]);
    expect(rows).toEqual([{ key: `po:${made.id}:hold`, kind: 'payout_hold' }]);
    expect(await ledgerFindings()).toEqual([]);
  });

  test('is signed by the key of the API, and any other field is not', async () => {
    const merchantId = await shopWith(BTC);
    const made = await request(merchantId, '0.25');
    const { intent, intent_key: keyId, script } = (await row(made.id)) as { intent: Buffer; intent_key: string; script: Buffer };
    const x = Buffer.from(keyId, 'hex').toString('base64url');
    const key = createPublicKey({ key: { kty: 'OKP', crv: 'Ed25519', x }, format: 'jwk' });
    const signed = {
      network: ctx.network,
      payoutId: made.id,
      merchantId,
      method: 'bitcoin',
      currency: 'BTC',
      amount: 25_000_000n,
      feeMax: FEE_MAX,
      destination: script.toString('hex'),
      createdAtMs: made.createdAtMs,
    };
    expect(verify(null, intentBytes(signed), key, intent)).toBe(true);
    expect(verify(null, intentBytes({ ...signed, amount: 25_000_001n }), key, intent)).toBe(false);
  });

  test('for all takes the largest amount that leaves its fee, and answers it with eight decimals', async () => {
    const merchantId = await shopWith(BTC + 5n);
    const made = await request(merchantId, 'all');
    expect(made.amount).toBe(BTC + 5n - FEE_MAX);
    expect(made.amountText).toBe('0.99996005');
    expect(await of(merchantId, 'available')).toBe(0n);
  });

  test('for exactly what the balance covers is taken, for one satoshi more it is refused', async () => {
    const merchantId = await shopWith(100_000n + FEE_MAX);
    const before = await counts();
    expect(await refusedWith(request(merchantId, '0.00100001'))).toBe('insufficient_balance');
    expect(await counts()).toEqual(before);
    expect((await request(merchantId, '0.001')).status).toBe('processing');
    expect(await of(merchantId, 'available')).toBe(0n);
    expect(await refusedWith(request(merchantId, '0.001'))).toBe('insufficient_balance');
  });

  test('is refused in the order address, allow-list, minimum, fee, balance, and leaves nothing', async () => {
    const poor = await shopWith(0n);
    const rich = await shopWith(BTC);
    const tiny = await shopWith(90_000n);
    const own = await world.create(50_00n, 'BTC', rich);
    const { rows } = await world.admin.query(`select id from account_xpubs where currency = 'BTC'`);
    const script = ctx.ports.destinations.bitcoinScript(OUTSIDE_TOO);
    await world.admin.query(
      `insert into own_addresses (account_xpub_id, address_index, currency, script) values ($1, 7, 'BTC', $2)`,
      [rows[0].id, Buffer.from(script)],
    );
    await setSettings(ctx, { merchantId: tiny, scopes: SCOPES, change: { payoutAllowList: ['bcrt1qother'] } });
    const before = await counts();
    expect(await refusedWith(request(rich, '0.1', own.address))).toBe('invalid_destination');
    expect(await refusedWith(request(poor, '0.0001', own.address))).toBe('invalid_destination');
    expect(await refusedWith(request(rich, '0.1', OUTSIDE_TOO))).toBe('invalid_destination');
    expect(await refusedWith(request(tiny, '0.0001'))).toBe('destination_not_allowed');
    expect(await refusedWith(request(poor, '0.00099999'))).toBe('payout_below_minimum');
    expect(await refusedWith(request(poor, '0'))).toBe('payout_below_minimum');
    expect(await refusedWith(request(poor, '0.001'))).toBe('insufficient_balance');
    expect(await refusedWith(request(poor, 'all'))).toBe('insufficient_balance');
    await setSettings(ctx, { merchantId: tiny, scopes: SCOPES, change: { payoutAllowList: [OUTSIDE] } });
    await world.wait(86_400_000);
    expect(await refusedWith(request(tiny, 'all'))).toBe('payout_below_minimum');
    await world.admin.query('delete from fee_rates');
    try {
      expect(await refusedWith(request(poor, '0.00099999'))).toBe('payout_below_minimum');
      expect(await refusedWith(request(rich, '0.1'))).toBe('currency_unavailable');
    } finally {
      await tellFee(ctx);
    }
    expect(await counts()).toEqual(before);
    expect(await of(rich, 'available')).toBe(BTC);
  });

  test('in a currency that is owed finds nothing available', async () => {
    const merchantId = await shopWith(0n);
    await owe(ctx, merchantId, 5_000_000n, 'BTC');
    expect(await refusedWith(request(merchantId, 'all'))).toBe('insufficient_balance');
  });

  test('a hundred at once on a balance that covers exactly fifty: exactly fifty are taken', async () => {
    const merchantId = await shopWith(50n * (1_000_000n + FEE_MAX));
    const done = await Promise.all(
      Array.from({ length: 100 }, () =>
        request(merchantId, '0.01').then(
          () => 'taken',
          (error: Refusal) => error.code,
        ),
      ),
    );
    expect(done.filter((one) => one === 'taken')).toHaveLength(50);
    expect(done.filter((one) => one === 'insufficient_balance')).toHaveLength(50);
    expect(await of(merchantId, 'available')).toBe(0n);
    expect(await of(merchantId, 'held')).toBe(50n * (1_000_000n + FEE_MAX));
    expect(await ledgerFindings()).toEqual([]);
  });

  test('whose session is cut at any moment leaves the payout and its hold, or neither', async () => {
    const merchantId = await shopWith(BTC);
    let cut = 0;
    for (let round = 0; round < 60; round++) {
      const asked = request(merchantId, '0.001').then(
        () => 'done',
        () => 'cut',
      );
      await new Promise((resolve) => setTimeout(resolve, round % 12));
      await world.admin.query(
        `select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'test' and datname = current_database() and state <> 'idle'`,
      );
      if ((await asked) === 'cut') cut += 1;
    }
    expect(cut).toBeGreaterThan(0);
    const { rows } = await world.admin.query(
      `select (select count(*)::int from payouts p where merchant_id = $1) as payouts,
              (select count(*)::int from payouts p where merchant_id = $1 and not exists (select from ledger.entry e where e.key = 'po:' || p.id || ':hold')) as unheld,
              (select count(*)::int from ledger.entry e where kind = 'payout_hold' and not exists (select from payouts p where p.id = e.payout_id)) as unclaimed`,
      [merchantId],
    );
    expect(rows[0]).toMatchObject({ unheld: 0, unclaimed: 0 });
    expect(await of(merchantId, 'held')).toBe(BigInt(rows[0].payouts) * (100_000n + FEE_MAX));
    expect(await ledgerFindings()).toEqual([]);
  });
});
const OUTSIDE_TOO = 'bcrt1qw508d6qejxtdg4y5r3zarvary0c5xw7kygt080';

describe('a payout waits', () => {
  test('for the breaker, then for what is owed, then for approval, and goes on when nothing is left', async () => {
    const merchantId = await shopWith(BTC);
    await approvalAbove(merchantId, '1000');
    await trip();
    await owe(ctx, merchantId, 70n);
    const made = await request(merchantId, '0.5');
    expect(made).toMatchObject({ status: 'pending', step: 'held', heldReason: 'breaker' });
    expect(await path(made.id)).toEqual(['payout.pending']);
    await held();
    expect(await row(made.id)).toMatchObject({ status: 'pending', held_reason: 'breaker' });
    await clearBreakers(ctx.db, 'test', ctx.ports.clock.now());
    await held();
    expect(await row(made.id)).toMatchObject({ status: 'pending', held_reason: 'receivable' });
    await owe(ctx, merchantId, -70n);
    await held();
    expect(await row(made.id)).toMatchObject({ status: 'pending', held_reason: 'approval' });
    await held();
    expect(await path(made.id)).toEqual(['payout.pending']);
    expect(await approvePayout(ctx, { payoutId: made.id, by: 'ann' })).toMatchObject({ status: 'processing', step: 'queued' });
    expect(await row(made.id)).toMatchObject({ held_reason: null, approved_by: 'ann' });
    expect(await path(made.id)).toEqual(['payout.pending', 'payout.processing']);
    expect(await approvePayout(ctx, { payoutId: made.id, by: 'bob' })).toMatchObject({ status: 'processing' });
    expect(await row(made.id)).toMatchObject({ approved_by: 'ann' });
  });

  test('for approval above the limit only, and still when the limit was raised since', async () => {
    const merchantId = await shopWith(BTC);
    await approvalAbove(merchantId, '1000.00');
    expect((await request(merchantId, '0.01')).status).toBe('processing');
    const above = await request(merchantId, '0.01000001');
    expect(above).toMatchObject({ status: 'pending', heldReason: 'approval', needsApproval: true });
    await approvalAbove(merchantId, null);
    await world.wait(86_400_000);
    await held();
    await reconsiderPayout(ctx, above.id);
    expect(await row(above.id)).toMatchObject({ status: 'pending', held_reason: 'approval' });
    expect(await refusedWith(approvePayout(ctx, { payoutId: 'payout_0', by: 'ann' }))).toBe('payout_not_found');
  });

  test('for approval when no price is known while there is a limit', async () => {
    const merchantId = await shopWith(BTC);
    await approvalAbove(merchantId, '1000000');
    world.pass(301_000);
    try {
      expect(await request(merchantId, '0.01')).toMatchObject({ heldReason: 'approval', usdMinor: null });
    } finally {
      await world.wait(0);
    }
  });

  test('for approval by a limit that was lowered while another reason held it', async () => {
    const merchantId = await shopWith(BTC);
    await owe(ctx, merchantId, 1n);
    const made = await request(merchantId, '0.5');
    expect(made.heldReason).toBe('receivable');
    await approvalAbove(merchantId, '10');
    await owe(ctx, merchantId, -1n);
    await held();
    expect(await row(made.id)).toMatchObject({ held_reason: 'approval' });
    expect(await approvePayout(ctx, { payoutId: made.id, by: 'ann' })).toMatchObject({ status: 'processing' });
  });

  test('again for what is owed while it is only queued, and stays processing without an event', async () => {
    const merchantId = await shopWith(BTC);
    const made = await request(merchantId, '0.5');
    await owe(ctx, merchantId, 9n, 'DOGE');
    await held();
    expect(await row(made.id)).toMatchObject({ status: 'processing', step: 'held', held_reason: 'receivable' });
    expect(await refusedWith(cancelPayout(ctx, { merchantId, payoutId: made.id }))).toBe('payout_not_cancellable');
    await owe(ctx, merchantId, -9n, 'DOGE');
    await held();
    expect(await row(made.id)).toMatchObject({ status: 'processing', step: 'queued', held_reason: null });
    expect(await path(made.id)).toEqual(['payout.processing']);
  });

  test('not_final: what is paid out of credits that are not final is limited, and goes on by itself', async () => {
    const limited: Context = { ...ctx, unfinalPayoutMinor: 10_000_00n };
    const merchantId = await shopWith(0n);
    const paid = await world.create(50_000_00n, 'BTC', merchantId);
    await world.pay(paid.transactionId, BTC / 2n);
    // six confirmations credit it; final is the same depth, so a reorganisation of a credited payment is played by its height
    await world.mine(6);
    await world.judge();
    expect(await of(merchantId, 'available')).toBe(BTC / 2n);
    await world.admin.query('update payments set height = height + 3 where transaction_id = $1', [paid.transactionId]);
    const first = await request(merchantId, '0.09', OUTSIDE, limited);
    expect(first).toMatchObject({ status: 'processing' });
    const second = await request(merchantId, '0.02', OUTSIDE, limited);
    expect(second).toMatchObject({ status: 'pending', heldReason: 'not_final' });
    // what waits is still here: a small one fits
    expect(await request(merchantId, '0.005', OUTSIDE, limited)).toMatchObject({ status: 'processing' });
    await held(limited);
    expect(await row(second.id)).toMatchObject({ status: 'pending', held_reason: 'not_final' });
    await world.mine(3);
    await held(limited);
    expect(await row(second.id)).toMatchObject({ status: 'processing', held_reason: null });
    expect(await request(merchantId, 'all', OUTSIDE, limited)).toMatchObject({ status: 'processing' });
  });
});

describe('a cancel', () => {
  const waiting = async (amount: bigint): Promise<{ merchantId: bigint; payoutId: string }> => {
    const merchantId = await shopWith(amount);
    await approvalAbove(merchantId, '0');
    return { merchantId, payoutId: (await request(merchantId, 'all')).id };
  };

  test('fails a payout that waits with the error cancelled and gives its hold back; twice is the same', async () => {
    const payout = await waiting(BTC);
    expect(await of(payout.merchantId, 'available')).toBe(0n);
    const first = await cancelPayout(ctx, payout);
    expect(first).toMatchObject({ status: 'failed', step: 'ended', error: 'cancelled', heldReason: null });
    expect(await of(payout.merchantId, 'available')).toBe(BTC);
    expect(await of(payout.merchantId, 'held')).toBe(0n);
    expect(await cancelPayout(ctx, payout)).toEqual(first);
    expect(await of(payout.merchantId, 'available')).toBe(BTC);
    expect(await path(payout.payoutId)).toEqual(['payout.pending', 'payout.failed']);
    expect(await refusedWith(approvePayout(ctx, { payoutId: payout.payoutId, by: 'ann' }))).toBe('not_resolvable');
    expect(await ledgerFindings()).toEqual([]);
  });

  test('release_repays: the hold that comes back repays what is owed first', async () => {
    const payout = await waiting(BTC);
    await owe(ctx, payout.merchantId, 30_000_000n, 'BTC');
    await cancelPayout(ctx, payout);
    expect(await world.balance(`asset:receivable:merchant:${payout.merchantId}:BTC`)).toBe(0n);
    expect(await of(payout.merchantId, 'available')).toBe(70_000_000n);
    const other = await waiting(BTC);
    await owe(ctx, other.merchantId, 3n * BTC, 'BTC');
    await cancelPayout(ctx, other);
    expect(await world.balance(`asset:receivable:merchant:${other.merchantId}:BTC`)).toBe(2n * BTC);
    expect(await of(other.merchantId, 'available')).toBe(0n);
  });

  test('is refused for a payout that is processing, and for that of another merchant as for none', async () => {
    const merchantId = await shopWith(BTC);
    const stranger = await shopWith(0n);
    const made = await request(merchantId, '0.5');
    expect(await refusedWith(cancelPayout(ctx, { merchantId, payoutId: made.id }))).toBe('payout_not_cancellable');
    for (const payoutId of [made.id, 'payout_none']) {
      expect(await refusedWith(cancelPayout(ctx, { merchantId: stranger, payoutId }))).toBe('payout_not_found');
      expect(await refusedWith(checkPayoutStatus(ctx, { merchantId: stranger, payoutId }))).toBe('payout_not_found');
    }
  });

  test('and the job that lets it go on: one of them wins, and the books follow', async () => {
    const outcomes = new Set<string>();
    for (let round = 0; round < 25; round++) {
      const merchantId = await shopWith(BTC);
      await owe(ctx, merchantId, 1n);
      const { id: payoutId } = await request(merchantId, '0.5');
      await owe(ctx, merchantId, -1n);
      const going = [() => reconsiderPayout(ctx, payoutId), () => cancelPayout(ctx, { merchantId, payoutId })];
      if (round % 2 === 0) going.reverse();
      const [, cancelled] = await Promise.allSettled(going.map((go) => go())).then((done) =>
        round % 2 === 0 ? done.reverse() : done,
      );
      const { status, step } = await row(payoutId);
      outcomes.add(String(status));
      if (cancelled?.status === 'fulfilled') expect([status, step]).toEqual(['failed', 'ended']);
      else expect([status, step]).toEqual(['processing', 'queued']);
      expect(await of(merchantId, 'held')).toBe(status === 'failed' ? 0n : BTC / 2n + FEE_MAX);
    }
    expect(outcomes.size).toBe(2);
    expect(await ledgerFindings()).toEqual([]);
  }, 60_000);
});
