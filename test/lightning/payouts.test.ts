// Payouts over Lightning by the whole driver and the signer's rules, on the simulated node and on two real LND: paid, held, given back, and while
// the worker or the node is killed in mid-payment.
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createLnd, RECEIVING } from '../../src/outside/lightning/lnd.ts';
import { createLndPayer, PAYING } from '../../src/outside/lightning/lnd-payer.ts';
import { createLndRest } from '../../src/outside/lightning/lnd-rest.ts';
import { permissionsOf } from '../../src/outside/lightning/permissions.ts';
import { HAS_LND, type LightningEngine, lndEngine, type SimulatedEngine, simulatedEngine } from '../support/lightning-engines.ts';
import { type LightningPayouts, openLightningPayouts, paidIn } from '../support/lightning-payouts.ts';
import { eventually } from '../support/service.ts';

const ENGINES: readonly (readonly [string, (now: () => number) => Promise<LightningEngine>])[] = [
  ['the simulated node', (now) => simulatedEngine(now)],
  ...(HAS_LND ? [['LND', () => lndEngine()] as const] : []),
];
const TIMEOUT = 60_000;
const AMOUNT = '0.00001';

describe.each(ENGINES)('%s', (name, open) => {
  let engine: LightningEngine;
  let at: LightningPayouts;
  const clock = { now: () => Date.now() };
  beforeAll(async () => {
    engine = await open(() => clock.now());
    const port = createLnd(async () => engine.target(), { chain: 'regtest' });
    at = await openLightningPayouts(
      port,
      createLndPayer(async () => engine.payTarget()),
      clock,
    );
    await at.work();
    await at.look();
    await paidIn(at, engine, 500_00n);
    expect(await at.available()).toBe(500_000n);
  }, 120_000);
  afterAll(async () => {
    await at?.close();
    await engine?.close();
  });

  const becomes = (id: string, status: string) =>
    eventually(
      `it is ${status}`,
      async () => {
        await at.look();
        return (await at.payout(id)).status === status;
      },
      45_000,
    );

  test('pays invoices with and without an amount, each once, for the real fee', { timeout: TIMEOUT }, async () => {
    const [fixed, open] = [await engine.invoice({ sat: 1_000 }), await engine.invoice({ sat: null })];
    const before = await at.available();
    const ids = [(await at.request(fixed.request, AMOUNT)).id, (await at.request(open.request, AMOUNT)).id];
    for (const id of ids) await becomes(id, 'completed');
    for (const { hash } of [fixed, open]) expect(await engine.arrived(hash)).toBe(1_000);
    const fees = await Promise.all(ids.map(async (id) => (await at.payout(id)).fee as bigint));
    expect(before - (await at.available())).toBe(2_000n + fees[0]! + fees[1]!);
    expect(fees.every((fee) => fee >= 0n && fee <= 10n)).toBe(true);
    expect(await at.compared()).toEqual([]);
  });

  test('a held payment is on its way until its recipient decides', { timeout: TIMEOUT }, async () => {
    const [taken, given] = [
      await engine.invoice({ sat: 1_000, isHeld: true }),
      await engine.invoice({ sat: 1_000, isHeld: true }),
    ];
    const before = await at.available();
    const [first, second] = [await at.request(taken.request, AMOUNT), await at.request(given.request, AMOUNT)];
    await at.look();
    await at.look();
    for (const { id } of [first, second]) expect(await at.payout(id)).toMatchObject({ status: 'processing', heldReason: null });
    await engine.decide(taken.hash, true);
    await engine.decide(given.hash, false);
    await becomes(first.id, 'completed');
    await becomes(second.id, 'failed');
    expect((await at.payout(second.id)).error).toBe('the recipient did not accept the payment');
    expect(before - (await at.available())).toBe(1_000n + ((await at.payout(first.id)).fee as bigint));
    expect(await at.compared()).toEqual([]);
  });

  test.each(['ln-authorized', 'ln-committed', 'ln-sent', 'ln-answered'] as const)(
    'a worker that is killed at %s leaves a payment that the next one ends, once',
    { timeout: TIMEOUT },
    async (step) => {
      const to = await engine.invoice({ sat: 1_000 });
      const { id } = await at.request(to.request, AMOUNT);
      await at.look({}, step);
      expect((await at.payout(id)).status).toBe('processing');
      await at.admin.query(`update lightning_payments set lease_until = now() - interval '1 second' where payout_id = $1`, [id]);
      await becomes(id, 'completed');
      expect(await engine.arrived(to.hash)).toBe(1_000);
      expect(await at.compared()).toEqual([]);
    },
  );

  test('kill -9 of the node in mid-payment loses nothing, and its word afterwards is believed', {
    timeout: 120_000,
  }, async () => {
    const to = await engine.invoice({ sat: 1_000, isHeld: true });
    const { id } = await at.request(to.request, AMOUNT);
    await at.look();
    if (name === 'LND') await new Promise((resolve) => setTimeout(resolve, 1_000)); // LND writes its channel's state within 50 ms
    await engine.restart();
    await at.look();
    expect(await at.payout(id)).toMatchObject({ status: 'processing' });
    await engine.decide(to.hash, true);
    await becomes(id, 'completed');
    expect(await engine.arrived(to.hash)).toBe(1_000);
    expect(await at.compared()).toEqual([]);
  });

  test('what came in goes back to its customer, less what the invoice leaves for the route', { timeout: TIMEOUT }, async () => {
    await at.rate('100000.00');
    await at.work();
    const transactionId = await paidIn(at, engine);
    const paid = async () => (await at.path(transactionId)).at(-1);
    const before = await at.available();
    const to = await engine.invoice({ sat: null });
    await at.reimburse(transactionId, to.request);
    await eventually('it is reimbursed', async () => {
      await at.look();
      await at.judge();
      return (await paid()) === 'reimbursed';
    });
    expect(await engine.arrived(to.hash)).toBe(49_505);
    expect(await at.refund(transactionId)).toMatchObject({ status: 'completed', amount: 49_505n, fee: 495n, txid: to.hash });
    expect(before - (await at.available())).toBe(50_000n);
    expect(await at.compared()).toEqual([]);
  });

  test('the node says by which clock it has no payment, and how one is', { timeout: TIMEOUT }, async () => {
    const to = await engine.invoice({ sat: 1_000 });
    const payer = createLndPayer(async () => engine.payTarget());
    const told = async (hash: string): Promise<void> => {
      const beganMs = Date.now();
      const { saidAtMs } = await payer.track(hash);
      // whole seconds that have begun
      expect(saidAtMs).toBeGreaterThan(beganMs - 1_001);
      expect(saidAtMs).toBeLessThanOrEqual(Date.now());
    };
    await told(to.hash);
    await becomes((await at.request(to.request, AMOUNT)).id, 'completed');
    await told(to.hash);
    payer.close();
  });

  test('a request that arrives after its lease is refused by the node itself', async () => {
    const to = await engine.invoice({ sat: 1_000 });
    const payer = createLndPayer(async () => engine.payTarget());
    const late = { paymentRequest: to.request, amount: null, feeLimit: 10n, notAfterMs: Date.now() - 5_000 };
    expect(await payer.send(late)).toMatchObject({ state: 'refused', reason: expect.stringMatching(/time-before|expired/) });
    expect((await payer.track(to.hash)).payment).toBeNull();
    payer.close();
  });

  test('the macaroon that pays can make no invoice, and the one for invoices cannot pay', async () => {
    const to = await engine.invoice({ sat: 1_000 });
    const [receives, pays] = [engine.target, engine.payTarget].map((target) => createLndRest(async () => target()));
    await expect(pays!.call('POST', '/v1/invoices', { deadlineMs: 5_000, body: { value: '1' } })).rejects.toThrow(
      'permission denied',
    );
    const sending = receives!.lines('/v2/router/send', new AbortController().signal, { body: { payment_request: to.request } });
    await expect(sending.next()).rejects.toThrow('permission denied');
    // the simulated node's own macaroons are made for all that it can do
    const exactly = { missing: [], beyond: name === 'LND' ? [] : expect.any(Array) };
    expect(permissionsOf(engine.target().macaroon, RECEIVING)).toEqual(exactly);
    expect(permissionsOf(engine.payTarget().macaroon, PAYING)).toEqual(exactly);
    expect(permissionsOf(engine.target().macaroon, PAYING)?.missing).toContain('/routerrpc.Router/SendPaymentV2');
    receives!.close();
    pays!.close();
  });
});

describe('the limits of what may leave', () => {
  const HOUR = { BTC: { payout: null, hour: 1_000_000n, day: null } };
  let engine: SimulatedEngine;
  let at: LightningPayouts;
  const skewMs = 0;
  const clock = { now: () => Date.now() + skewMs };
  beforeAll(async () => {
    engine = await simulatedEngine(clock.now);
    const port = createLnd(async () => engine.target(), { chain: 'regtest' });
    const payer = createLndPayer(async () => engine.payTarget());
    at = await openLightningPayouts(port, payer, clock, { limits: HOUR });
    await at.work();
    await at.look();
    await paidIn(at, engine, 1_500_00n);
    expect(await at.available()).toBeGreaterThan(0n);
  }, 60_000);
  afterAll(async () => {
    await at?.close();
    await engine?.close();
  });
  const asked = async (behaviour: 'pay' | 'hold' | 'fail') => {
    const { request } = engine.node().outgoing.invoice({ amountMsat: 400_000_000n, expirySeconds: 3_600, behaviour });
    return (await at.request(request, '0.004')).id;
  };
  const becomes = (id: string, status: string) =>
    eventually(`it is ${status}`, async () => {
      await at.look();
      return (await at.payout(id)).status === status;
    });

  test('do not count payments that failed, so that nobody can use them up with these', { timeout: TIMEOUT }, async () => {
    for (let n = 0; n < 4; n++) await becomes(await asked('fail'), 'failed');
    await becomes(await asked('pay'), 'completed');
    expect(at.troubles).toEqual([]);
  });

  test('count what is on its way', { timeout: TIMEOUT }, async () => {
    const held = await asked('hold');
    await at.look();
    expect(await at.payout(held)).toMatchObject({ status: 'processing' });
    const next = await asked('pay');
    await at.look();
    expect(await at.payout(next)).toMatchObject({ status: 'pending', heldReason: 'approval' });
    expect(at.troubles.join()).toContain('limit');
  });
});
