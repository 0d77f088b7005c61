// Payouts to somebody behind another node, on real LND: what the route costs is charged exactly, and a route that costs too much is none.
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { HAS_LND } from '../support/lightning-engines.ts';
import { type LndNode, openChannel } from '../support/lnd-node.ts';
import { eventually } from '../support/service.ts';
import { at, close, engine, open } from './funded-lnd.ts';

type Routes = { readonly routes?: readonly { readonly total_fees_msat: string }[] };

describe.runIf(HAS_LND)('on LND', () => {
  let payee: LndNode;
  beforeEach(async () => {
    await open();
    payee = await engine.pair.more('payee');
    await openToPayee();
  }, 300_000);
  afterEach(close);

  async function openToPayee(): Promise<void> {
    const { shop, customer, mine } = engine.pair;
    const { address } = await customer.call<{ address: string }>('GET', '/v1/newaddress?type=WITNESS_PUBKEY_HASH');
    await shop.call('POST', '/v1/transactions', { addr: address, amount: '5000000', sat_per_vbyte: '5' });
    await mine(3);
    await customer.call('POST', '/v1/peers', { addr: { pubkey: payee.identity, host: payee.peer }, perm: true });
    await openChannel(customer, payee, { local_funding_amount: '2000000', sat_per_vbyte: '5' });
    await mine(6);
    await eventually('its channel is known', async () => (await feeOfRoute()) !== null, 60_000);
  }
  /** Thousandths of a satoshi; null: there is no route. */
  async function feeOfRoute(): Promise<string | null> {
    const ask = engine.pair.shop.call<Routes>('GET', `/v1/graph/routes/${payee.identity}/10000`);
    return (await ask.catch((): Routes => ({}))).routes?.[0]?.total_fees_msat ?? null;
  }
  /** The node between the two asks for fees: so many thousandths of a satoshi, and millionths of the amount. */
  async function asks(base: number, millionths: number): Promise<void> {
    const policy = { global: true, base_fee_msat: String(base), fee_rate_ppm: millionths, time_lock_delta: 80 };
    await engine.pair.customer.call('POST', '/v1/chanpolicy', policy);
    const fee = String(base + 10 * millionths);
    await eventually('its fees are known', async () => (await feeOfRoute()) === fee, 60_000);
  }
  /** A payout of 10,000 satoshis, whose fee is 100 at most. @returns how it ends, and what its recipient says of the invoice */
  async function payout() {
    const made = await payee.call<{ payment_request: string; r_hash: string }>('POST', '/v1/invoices', { value: '10000' });
    const { id } = await at.request(made.payment_request, '0.0001');
    const seen = await eventually(
      'it has ended',
      async () => {
        await at.look();
        const said = await at.payout(id);
        return said.status === 'processing' && said.heldReason === null ? null : said;
      },
      60_000,
    );
    const hash = Buffer.from(made.r_hash, 'base64').toString('hex');
    return { seen, invoice: await payee.call('GET', `/v1/invoice/${hash}`) };
  }

  test('what a route costs is charged, and one above the limit is none', { timeout: 300_000 }, async () => {
    const before = await at.available();
    await asks(200_000, 0);
    const dear = await payout();
    expect(dear.seen).toMatchObject({ status: 'failed', error: 'no route to the recipient was found within the fee limit' });
    expect(dear.invoice).toMatchObject({ state: 'OPEN' });
    expect(await at.available()).toBe(before);
    await asks(1_234, 100);
    const cheap = await payout();
    expect(cheap.seen).toMatchObject({ status: 'completed', fee: 3n });
    expect(cheap.invoice).toMatchObject({ state: 'SETTLED', amt_paid_sat: '10000' });
    expect(before - (await at.available())).toBe(10_003n);
    expect(await at.compared()).toEqual([]);
  });
});
