// A real LND whose wallet is locked after a start: it says so, nothing is asked of it, and what waits for it goes on once it is unlocked.
import { describe, expect, test } from 'vitest';
import { createLnd } from '../../src/outside/lightning/lnd.ts';
import { createLndPayer } from '../../src/outside/lightning/lnd-payer.ts';
import { HAS_LND, lndEngine } from '../support/lightning-engines.ts';
import { openLightningPayouts, paidIn } from '../support/lightning-payouts.ts';
import { eventually } from '../support/service.ts';

describe.runIf(HAS_LND)('on LND', () => {
  test('a locked wallet is told, takes no order, fails no payout, and goes on where it was', { timeout: 300_000 }, async () => {
    const engine = await lndEngine({ hasWords: true });
    const port = createLnd(async () => engine.target(), { chain: 'regtest' });
    const clock = { skewMs: 0, now: () => Date.now() + clock.skewMs };
    const at = await openLightningPayouts(
      port,
      createLndPayer(async () => engine.payTarget()),
      clock,
    );
    const looksUntil = (status: string, id: string) =>
      eventually(
        `it is ${status}`,
        async () => {
          clock.skewMs += 5_000;
          await at.look();
          return (await at.payout(id)).status === status;
        },
        60_000,
      );
    try {
      await at.work();
      await at.look();
      await paidIn(at, engine, 500_00n);
      const held = await engine.invoice({ sat: 2_000, isHeld: true });
      const underWay = await at.request(held.request, '0.00002');
      await at.look();
      await engine.held(held.hash);
      const open = await at.create(10_00n);
      await engine.pair.shop.kill();
      const unlock = await engine.pair.shop.startLocked();
      expect(await port.condition()).toEqual({ state: 'warming_up', reason: 'its wallet is locked' });
      await expect(at.create(10_00n)).rejects.toMatchObject({ code: 'lightning_unavailable' });
      const waits = await at.request((await engine.invoice({ sat: 1_000 })).request, '0.00001');
      clock.skewMs += 60_000;
      await at.work();
      await at.look();
      for (const { id } of [underWay, waits])
        expect(await at.payout(id)).toMatchObject({ status: 'processing', heldReason: null });
      expect((await at.path(open.transactionId)).at(-1)).toBe('started');
      await unlock();
      expect(await port.condition()).toMatchObject({ state: 'ready' });
      await engine.decide(held.hash, true, 60_000);
      await looksUntil('completed', underWay.id);
      await looksUntil('completed', waits.id);
      await eventually('a channel is usable', async () => (await port.receivableMsat()) > 0n, 60_000);
      await eventually('it is paid', () => at.hashOf(open.transactionId).then((hash) => engine.pay(open.address, hash)), 60_000);
      await eventually('it is credited', async () => {
        await at.work();
        return (await at.path(open.transactionId)).at(-1) === 'succeeded';
      });
      expect(await at.compared()).toEqual([]);
    } finally {
      await at.close();
      await engine.close();
    }
  });
});
