// The client of Lightning nodes against the simulated node and two real LND: the same answers to the same calls.
import { createHash, randomBytes } from 'node:crypto';
import { decode } from 'light-bolt11-decoder';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { InvoiceFacts, LightningPort } from '../../src/core/lightning/port.ts';
import { createLnd } from '../../src/outside/lightning/lnd.ts';
import { HAS_LND, type LightningEngine, lndEngine, simulatedEngine } from '../support/lightning-engines.ts';
import { eventually } from '../support/service.ts';

const ENGINES: readonly (readonly [string, () => Promise<LightningEngine>])[] = [
  ['the simulated node', () => simulatedEngine()],
  ...(HAS_LND ? [['LND', lndEngine] as const] : []),
];

const made = () => {
  const preimage = randomBytes(32);
  return { preimage, paymentHash: createHash('sha256').update(preimage).digest('hex') };
};
const AMOUNT = 12_345_000n;
const asked = (preimage: Uint8Array, expirySeconds = 900) => ({
  preimage,
  amountMsat: AMOUNT,
  expirySeconds,
  description: 'order 1042 ☕',
});

describe.each(ENGINES)('%s', (_name, open) => {
  let engine: LightningEngine;
  let port: LightningPort;
  beforeAll(async () => {
    engine = await open();
    port = createLnd(async () => engine.target(), { chain: 'regtest' });
  }, 120_000);
  afterAll(async () => {
    port?.close();
    await engine?.close();
  });

  test('says who it is, and what it can receive', async () => {
    const condition = await port.condition();
    expect(condition).toMatchObject({ state: 'ready', identity: expect.stringMatching(/^0[23][0-9a-f]{64}$/) });
    expect(await port.receivableMsat()).toBeGreaterThan(AMOUNT);
  });

  test('makes an invoice that any library reads, with our hash, amount, text and time', async () => {
    const { preimage, paymentHash } = made();
    const request = await port.addInvoice(asked(preimage));
    expect(request).toMatch(/^lnbcrt/);
    const { sections } = decode(request) as { sections: { name: string; value?: unknown }[] };
    const section = (name: string) => sections.find((one) => one.name === name)?.value;
    expect(section('payment_hash')).toBe(paymentHash);
    expect(section('amount')).toBe(String(AMOUNT));
    expect(section('description')).toBe('order 1042 ☕');
    expect(section('expiry')).toBe(900);
    expect(Math.abs(Number(section('timestamp')) - Date.now() / 1000)).toBeLessThan(10);
    expect(section('payment_secret')).toMatch(/^[0-9a-f]{64}$/);
  });

  test('gives the same invoice for the same preimage', async () => {
    const { preimage, paymentHash } = made();
    const first = await port.addInvoice(asked(preimage));
    expect(await port.addInvoice(asked(preimage))).toBe(first);
    expect(await port.invoice(paymentHash)).toMatchObject({
      state: 'open',
      paymentRequest: first,
      paidMsat: 0n,
      settleIndex: 0n,
    });
  });

  test('says what of its channels is its own, and a payment adds to it', async () => {
    const inChannels = async () => (await port.holdings()).inChannels;
    const before = await inChannels();
    const { preimage, paymentHash } = made();
    expect(await engine.pay(await port.addInvoice(asked(preimage)), paymentHash)).toBe(true);
    await eventually('it is settled', async () => (await port.invoice(paymentHash))?.state === 'settled');
    await eventually('the channel has it', async () => (await inChannels()) !== before);
    const added = (await inChannels()) - before;
    // AMOUNT is in thousandths, and each channel is shown in whole satoshis
    expect(Number(added - AMOUNT / 1_000n)).toBeGreaterThanOrEqual(-1);
    expect(Number(added - AMOUNT / 1_000n)).toBeLessThanOrEqual(1);
  });

  test('announces a payment, and again whoever asks for what came after an earlier one', async () => {
    const paid: ReturnType<typeof made>[] = [];
    const pays = async (): Promise<void> => {
      const one = made();
      expect(await engine.pay(await port.addInvoice(asked(one.preimage)), one.paymentHash)).toBe(true);
      paid.push(one);
    };
    const announced: InvoiceFacts[] = [];
    const now = port.subscribe(0n, { onSettled: (one) => announced.push(one), onEnd: () => undefined });
    await pays();
    // nothing tells when the subscription has begun: what comes too early for it is not announced
    await eventually('a payment is announced', async () => {
      await pays();
      return announced.length > 0;
    });
    const [first, second] = paid as [ReturnType<typeof made>, ReturnType<typeof made>];
    now.close();
    const earlier = (await port.invoice(first.paymentHash)) as InvoiceFacts;
    expect(earlier).toMatchObject({ state: 'settled', paidMsat: AMOUNT });
    expect(Math.abs((earlier.settledAtMs as number) - Date.now())).toBeLessThan(30_000);
    const again: InvoiceFacts[] = [];
    const resumed = port.subscribe(earlier.settleIndex, { onSettled: (one) => again.push(one), onEnd: () => undefined });
    await eventually('what came after', () => again.length > 0);
    resumed.close();
    expect(again[0]).toMatchObject({ paymentHash: second.paymentHash, settleIndex: earlier.settleIndex + 1n });
  });

  test('cancels what is open, again and again; then nobody can pay it', async () => {
    const { preimage, paymentHash } = made();
    const request = await port.addInvoice(asked(preimage));
    expect(await port.cancelInvoice(paymentHash)).toBe('cancelled');
    expect(await port.cancelInvoice(paymentHash)).toBe('cancelled');
    expect(await engine.pay(request, paymentHash)).toBe(false);
    expect((await port.invoice(paymentHash))?.state).toBe('cancelled');
  });

  test('says that a paid invoice cannot be cancelled', async () => {
    const { preimage, paymentHash } = made();
    await engine.pay(await port.addInvoice(asked(preimage)), paymentHash);
    expect(await port.cancelInvoice(paymentHash)).toBe('settled');
  });

  test('an invoice expires by itself', async () => {
    const { preimage, paymentHash } = made();
    await port.addInvoice(asked(preimage, 1));
    await eventually('the end of its time', async () => (await port.invoice(paymentHash))?.state === 'cancelled', 30_000);
  }, 40_000);

  test('knows nothing of an invoice that was never made', async () => {
    const { paymentHash } = made();
    expect(await port.invoice(paymentHash)).toBeNull();
    expect(await port.cancelInvoice(paymentHash)).toBe('unknown');
  });

  test('has its turn to write, and keeps nothing of that', async () => {
    const listed = () => port.invoices(0n, { openOnly: false });
    const before = await listed();
    await port.writes();
    expect(await listed()).toEqual(before);
  });

  test('lists its invoices in their order, and those that are open', async () => {
    const { preimage, paymentHash } = made();
    await port.addInvoice(asked(preimage));
    const all = await port.invoices(0n, { openOnly: false });
    expect(all.map(({ addIndex }) => addIndex)).toEqual(all.map(({ addIndex }) => addIndex).toSorted((a, b) => Number(a - b)));
    const own = all.find((one) => one.paymentHash === paymentHash) as InvoiceFacts;
    expect(await port.invoices(own.addIndex, { openOnly: false })).toEqual([]);
    const open = await port.invoices(0n, { openOnly: true });
    expect(open.every(({ state }) => state === 'open')).toBe(true);
    expect(open.some((one) => one.paymentHash === paymentHash)).toBe(true);
  });

  test('a macaroon that permits nothing, is foreign or no hex is refused as such, another certificate too', async () => {
    const { macaroon, ...rest } = engine.target();
    for (const wrong of ['', 'zz', `${macaroon.slice(0, -2)}${macaroon.endsWith('00') ? '01' : '00'}`]) {
      const other = createLnd(async () => ({ ...rest, macaroon: wrong }), { chain: 'regtest' });
      expect(await other.condition()).toMatchObject({ state: 'unauthorized' });
      other.close();
    }
    const stranger = await simulatedEngine();
    const pinned = createLnd(async () => ({ ...engine.target(), certificate: stranger.target().certificate }), {
      chain: 'regtest',
    });
    expect(await pinned.condition()).toMatchObject({ state: 'unauthorized' });
    pinned.close();
    await stranger.close();
  });

  test('a node of another network is not used', async () => {
    const other = createLnd(async () => engine.target(), { chain: 'mainnet' });
    expect(await other.condition()).toMatchObject({ state: 'wrong_network' });
    other.close();
  });

  test('a node that was killed is down, tells a subscriber so, and still has everything afterwards', async () => {
    const [open, paid] = [made(), made()];
    await port.addInvoice(asked(open.preimage));
    await engine.pay(await port.addInvoice(asked(paid.preimage)), paid.paymentHash);
    const subscribed = { isEnded: false, seen: 0 };
    port.subscribe(1n, { onSettled: () => (subscribed.seen += 1), onEnd: () => (subscribed.isEnded = true) });
    await eventually('the subscription', () => subscribed.seen > 0);
    await engine.restart();
    await eventually('the end of the subscription', () => subscribed.isEnded);
    await eventually('the node', async () => (await port.condition()).state === 'ready', 60_000);
    expect((await port.invoice(open.paymentHash))?.state).toBe('open');
    expect((await port.invoice(paid.paymentHash))?.state).toBe('settled');
  }, 90_000);
});
