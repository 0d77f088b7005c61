// A random walk of payments in and out over two real LND, while answers are lost and workers are killed, at whose end a channel is closed by force with a
// payment in it that its recipient never decides: the books are both nodes' own lists, what our node has, and what closing has cost. LIGHTNING_WALK=200 walks
// further; LIGHTNING_WALK_KILLS=yes kills the node too, and closes what a killed LND cannot resume, which takes some minutes more.
import { expect, test } from 'vitest';
import { runAudit } from '../../src/flow/audit.ts';
import { createLnd } from '../../src/outside/lightning/lnd.ts';
import { createLndPayer } from '../../src/outside/lightning/lnd-payer.ts';
import { openAnswerRelay } from '../support/answer-relay.ts';
import { HAS_LND, lndEngine } from '../support/lightning-engines.ts';
import { openLightningPayouts, paidIn, withClock } from '../support/lightning-payouts.ts';
import { walk } from '../support/lightning-walk.ts';
import type { LndNode } from '../support/lnd-node.ts';
import { eventually } from '../support/service.ts';

type Invoices = {
  readonly invoices: readonly { readonly state: string; readonly r_hash: string; readonly amt_paid_sat: string }[];
};
type Payments = {
  readonly payments: readonly { readonly status: string; readonly payment_hash: string; readonly value_sat: string }[];
};

const KILLS = process.env.LIGHTNING_WALK_KILLS === 'yes';
const TIMEOUT = KILLS ? 1_800_000 : 900_000;
/** Blocks that are mined at once while nothing of a closed channel can be spent. */
const AT_ONCE = 50;
/**
 * From here on one at a time: where many come in a row its own spend may be mined in one that LND has not read yet; it takes what that spends for lost then,
 * and does not go on before it is started again.
 */
const NEAR = 10;

/** Payment hashes of what has come to it, and of what it has paid; by hash, in satoshis. */
async function lists(node: LndNode) {
  const { invoices } = await node.call<Invoices>('GET', '/v1/invoices?num_max_invoices=10000');
  const { payments } = await node.call<Payments>('GET', '/v1/payments?max_payments=10000');
  const settled = invoices.filter(({ state }) => state === 'SETTLED');
  return {
    in: new Map(settled.map((one) => [Buffer.from(one.r_hash, 'base64').toString('hex'), Number(one.amt_paid_sat)])),
    out: new Map(payments.map((one) => [one.payment_hash, Number(one.value_sat)])),
  };
}
/** In how many blocks its closer may spend what is his of a channel closed by force; 0 when that is not waited for. */
async function matureIn(node: LndNode): Promise<number> {
  type Closing = { readonly blocks_til_maturity?: number };
  const pending = await node.call<{ readonly pending_force_closing_channels?: readonly Closing[] }>(
    'GET',
    '/v1/channels/pending',
  );
  const waits = (pending.pending_force_closing_channels ?? []).flatMap(({ blocks_til_maturity: blocks = 0 }) =>
    blocks > 0 ? [blocks] : [],
  );
  return waits.length === 0 ? 0 : Math.min(...waits);
}
const sorted = (list: ReadonlyMap<string, number>) => [...list].sort(([a], [b]) => (a < b ? -1 : 1));

test.runIf(HAS_LND)('a random walk on LND ends with books that are the lists of both nodes', { timeout: TIMEOUT }, async () => {
  const engine = await lndEngine();
  const relay = await openAnswerRelay(engine.target().url);
  const through = <T extends { readonly url: string }>(target: T): T => ({ ...target, url: relay.url });
  const clock = { skewMs: 0, now: () => Date.now() + clock.skewMs };
  const at = await openLightningPayouts(
    createLnd(async () => through(engine.target()), { chain: 'regtest' }),
    withClock(
      createLndPayer(async () => through(engine.payTarget())),
      clock,
    ),
    clock,
  );
  /** Until what hangs could not arrive any more. */
  const waitLong = async (): Promise<void> => {
    clock.skewMs = Math.max(clock.skewMs, 2 * 3_600_000);
    await engine.pair.mine(NEAR);
  };
  /** Blocks go on until everything of the closed channels is back; then the books have what the node has, and what closing has cost. */
  async function closedIsBooked(): Promise<void> {
    for (let left = await matureIn(engine.pair.shop); left > NEAR; left = await matureIn(engine.pair.shop))
      await engine.pair.mine(Math.min(AT_ONCE, left - NEAR + 1));
    await eventually(
      'everything is back',
      async () => {
        await engine.pair.mine(1);
        return !(await at.ctx.ports.lightning?.holdings())?.isMoving;
      },
      240_000,
    );
    await eventually('closing is booked', async () => {
      await at.work();
      expect(await at.compared()).toEqual([]);
      return (await at.balance('expense:ln:channels:BTC')) > 0n;
    });
    const { pages } = await runAudit(at.ctx);
    expect(pages.filter(({ id }) => id === 'LN-7').flatMap(({ findings }) => findings)).toEqual([]);
    const { rows } = await at.admin.query('select (at_node - booked_there)::int as more from lightning_nodes');
    // each of the channels' balances is shown in whole satoshis
    expect(Math.abs(rows[0].more)).toBeLessThanOrEqual(2);
  }
  try {
    const { shop, customer } = engine.pair;
    await at.work();
    await at.look();
    await paidIn(at, engine, 500_00n);
    await eventually('what the node had before is booked', async () => {
      expect(await at.compared()).toEqual([]);
      return (await at.balance('asset:ln:operator:BTC')) > 0n;
    });
    const walked = await walk({
      engine,
      at,
      // the nodes have the system's clock
      pass: () => undefined,
      seed: 1,
      payments: Number(process.env.LIGHTNING_WALK ?? 40),
      troubles: KILLS ? [relay.loseAnswers, relay.loseAnswers, engine.restart] : [relay.loseAnswers],
      calm: () => undefined,
      closeHeld: async () => {
        await engine.closeHolding();
        await engine.pair.mine(2);
        // what waits for an operator is looked at each minute; a clock that jumps each time would look like a node that is started each time
        await at.admin.query(`update lightning_payments set due_at = least(due_at, 'epoch')`);
      },
      ...(KILLS ? { waitLong } : {}),
    });
    expect(walked.isClosed).toBe(true);
    expect(walked.paidIn).toBeGreaterThan(0);
    expect(walked.completed).toBeGreaterThan(0);
    const [mine, theirs] = [await lists(shop), await lists(customer)];
    expect(sorted(mine.in)).toEqual(sorted(theirs.out));
    expect(sorted(mine.out)).toEqual(sorted(theirs.in));
    const { rows: came } = await at.admin.query(`select txid, amount::int as sat from payments where currency = 'BTC-LN'`);
    expect(sorted(mine.in)).toEqual(sorted(new Map(came.map(({ txid, sat }) => [txid, sat]))));
    const { rows: left } = await at.admin.query(
      `select l.payment_hash, (p.amount - case when p.reimburses is null then 0 else p.fee_max end)::int as sat
         from lightning_payments l join payouts p on p.id = l.payout_id where l.state = 'paid'`,
    );
    expect(sorted(mine.out)).toEqual(sorted(new Map(left.map(({ payment_hash, sat }) => [payment_hash, sat]))));
    await closedIsBooked();
    process.stderr.write(`walked ${JSON.stringify(walked)}\n`);
  } finally {
    await at.close();
    relay.close();
    await engine.close();
  }
});
