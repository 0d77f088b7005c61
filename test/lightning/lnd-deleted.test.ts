// The operator of a real LND has it delete its payments (`lncli deletepayments`) while one is under way and of another nothing was heard: it would pay that once more.
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { clearAfterAudit, runAudit } from '../../src/flow/audit.ts';
import { resolvePayout } from '../../src/flow/payouts/resolve.ts';
import { openBreakers } from '../../src/store/ledger/breakers.ts';
import { HAS_LND } from '../support/lightning-engines.ts';
import { unheardBy } from '../support/lightning-payouts.ts';
import { eventually } from '../support/service.ts';
import { at, clock, close, engine, isPaid, isTaken, open } from './funded-lnd.ts';

describe.runIf(HAS_LND)('on LND', () => {
  beforeEach(open, 300_000);
  afterEach(close);
  const deletes = () => engine.pair.shop.call('DELETE', '/v1/payments?all_payments=true');
  const stops = async () => (await openBreakers(at.ctx.db)).flatMap(({ findings }) => findings);
  async function requested(isHeld = false) {
    const { request, hash } = await engine.invoice({ sat: 1_000, isHeld });
    return { id: (await at.request(request, '0.00001')).id, hash };
  }

  test('what it has paid is neither paid nor given back', { timeout: 300_000 }, async () => {
    await isPaid((await requested()).id);
    const held = await requested(true);
    await isTaken(held.id);
    await engine.held(held.hash);
    expect(await at.compared()).toEqual([]);
    const { id, hash } = await requested();
    await at.look(unheardBy(at));
    await eventually('its recipient has it', async () => (await engine.arrived(hash)) === 1_000);
    await deletes();
    for (let n = 0; n < 5; n++) {
      clock.skewMs += 30_000;
      await at.look();
    }
    expect(await at.payout(id)).toMatchObject({ status: 'processing', heldReason: 'unknown_outcome' });
    expect(await at.payment(id)).toMatchObject({ sends: 1, payment_index: null });
    await resolvePayout(at.ctx, { payoutId: id, outcome: 'paid', evidence: 'its recipient has it' });
    await engine.decide(held.hash, true);
    await isPaid(held.id);
    expect(await at.compared()).toEqual([]);
    expect(await stops()).toEqual([]);
    // with nothing under way it looks as if it was restored
    await deletes();
    await at.look();
    expect(await stops()).toEqual([expect.stringContaining('or its payments were deleted')]);
    expect(await clearAfterAudit(at.ctx, await runAudit(at.ctx), 'test')).toBe(1);
    await isPaid((await requested()).id);
    expect(await at.compared()).toEqual([]);
  });
});
