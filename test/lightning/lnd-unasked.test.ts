// What a real LND is paid that nobody here has asked for: strangers choose when, and how. It concerns the node's operator, and holds up no payment of ours.
import { createHash, randomBytes } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createLnd } from '../../src/outside/lightning/lnd.ts';
import { createLndPayer } from '../../src/outside/lightning/lnd-payer.ts';
import { HAS_LND, lndEngine } from '../support/lightning-engines.ts';
import { type LightningPayouts, openLightningPayouts, paidIn } from '../support/lightning-payouts.ts';

/** The field of a payment that carries its own preimage. */
const KEYSEND = 5_482_373_484;

describe.runIf(HAS_LND)('on LND', () => {
  let engine: Awaited<ReturnType<typeof lndEngine>>;
  let at: LightningPayouts;
  beforeAll(async () => {
    engine = await lndEngine();
    at = await openLightningPayouts(
      createLnd(async () => engine.target(), { chain: 'regtest' }),
      createLndPayer(async () => engine.payTarget()),
      Date,
    );
    await at.work();
    await at.look();
  }, 120_000);
  afterAll(async () => {
    await at?.close();
    await engine?.close();
  });
  /** The customer's node pays ours. */
  async function send(of: Record<string, unknown>): Promise<string> {
    const bounds = { timeout_seconds: 20, fee_limit_msat: '10000', no_inflight_updates: true };
    const said = await engine.pair.customer.call<{ result: { status: string } }>('POST', '/v2/router/send', { ...of, ...bounds });
    return said.result.status;
  }
  const toShop = (): Record<string, unknown> => ({
    dest: Buffer.from(engine.pair.shop.identity, 'hex').toString('base64'),
    amt_msat: '1000123',
  });
  const ways = {
    'one that carries its preimage': async () => {
      const preimage = randomBytes(32);
      const payment_hash = createHash('sha256').update(preimage).digest('base64');
      return send({ ...toShop(), payment_hash, dest_custom_records: { [KEYSEND]: preimage.toString('base64') } });
    },
    'one in parts of which each has a hash of its own': () => send({ ...toShop(), amp: true }),
    'an invoice of the operator that can be paid again and again': async () => {
      const { payment_request } = await engine.pair.shop.call('POST', '/v1/invoices', { value: '1000', is_amp: true });
      await send({ payment_request, amp: true });
      return send({ payment_request, amp: true });
    },
  };

  test.each(Object.entries(ways))('%s', { timeout: 120_000 }, async (_way, pays) => {
    expect(await pays()).toBe('SUCCEEDED');
    await paidIn(at, engine, 10_00n);
    expect((await at.work()).state).toBe('ready');
    // the list is read from its beginning, and what is open compared
    await at.restartWorker();
    await paidIn(at, engine, 10_00n);
    expect(await at.compared()).toEqual([]);
    expect(at.alarms).toEqual([]);
  });
});
