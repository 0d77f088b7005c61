// A real LND that has lost its disk and comes back with its wallet and the backup of its channels: it knows no payment and no invoice, and its channels are
// closed by their other sides. Payouts stop, nothing is paid again or given back unseen, and what was in the channels is in its wallet, and in the books.
import { expect, test } from 'vitest';
import { acceptForgotten, acceptForgottenReceipt } from '../../src/flow/lightning/unasked-payments.ts';
import { resolvePayout } from '../../src/flow/payouts/resolve.ts';
import { createLnd } from '../../src/outside/lightning/lnd.ts';
import { createLndPayer } from '../../src/outside/lightning/lnd-payer.ts';
import { openBreakers } from '../../src/store/ledger/breakers.ts';
import { HAS_LND, lndEngine } from '../support/lightning-engines.ts';
import { openLightningPayouts, paidIn } from '../support/lightning-payouts.ts';
import { eventually } from '../support/service.ts';

type Pending = Readonly<Record<string, readonly unknown[] | string>>;

test.runIf(HAS_LND)(
  'a node that comes back from its channel backup stops payouts, and its books are its wallet',
  { timeout: 600_000 },
  async () => {
    const engine = await lndEngine();
    const { shop, mine } = engine.pair;
    const clock = { skewMs: 0, now: () => Date.now() + clock.skewMs };
    const at = await openLightningPayouts(
      createLnd(async () => engine.target(), { chain: 'regtest' }),
      createLndPayer(async () => engine.payTarget()),
      clock,
    );
    try {
      await at.work();
      await at.look();
      const came = await paidIn(at, engine, 500_00n);
      await at.compare();
      const paid = await engine.invoice({ sat: 1_000 });
      const { id } = await at.request(paid.request, '0.00001');
      const held = await engine.invoice({ sat: 2_000, isHeld: true });
      const open = await at.request(held.request, '0.00002');
      await eventually(
        'one is paid, the other on its way',
        async () => {
          await at.look();
          return (await at.payout(id)).status === 'completed' && (await at.payment(open.id)).payment_index !== null;
        },
        60_000,
      );
      const last = await paidIn(at, engine, 20_00n);
      const books = async () => (await at.balance('asset:ln:BTC')) + (await at.balance('asset:ln:BTC:outbound'));
      const before = await books();

      await shop.restoreChannels();
      await eventually(
        'it is noticed',
        async () => {
          await at.look();
          return (await openBreakers(at.ctx.db)).length > 0;
        },
        60_000,
      );
      expect((await openBreakers(at.ctx.db)).flatMap(({ trippedBy }) => trippedBy)).toEqual(['LN-5']);
      expect(await at.payout(open.id)).toMatchObject({ status: 'processing', heldReason: 'unknown_outcome' });
      // its recipient takes the payment out of the channel that he has closed
      await engine.decide(held.hash, true);
      const isMoving = async (): Promise<boolean> => {
        const pending = await shop.call<Pending>('GET', '/v1/channels/pending');
        const { channels = [] } = await shop.call<{ channels?: unknown[] }>('GET', '/v1/channels');
        const { unconfirmed_balance: waits } = await shop.call<{ unconfirmed_balance: string }>('GET', '/v1/balance/blockchain');
        return (
          channels.length > 0 || Object.values(pending).some((list) => Array.isArray(list) && list.length > 0) || waits !== '0'
        );
      };
      await eventually(
        'everything is in its wallet',
        async () => {
          await mine(20);
          return !(await isMoving());
        },
        240_000,
      );
      for (let hour = 0; hour < 2; hour++) {
        clock.skewMs += 3_600_000;
        await at.look();
      }
      expect(await at.payout(open.id)).toMatchObject({ status: 'processing' });
      await at.work();
      await at.compare();
      const findings = await at.findings();
      expect(findings).toContainEqual(expect.stringContaining(`LN-5: ${id} was paid`));
      expect(await acceptForgotten(at.ctx, paid.hash)).toBe(id);
      for (const finding of findings) {
        const received = /^LN-2: ([0-9a-f]{64})/.exec(finding)?.[1];
        if (received !== undefined) expect(await acceptForgottenReceipt(at.ctx, received)).toMatch(/^txn_/);
      }
      await resolvePayout(at.ctx, { payoutId: open.id, outcome: 'paid', evidence: 'its recipient has it' });
      expect(await at.findings()).toEqual([]);
      for (const one of [came, last]) expect((await at.path(one)).at(-1)).toBe('succeeded');
      expect(before - (await books())).toBeGreaterThan(2_000n);
      await at.admin.query('update lightning_nodes set held_at = null');
      await eventually(
        'it is compared',
        async () => {
          await at.compare();
          const { rows } = await at.admin.query(
            'select (in_channels - booked_there)::int as more from lightning_nodes where held_at is not null',
          );
          return rows.length > 0 && process.stderr.write(`the node has ${rows[0].more} more than the books\n`);
        },
        60_000,
      );
      expect(await engine.arrived(held.hash)).toBe(2_000);
      process.stderr.write(`closing cost ${await at.balance('expense:ln:channels:BTC')}\n`);
    } finally {
      await at.close();
      await engine.close();
    }
  },
);
