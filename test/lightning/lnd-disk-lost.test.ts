// The disk of a real LND is lost, and it begins anew from its words and the file that names its channels (channel.backup), as docs/custody.md says: the other
// side closes the channels, and what was in them comes back. What the service says and does meanwhile.
import { expect, test } from 'vitest';
import { runAudit } from '../../src/flow/audit.ts';
import { acceptForgotten } from '../../src/flow/lightning/unasked-payments.ts';
import { resolvePayout } from '../../src/flow/payouts/resolve.ts';
import { createLnd } from '../../src/outside/lightning/lnd.ts';
import { createLndPayer } from '../../src/outside/lightning/lnd-payer.ts';
import { openBreakers } from '../../src/store/ledger/breakers.ts';
import { HAS_LND, lndEngine } from '../support/lightning-engines.ts';
import { openLightningPayouts, paidIn, withClock } from '../support/lightning-payouts.ts';
import { eventually } from '../support/service.ts';

const AMOUNT = '0.00001';

test.runIf(HAS_LND)(
  'a node whose disk was lost brings back what was in its channels, and nothing is paid twice',
  {
    timeout: 400_000,
  },
  async () => {
    const clock = { skewMs: 0, now: () => Date.now() + clock.skewMs };
    const engine = await lndEngine({ hasWords: true });
    const at = await openLightningPayouts(
      createLnd(async () => engine.target(), { chain: 'regtest' }),
      withClock(
        createLndPayer(async () => engine.payTarget()),
        clock,
      ),
      clock,
    );
    const status = async (id: string) => (await at.payout(id)).status;
    const held = async () => (await at.admin.query('select at_node::text, booked_there::text from lightning_nodes')).rows[0];
    const told = async () =>
      (await runAudit(at.ctx)).pages.filter(({ id }) => id.startsWith('LN-')).flatMap((one) => one.findings);
    async function completed(): Promise<{ readonly id: string; readonly hash: string }> {
      const to = await engine.invoice({ sat: 1_000 });
      const { id } = await at.request(to.request, AMOUNT);
      await eventually('it is paid', async () => {
        await at.look();
        return (await status(id)) === 'completed';
      });
      return { id, hash: to.hash };
    }
    try {
      await at.work();
      await at.look();
      const came = await paidIn(at, engine, 500_00n);
      await completed();
      await eventually('node and books are compared', async () => {
        expect(await at.compared()).toEqual([]);
        return (await held()).at_node !== null;
      });
      const unlisted = await completed();
      const to = await engine.invoice({ sat: 5_000, isHeld: true });
      const underWay = await at.request(to.request, '0.00005');
      await eventually('it is held', async () => {
        await at.look();
        return (await at.paying.track(to.hash)).isPending;
      });
      await engine.loseDisk();

      // nothing new is paid, and nothing that was under way is given back or paid again
      await eventually('it is noticed', async () => {
        await at.look();
        return (await openBreakers(at.ctx.db)).length > 0;
      });
      expect((await openBreakers(at.ctx.db)).flatMap(({ trippedBy }) => trippedBy)).toEqual(['LN-5']);
      expect(await at.payout(underWay.id)).toMatchObject({ status: 'processing', heldReason: 'unknown_outcome' });
      await at.work();
      expect((await at.path(came)).at(-1)).toBe('succeeded');
      const findings = await at.compared();
      expect(findings).toEqual([expect.stringContaining(`LN-5: ${unlisted.id} was paid`)]);
      expect(await acceptForgotten(at.ctx, unlisted.hash)).toBe(unlisted.id);
      // the recipient takes on the chain what it holds, and the node that has forgotten it never says so
      await engine.decide(to.hash, true);
      await eventually(
        'everything is back',
        async () => {
          await engine.pair.mine(10);
          return !(await at.ctx.ports.lightning?.holdings())?.isMoving;
        },
        240_000,
      );
      clock.skewMs += 4 * 3_600_000;
      await at.look();
      expect(await at.payout(underWay.id)).toMatchObject({ status: 'processing', heldReason: 'unknown_outcome' });
      expect(await engine.arrived(to.hash)).toBe(5_000);
      await resolvePayout(at.ctx, { payoutId: underWay.id, outcome: 'paid', evidence: 'its recipient has it' });
      await at.work();
      expect(await at.compared()).toEqual([]);
      // the books are what the node has, and closing has cost what was missing
      const { at_node: atNode, booked_there: booked } = await held();
      expect([await told(), atNode]).toEqual([[], booked]);
      expect(await at.balance('expense:ln:channels:BTC')).toBeGreaterThan(0n);
    } finally {
      await at.close();
      await engine.close();
    }
  },
);
