// A random walk of payments in and out over two real LND, while answers are lost and workers are killed: the books are both nodes' own lists, and what our
// channels hold. LIGHTNING_WALK=200 walks further; LIGHTNING_WALK_KILLS=yes kills the node too, which takes half a minute more for each payment that hangs.
import { expect, test } from 'vitest';
import { createLnd } from '../../src/outside/lightning/lnd.ts';
import { createLndPayer } from '../../src/outside/lightning/lnd-payer.ts';
import { openAnswerRelay } from '../support/answer-relay.ts';
import { HAS_LND, lndEngine } from '../support/lightning-engines.ts';
import { openLightningPayouts, paidIn } from '../support/lightning-payouts.ts';
import { walk } from '../support/lightning-walk.ts';
import type { LndNode } from '../support/lnd.ts';

type Invoices = {
  readonly invoices: readonly { readonly state: string; readonly r_hash: string; readonly amt_paid_sat: string }[];
};
type Payments = {
  readonly payments: readonly { readonly status: string; readonly payment_hash: string; readonly value_sat: string }[];
};
type Channels = { readonly channels: readonly { readonly capacity: string; readonly remote_balance: string }[] };

const KILLS = process.env.LIGHTNING_WALK_KILLS === 'yes';

/** What of the channels is the node's that has opened them: all that is not the other's. */
async function ours(node: LndNode): Promise<number> {
  const { channels } = await node.call<Channels>('GET', '/v1/channels');
  return channels.reduce((total, one) => total + Number(one.capacity) - Number(one.remote_balance), 0);
}
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
const sorted = (list: ReadonlyMap<string, number>) => [...list].sort(([a], [b]) => (a < b ? -1 : 1));

test.runIf(HAS_LND)('a random walk on LND ends with books that are the lists of both nodes', { timeout: 900_000 }, async () => {
  const engine = await lndEngine();
  const relay = await openAnswerRelay(engine.target().url);
  const through = <T extends { readonly url: string }>(target: T): T => ({ ...target, url: relay.url });
  const clock = { skewMs: 0, now: () => Date.now() + clock.skewMs };
  const at = await openLightningPayouts(
    createLnd(async () => through(engine.target()), { chain: 'regtest' }),
    createLndPayer(async () => through(engine.payTarget())),
    clock,
  );
  try {
    const { shop, customer } = engine.pair;
    await at.work();
    await at.look();
    const held = await ours(shop);
    await paidIn(at, engine, 500_00n);
    const walked = await walk({
      engine,
      at,
      // the nodes have the system's clock
      pass: () => undefined,
      seed: 1,
      payments: Number(process.env.LIGHTNING_WALK ?? 40),
      troubles: KILLS ? [relay.loseAnswers, relay.loseAnswers, engine.restart] : [relay.loseAnswers],
      calm: () => undefined,
      ...(KILLS
        ? {
            waitLong: () => {
              clock.skewMs = 2 * 3_600_000;
            },
          }
        : {}),
    });
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
    const books = (await at.balance('asset:ln:BTC')) + (await at.balance('asset:ln:BTC:outbound'));
    // each of the two channels' balances is shown in whole satoshis
    expect(Math.abs((await ours(shop)) - held - Number(books))).toBeLessThanOrEqual(2);
    process.stderr.write(`walked ${JSON.stringify(walked)}\n`);
  } finally {
    await at.close();
    relay.close();
    await engine.close();
  }
});
