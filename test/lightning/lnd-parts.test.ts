// Invoices that are paid in parts, on a real LND: by whoever makes each part himself, and so late, and of as much, as he likes. A transaction is credited what
// the node says was paid for its invoice, once, and nothing of what was given back.
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { cancelTransaction } from '../../src/flow/transactions/create-cancel-resolve.ts';
import { HAS_LND } from '../support/lightning-engines.ts';
import { eventually } from '../support/service.ts';
import { at, clock, close, engine, open } from './funded-lnd.ts';

type Hop = { readonly mpp_record?: object };
type Route = { readonly hops: readonly Hop[] };
type Sent = { readonly status: string; readonly failure?: { readonly code: string } | null };

/** An invoice of 50,000 satoshis, and what sends parts for it. */
async function made() {
  const { transactionId, address } = await at.create(50_00n);
  const { customer, shop } = engine.pair;
  const {
    payment_addr: secret,
    cltv_expiry: cltv,
    payment_hash: hash,
  } = await customer.call<{
    readonly payment_addr: string;
    readonly cltv_expiry: string;
    readonly payment_hash: string;
  }>('GET', `/v1/payreq/${address}`);
  const { channels } = await customer.call<{ channels: readonly { readonly chan_id: string }[] }>('GET', '/v1/channels');
  return {
    transactionId,
    hash,
    /** @param sat of this part, `ofSat` in all, by one of the two channels; resolves when it has arrived with the others, or come back */
    async part(sat: number, ofSat: number, channel: 0 | 1): Promise<Sent> {
      const query = `final_cltv_delta=${Number(cltv) + 3}&outgoing_chan_id=${channels[channel]?.chan_id}`;
      const { routes } = await customer.call<{ routes: readonly Route[] }>(
        'GET',
        `/v1/graph/routes/${shop.identity}/${sat}?${query}`,
      );
      const route = routes[0] as Route;
      const record = { payment_addr: secret, total_amt_msat: String(ofSat * 1_000) };
      const hops = route.hops.map((hop, index) => (index === route.hops.length - 1 ? { ...hop, mpp_record: record } : hop));
      return customer.call<Sent>('POST', '/v2/router/route/send', {
        payment_hash: Buffer.from(hash, 'hex').toString('base64'),
        route: { ...route, hops },
      });
    },
    accepted: (count: number) =>
      eventually('its parts are held', async () => {
        const { htlcs = [] } = await shop.call<{ htlcs?: readonly { readonly state: string }[] }>('GET', `/v1/invoice/${hash}`);
        return htlcs.filter(({ state }) => state === 'ACCEPTED').length === count;
      }),
  };
}
const credited = async (): Promise<bigint> => at.available();
const suspense = async (): Promise<bigint> => {
  const { rows } = await at.admin.query(
    `select coalesce(sum(amount), 0)::text as all from ledger.account_balance where code like '%suspense%'`,
  );
  return BigInt(rows[0].all);
};

describe.runIf(HAS_LND)('on LND', () => {
  beforeAll(open, 300_000);
  afterAll(close);

  test('two parts are credited once, when the second has come', { timeout: 120_000 }, async () => {
    const before = await credited();
    const { transactionId, part, accepted } = await made();
    const first = part(20_000, 50_000, 0);
    await accepted(1);
    await at.work();
    expect((await at.path(transactionId)).at(-1)).toBe('started');
    const second = await part(30_000, 50_000, 1);
    expect([(await first).status, second.status]).toEqual(['SUCCEEDED', 'SUCCEEDED']);
    await eventually('it is credited', async () => {
      await at.work();
      return (await at.path(transactionId)).at(-1) === 'succeeded';
    });
    expect((await credited()) - before).toBe(50_000n);
    expect(await at.compared()).toEqual([]);
  });

  test('a cancel gives a first part back, and refuses the second', { timeout: 120_000 }, async () => {
    const before = await credited();
    const { transactionId, part, accepted } = await made();
    const first = part(20_000, 50_000, 0);
    await accepted(1);
    await cancelTransaction(at.ctx, { merchantId: at.merchantId, transactionId });
    expect((await first).status).toBe('FAILED');
    expect((await part(30_000, 50_000, 1)).status).toBe('FAILED');
    await at.work();
    expect((await at.path(transactionId)).at(-1)).toBe('cancelled');
    expect(await credited()).toBe(before);
    expect(await at.compared()).toEqual([]);
  });

  test('of parts that are more than the price the rest can be refunded', { timeout: 120_000 }, async () => {
    const [before, held] = [await credited(), await suspense()];
    const { transactionId, part, accepted, hash } = await made();
    const first = part(60_000, 120_000, 0);
    await accepted(1);
    expect((await part(60_000, 120_000, 1)).status).toBe('SUCCEEDED');
    await first;
    await eventually('it has ended', async () => {
      await at.work();
      return ['succeeded', 'review'].includes((await at.path(transactionId)).at(-1) ?? '');
    });
    const { amt_paid_sat: paid } = await engine.pair.shop.call<{ amt_paid_sat: string }>('GET', `/v1/invoice/${hash}`);
    expect(paid).toBe('120000');
    expect((await credited()) - before).toBe(50_000n);
    expect((await suspense()) - held).toBe(70_000n);
    expect(await at.compared()).toEqual([]);
  });

  test('a part that comes after the window finds the invoice cancelled, and the first one is given back', {
    timeout: 120_000,
  }, async () => {
    const before = await credited();
    const { transactionId, part, accepted } = await made();
    const first = part(20_000, 50_000, 0);
    await accepted(1);
    clock.skewMs += 16 * 60_000;
    await at.rate('100000.00');
    await at.work();
    expect((await first).status).toBe('FAILED');
    expect((await part(30_000, 50_000, 1)).status).toBe('FAILED');
    await at.work();
    expect((await at.path(transactionId)).at(-1)).toBe('timedout');
    expect(await credited()).toBe(before);
    expect(await at.compared()).toEqual([]);
  });
});
