// Invoices that nobody can ever pay: the payout ends with its reason and gives its money back, instead of waiting for ever. And payments that a
// restored node has forgotten. On the simulated node with a clock that the test moves; what LND itself says, on two real ones.
import { createHash } from 'node:crypto';
import { bech32 } from '@scure/base';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { acceptForgotten } from '../../src/flow/lightning/unasked-payments.ts';
import { setSettings } from '../../src/flow/merchants/settings.ts';
import { cancelPayout } from '../../src/flow/payouts/cancel-and-approve.ts';
import { createLnd } from '../../src/outside/lightning/lnd.ts';
import { createLndPayer } from '../../src/outside/lightning/lnd-payer.ts';
import { signedRequest } from '../../src/sandbox/lightning/bolt11.ts';
import { clearBreakers, openBreakers, tripBreaker } from '../../src/store/ledger/breakers.ts';
import { createHeldPayouts } from '../../src/worker/payouts/held-payouts.ts';
import { invoice } from '../support/invoice.ts';
import { HAS_LND, lndEngine } from '../support/lightning-engines.ts';
import { openLightningPayouts, openSimulatedPayouts, paidIn } from '../support/lightning-payouts.ts';
import { eventually } from '../support/service.ts';

const MINUTE = 60_000;
const AMOUNT = '0.00001';

/** Right in form and signature for us; LND does not read its description, which is no UTF-8. */
function unreadable(): string {
  const { prefix, words } = bech32.decode(invoice({ sat: 1_000 }) as `${string}1${string}`, false);
  const coffee = bech32.toWords(Buffer.from('coffee'));
  const at = words.findIndex((_, n) => coffee.every((word, k) => words[n + k] === word));
  const bad = bech32.toWords(Buffer.alloc(6, 0xff));
  const changed = [...words.slice(0, at), ...bad, ...words.slice(at + bad.length, -104)];
  return signedRequest(prefix, changed, createHash('sha256').update('somebody').digest());
}

describe('on the simulated node', () => {
  const clock = { nowMs: 0, now: () => clock.nowMs };
  let open: Awaited<ReturnType<typeof openSimulatedPayouts>>;
  beforeEach(async () => {
    clock.nowMs = Date.now();
    open = await openSimulatedPayouts(clock);
  });
  afterEach(() => open.close());
  const outgoing = () => open.engine.node().outgoing;
  const outside = (behaviour: 'pay' | 'hold' = 'pay') =>
    outgoing().invoice({ amountMsat: 1_000_000n, expirySeconds: 3_600, behaviour });
  const letGo = async (): Promise<void> => void (await createHeldPayouts(open.at.ctx, () => undefined).run());
  async function looks(times: number, ms = 16_000): Promise<void> {
    for (let n = 0; n < times; n++) {
      clock.nowMs += ms;
      await letGo();
      await open.at.look();
    }
  }

  test('an invoice that the node does not accept ends its payout before anything is sent', async () => {
    const { at } = open;
    const { id } = await at.request(invoice({ sat: 1_000 }), AMOUNT);
    await at.look();
    expect(await at.payout(id)).toMatchObject({
      status: 'failed',
      error: "the Lightning node cannot read the invoice: invoice not for current active network 'regtest'",
    });
    expect(await at.available()).toBe(500_000n);
    expect(await at.compared()).toEqual([]);
  });

  test('never_is_last: what the node will never take ends it once no request of ours can still arrive', async () => {
    const { at } = open;
    const { id } = await at.request(outside().request, AMOUNT);
    await at.look({ send: async () => ({ state: 'unanswered', reason: 'it lies on the wire' }) });
    const never = { send: async () => ({ state: 'never', reason: 'self-payments not allowed' }) as const };
    for (let n = 0; n < 4; n++) {
      clock.nowMs += 16_000;
      await at.look(never);
      expect((await at.payout(id)).status).toBe('processing');
    }
    clock.nowMs += 40_000;
    await at.look(never);
    expect(await at.payout(id)).toMatchObject({
      status: 'failed',
      error: 'the Lightning node cannot pay the invoice: self-payments not allowed',
    });
    expect(await at.available()).toBe(500_000n);
    expect(await at.compared()).toEqual([]);
  });

  test('one that expires while its payout is committed and the node was never asked ends it at once', async () => {
    const { at } = open;
    const { id } = await at.request(outside().request, AMOUNT);
    const refuses = { send: async () => ({ state: 'refused', reason: 'policy' }) as const };
    await at.look(refuses);
    expect(await at.payment(id)).toMatchObject({ state: 'sent' });
    clock.nowMs += 61 * MINUTE;
    await at.look(refuses);
    expect(await at.payout(id)).toMatchObject({
      status: 'failed',
      error: 'the invoice expired, and the Lightning node was never asked to pay it',
    });
    expect(await at.available()).toBe(500_000n);
  });

  test('expire_looks_at_state: one that expires while its payout is held, whatever holds it, ends it, and what was committed goes on', async () => {
    const { at } = open;
    const hanging = [];
    for (let n = 0; n < 11; n++) hanging.push(await at.request(outside('hold').request, AMOUNT));
    await looks(1);
    await looks(1);
    const crowded: string[] = [];
    for (const { id } of hanging) if ((await at.payout(id)).heldReason === 'cool_down') crowded.push(id);
    expect(crowded).toHaveLength(1);
    const guarded = { tolerancePercent: undefined, latePayments: undefined, payoutAllowList: undefined };
    const change = { ...guarded, payoutApprovalAbove: '0.00' };
    const asked = { merchantId: at.merchantId, scopes: new Set(['payouts', 'payments'] as const) };
    await setSettings(at.ctx, { ...asked, change });
    const approval = await at.request(outside().request, AMOUNT);
    await tripBreaker(at.ctx.db, { name: 'payouts', by: ['X-1'], findings: ['for this test'], atMs: clock.nowMs });
    const stopped = await at.request(outside().request, AMOUNT);
    const held = [approval.id, stopped.id, ...crowded];
    for (const id of held) expect((await at.payout(id)).status).toBe('pending');
    clock.nowMs += 61 * MINUTE;
    await at.look();
    for (const id of held)
      expect(await at.payout(id)).toMatchObject({ status: 'failed', error: 'invoice_expired', heldReason: null });
    for (const { id } of hanging.filter(({ id }) => !crowded.includes(id)))
      expect((await at.payout(id)).status).toBe('processing');
    expect(await at.available()).toBe(500_000n - 10n * 1_010n);
    expect((await at.findings()).filter((finding) => !finding.includes('X-1'))).toEqual([]);
  });

  test('commit_looks_at_payout: one that was held and cancelled after its lease began is not committed', async () => {
    const { at } = open;
    const to = outside();
    const { id } = await at.request(to.request, AMOUNT);
    await at.look({
      async authorize(asked) {
        const said = await at.paying.authorize(asked);
        await tripBreaker(at.ctx.db, { name: 'payouts', by: ['X-1'], findings: ['for this test'], atMs: clock.nowMs });
        await letGo();
        await cancelPayout(at.ctx, { merchantId: at.merchantId, payoutId: id });
        await clearBreakers(at.ctx.db, 'test', clock.nowMs);
        return said;
      },
    });
    await looks(2);
    expect(await at.payout(id)).toMatchObject({ status: 'failed', error: 'cancelled' });
    expect(outgoing().payment(to.hash)).toBeNull();
    expect(await at.available()).toBe(500_000n);
    expect(await at.compared()).toEqual([]);
  });

  test('a merchant who has half of our channels on its way waits with more, and with one alone he does not', async () => {
    const { at } = open;
    const narrow = { node: async () => ({ ...(await at.paying.node()), spendable: '2500' }) };
    const first = await at.request(outside('hold').request, AMOUNT);
    await at.look(narrow);
    const second = await at.request(outside().request, AMOUNT);
    await at.look(narrow);
    expect((await at.payment(first.id)).state).toBe('sent');
    expect(await at.payment(second.id)).toMatchObject({
      state: 'waiting',
      trouble: 'its merchant has too much of our channels on its way',
    });
    clock.nowMs += 16_000;
    await at.look();
    expect((await at.payout(second.id)).status).toBe('completed');
  });

  test('a completed payment that a restored node has forgotten is ended by payout recover, and stays so', async () => {
    const { at } = open;
    const to = outside();
    const { id } = await at.request(to.request, AMOUNT);
    await at.look();
    // what the node had listed as paid needs nobody: this one is not listed yet
    expect((await at.payout(id)).status).toBe('completed');
    expect(await at.findings()).toEqual([]);
    expect(await acceptForgotten(at.ctx, to.hash)).toBeNull();
    outgoing().forget(to.hash);
    await looks(1, 61_000);
    expect((await openBreakers(at.ctx.db)).flatMap(({ trippedBy }) => trippedBy)).toEqual(['LN-5']);
    expect(await at.compared()).toEqual([expect.stringContaining(`does not list ${to.hash} (bursar payout recover)`)]);
    expect(await acceptForgotten(at.ctx, to.hash)).toBe(id);
    expect(await acceptForgotten(at.ctx, to.hash)).toBeNull();
    expect(await at.compared()).toEqual([]);
    await clearBreakers(at.ctx.db, 'test', clock.nowMs);
    // its number is given to another payment, and both are what they are
    const next = await at.request(outside().request, AMOUNT);
    await looks(1);
    expect((await at.payout(next.id)).status).toBe('completed');
    expect((await at.payment(next.id)).payment_index).toBe((await at.payment(id)).payment_index);
    expect(await at.compared()).toEqual([]);
  });
});

describe.runIf(HAS_LND)('on LND', () => {
  test('an invoice that LND does not read, or will never pay, ends its payout with its words', { timeout: 180_000 }, async () => {
    const engine = await lndEngine();
    const port = createLnd(async () => engine.target(), { chain: 'regtest' });
    const payer = createLndPayer(async () => engine.payTarget());
    const at = await openLightningPayouts(port, payer, { now: () => Date.now() });
    try {
      await at.work();
      await at.look();
      await paidIn(at, engine, 500_00n);
      expect(await at.available()).toBe(500_000n);
      const first = await at.request(unreadable(), AMOUNT);
      const second = await at.request((await engine.invoice({ sat: 1_000, cltv: 2_014 })).request, AMOUNT);
      await eventually('both have ended', async () => {
        await at.look();
        return (await at.payout(first.id)).status === 'failed' && (await at.payout(second.id)).status === 'failed';
      });
      expect((await at.payout(first.id)).error).toBe(
        'the Lightning node cannot read the invoice: description is not valid UTF-8',
      );
      expect((await at.payout(second.id)).error).toMatch(/^the Lightning node cannot pay the invoice: cltv limit/);
      expect(await at.available()).toBe(500_000n);
      expect(await at.compared()).toEqual([]);
    } finally {
      await at.close();
      await engine.close();
    }
  });
});
