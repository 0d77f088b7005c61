// Payouts and reimbursements whose recipients neither take nor return the money: a merchant ties up so many of our HTLCs and no more, and what
// others ask for goes on. On the simulated node and on two real LND.
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { addMerchant } from '../../src/flow/merchants/merchants.ts';
import { cancelPayout } from '../../src/flow/payouts/cancel-and-approve.ts';
import { createTransaction } from '../../src/flow/transactions/create-cancel-resolve.ts';
import { createLnd } from '../../src/outside/lightning/lnd.ts';
import { createLndPayer } from '../../src/outside/lightning/lnd-payer.ts';
import { createHeldPayouts } from '../../src/worker/payouts/held-payouts.ts';
import { HAS_LND, type LightningEngine, lndEngine, simulatedEngine } from '../support/lightning-engines.ts';
import { type LightningPayouts, openLightningPayouts, paidIn } from '../support/lightning-payouts.ts';
import { eventually } from '../support/service.ts';

const ENGINES: readonly (readonly [string, () => Promise<LightningEngine>])[] = [
  ['the simulated node', () => simulatedEngine()],
  ...(HAS_LND ? [['LND', () => lndEngine()] as const] : []),
];
const TIMEOUT = 120_000;
const AMOUNT = '0.00001';
const WAITS = { status: 'pending', heldReason: 'cool_down' };
const GOES = { status: 'processing', heldReason: null };

describe.each(ENGINES)('%s', (_name, open) => {
  let engine: LightningEngine;
  let at: LightningPayouts;
  let other: bigint;
  beforeAll(async () => {
    engine = await open();
    const port = createLnd(async () => engine.target(), { chain: 'regtest' });
    at = await openLightningPayouts(
      port,
      createLndPayer(async () => engine.payTarget()),
      { now: () => Date.now() },
    );
    await at.work();
    await at.look();
    await paid(500_00n);
    const of = { username: 'other', password: 'correct horse battery', email: 'other@example.com', businessName: 'Other' };
    const { affiliateId } = await addMerchant(at.ctx, of);
    const { rows } = await at.admin.query('select id from merchants where affiliate_id = $1', [affiliateId]);
    other = BigInt(rows[0].id);
  }, TIMEOUT);
  afterAll(async () => {
    await at?.close();
    await engine?.close();
  });

  async function paid(usdMinor: bigint): Promise<string> {
    await at.rate('100000.00');
    return paidIn(at, engine, usdMinor);
  }
  const letGo = async (): Promise<void> => {
    await createHeldPayouts(at.ctx, (_, error) => {
      throw error;
    }).run();
  };
  const becomes = (id: string, status: string, of = at.merchantId) =>
    eventually(
      `it is ${status}`,
      async () => {
        await at.look();
        return (await at.payout(id, of)).status === status;
      },
      45_000,
    );
  const sent = async (): Promise<number> =>
    (await at.admin.query(`select from lightning_payments where state = 'sent'`)).rowCount ?? 0;
  const states = (ids: readonly string[]) => Promise.all(ids.map((id) => at.payout(id)));

  const errors = async (ids: readonly string[]): Promise<string> =>
    (await states(ids)).map(({ status, error }, n) => `${n}: ${status} ${error}`).join(', ');

  test('ten payouts of a merchant are under way, the next wait and can be cancelled, and others go on', {
    timeout: TIMEOUT,
  }, async () => {
    const refunded = await paid(50_00n);
    const made: { readonly hash: string; readonly id: string }[] = [];
    for (const { request, hash } of await Promise.all(
      Array.from({ length: 13 }, () => engine.invoice({ sat: 1_000, isHeld: true })),
    ))
      made.push({ hash, id: (await at.request(request, AMOUNT)).id });
    const waiting = async () => {
      const all = await states(made.map(({ id }) => id));
      return made.filter((_, n) => all[n]?.status === 'pending');
    };
    await eventually('three wait', async () => {
      await at.look();
      return (await waiting()).length === 3;
    });
    // several are begun at once: the tenth may find ten under way, and the eleventh be one of them
    const three = await waiting();
    const hanging = [...made.filter((one) => !three.includes(one)), ...three];
    const ids = hanging.map(({ id }) => id);
    // only what its recipient holds cannot end by itself
    // one that the node did not take at once is asked for again
    await eventually(
      'ten are held',
      async () => {
        await at.look();
        const looked = await Promise.all(hanging.slice(0, 10).map(({ hash }) => at.paying.track(hash)));
        return looked.every(({ isPending }) => isPending);
      },
      45_000,
    );
    expect(await sent(), await errors(ids)).toBe(10);
    await letGo();
    await at.look();
    const [first] = await states(ids);
    expect(first).toMatchObject(GOES);
    expect((await states(ids)).slice(10), await errors(ids)).toEqual([10, 11, 12].map(() => expect.objectContaining(WAITS)));

    // to a transaction here: no HTLC of ours is needed
    const asked = { merchantId: other, usdMinor: 100_00n, method: 'BTC-LN', label: null, email: null } as const;
    const { address } = await createTransaction(at.ctx, asked);
    const here = await at.request(address, '0.001');
    await becomes(here.id, 'completed');
    await at.work();
    const to = await engine.invoice({ sat: 1_000 });
    const others = await at.request(to.request, AMOUNT, other);
    await becomes(others.id, 'completed', other);
    const back = await engine.invoice({ sat: null });
    await at.reimburse(refunded, back.request);
    await eventually('it is reimbursed', async () => {
      await at.look();
      await at.judge();
      return (await at.path(refunded)).at(-1) === 'reimbursed';
    });

    const last = { merchantId: at.merchantId, payoutId: ids[12]! };
    expect(await cancelPayout(at.ctx, last)).toMatchObject({ status: 'failed', error: 'cancelled' });
    await engine.decide(hanging[0]!.hash, true);
    await becomes(ids[0]!, 'completed');
    await letGo();
    expect((await states(ids)).slice(10, 12)).toEqual([expect.objectContaining(GOES), expect.objectContaining(WAITS)]);
    // at once, and not when it would have been looked at again
    await at.look();
    expect((await at.payment(ids[10]!)).state).toBe('sent');
    for (const { hash } of hanging.slice(1, 10)) await engine.decide(hash, false);
    for (const id of ids.slice(1, 10)) await becomes(id, 'failed');
    await letGo();
    for (const { hash, n } of hanging.slice(10, 12).map(({ hash }, n) => ({ hash, n: n + 10 }))) {
      await eventually('it is sent', async () => {
        await at.look();
        return (await at.payment(ids[n]!)).payment_index !== null;
      });
      await engine.decide(hash, true);
      await becomes(ids[n]!, 'completed');
    }
    expect(await at.compared()).toEqual([]);
  });
});
