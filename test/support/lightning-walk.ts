// A random walk over a Lightning node: payments in, payouts, reimbursements and their ends, in any order, while answers are lost, workers are killed
// and the node is started again. What must be true at the end is here too.
import { expect } from 'vitest';
import { formatMinor } from '../../src/core/money.ts';
import { resolvePayout } from '../../src/flow/payouts/resolve.ts';
import { createHeldPayouts } from '../../src/worker/payouts/held-payouts.ts';
import { LIGHTNING_STEPS } from '../../src/worker/payouts/lightning/steps.ts';
import type { LightningEngine } from './lightning-engines.ts';
import type { LightningPayouts } from './lightning-payouts.ts';
import { randomBelow } from './random.ts';
import { eventually } from './service.ts';

type Out = { readonly hash: string; readonly isHeld: boolean; isDecided: boolean };
export type Walk = {
  readonly engine: LightningEngine;
  readonly at: LightningPayouts;
  /** Moves the service's clock; a real node's goes by itself. */
  readonly pass: (ms: number) => void;
  readonly seed: number;
  readonly payments: number;
  /** What else may go wrong, as the node allows. */
  readonly troubles: readonly (() => void | Promise<void>)[];
  /** Ends every trouble. */
  readonly calm: () => void;
  /**
   * The node may be killed: then a payment that only its disk knows hangs for good, and the test's operator decides it by what its recipient has. Moves the
   * service's clock beyond every invoice's end; only then nobody waits for such a one any more.
   */
  readonly waitLong?: () => Promise<void>;
  /**
   * Its operator closes by force the channels that still hold something, and blocks go on: called again and again once everything else has ended, or nothing
   * has for long. One payout is left to be closed so: its recipient holds it and never decides.
   */
  readonly closeHeld?: () => Promise<void>;
};
export type Walked = {
  readonly paidIn: number;
  readonly completed: number;
  readonly failed: number;
  readonly reimbursed: number;
  /** Of the others, how many an operator had to decide. */
  readonly hung: number;
  /** Whether a channel had to be closed. */
  readonly isClosed: boolean;
};

/** What was sent is held by its recipient within this time; what waits, or has failed, never is, and would keep the walk waiting. */
const ARRIVES_MS = 1_000;
/** Nothing has ended for so long: what is left hangs. */
const HANGS_MS = 30_000;
/** More than a channel can leave out as dust when it is closed, which no chain gives back to anybody. */
const LEFT_SAT = 4_321;

/** As many of a merchant are under way as may be: the others wait, and go on by themselves. */
async function lookAtHeld({ ctx }: LightningPayouts): Promise<void> {
  await createHeldPayouts(ctx, (id, error) => expect(error, id).toBeNull()).run();
}

/** The walk, until everything has ended. @returns how many of each there were */
export async function walk({ engine, at, pass, seed, payments, troubles, calm, waitLong, closeHeld }: Walk): Promise<Walked> {
  const below = randomBelow(seed);
  const one = <T>(list: readonly T[]): T => list[below(list.length)] as T;
  const ins: string[] = [];
  const outs = new Map<string, Out>();
  const backs = new Map<string, Out>();
  let made = 0;
  const look = async (): Promise<void> => {
    await at.look({}, below(4) === 0 ? one(LIGHTNING_STEPS) : null);
    await at.judge();
  };
  async function payIn(): Promise<void> {
    await at.rate('100000.00');
    const asked = await at.create(BigInt(500 + below(2_000))).catch(() => null);
    if (asked === null) return;
    const hash = await at.hashOf(asked.transactionId);
    if (below(8) > 0 && (await engine.pay(asked.address, hash))) ins.push(asked.transactionId);
    made += 1;
  }
  async function invoice(sat: number | null): Promise<Out & { readonly request: string }> {
    const isHeld = below(3) === 0;
    return { ...(await engine.invoice({ sat, isHeld })), isHeld, isDecided: false };
  }
  async function payOut(): Promise<void> {
    const amount = 100 + below(3_000);
    const to = await invoice(below(2) === 0 ? amount : null);
    const payout = await at.request(to.request, formatMinor(BigInt(amount), 8)).catch(() => null);
    if (payout !== null) outs.set(payout.id, to);
    made += 1;
  }
  async function payBack(): Promise<void> {
    const id = ins.length === 0 ? null : one(ins);
    if (id === null || (await at.path(id)).at(-1) !== 'succeeded') return;
    const to = await invoice(null);
    if (await at.reimburse(id, to.request).then(Boolean, () => false)) backs.set(id, to);
    made += 1;
  }
  async function decide(): Promise<void> {
    const open = [...outs.values(), ...backs.values()].filter(({ isHeld, isDecided }) => isHeld && !isDecided);
    if (open.length === 0) return;
    const out = one(open);
    out.isDecided = await engine.decide(out.hash, below(2) === 0, ARRIVES_MS).then(
      () => true,
      () => false,
    );
  }
  /** One that its recipient holds from the beginning, and never decides. */
  async function leaveOne(): Promise<void> {
    const to = await engine.invoice({ sat: LEFT_SAT, isHeld: true });
    const { id } = await at.request(to.request, formatMinor(BigInt(LEFT_SAT), 8));
    outs.set(id, { ...to, isHeld: true, isDecided: true });
    await eventually('it is held', async () => {
      await at.look();
      return (await at.paying.track(to.hash)).isPending;
    });
  }
  const moves = [
    payIn,
    payIn,
    payIn,
    payOut,
    payOut,
    payBack,
    look,
    look,
    () => at.work(),
    at.restartWorker,
    async () => pass(16_000),
  ];
  if (closeHeld !== undefined) await leaveOne();
  while (made < payments) {
    await one(moves)();
    if (below(12) === 0) await decide();
    if (below(10) === 0 && troubles.length > 0) await one(troubles)();
  }
  calm();
  type Open = { readonly id: string; readonly held_reason: string | null; readonly payment_hash: string };
  let open: Open[] = [];
  let hung = 0;
  let isClosed = false;
  let seen = { left: -1, atMs: performance.now() };
  /** Decides as an operator does what no node ever ends. */
  async function decideHanging(): Promise<void> {
    if (open.length !== seen.left) seen = { left: open.length, atMs: performance.now() };
    const restsMs = performance.now() - seen.atMs;
    if (restsMs > HANGS_MS) await waitLong?.();
    isClosed ||= closeHeld !== undefined && (open.length === 1 || restsMs > 2 * HANGS_MS);
    if (isClosed) await closeHeld?.();
    if (waitLong === undefined) return;
    for (const one of open.filter(({ held_reason: reason }) => reason === 'unknown_outcome')) {
      const { payment, isPending } = await at.paying.track(one.payment_hash);
      expect(isPending, `${one.id} hangs, and a channel holds it`).toBe(false);
      // of a node that was killed its word that one failed is not enough once a channel was closed by force
      expect(['in_flight', 'failed']).toContain(payment?.status);
      const outcome = (await engine.arrived(one.payment_hash)) > 0 ? 'paid' : 'failed';
      // refused while a channel is being closed that may hold it: he tries again
      const isDecided = await resolvePayout(at.ctx, { payoutId: one.id, outcome, evidence: 'its recipient says so' }).then(
        () => true,
        (error: unknown) => (error as { code?: string }).code !== 'not_resolvable' && Promise.reject(error),
      );
      if (isDecided) hung += 1;
    }
  }
  const isOpen = async (): Promise<boolean> => {
    const { rows } = await at.admin.query(
      `select p.id, p.status, p.step, p.held_reason, p.reimburses, l.state, l.trouble, l.due_at, l.lease_until, l.unanswered_until, l.payment_hash
         from payouts p join lightning_payments l on l.payout_id = p.id where p.step <> 'ended' or (p.reimburses is not null and not p.noted)`,
    );
    open = rows;
    return open.length > 0;
  };
  await eventually(
    'everything has ended',
    async () => {
      pass(21_000);
      await at.rate('100000.00');
      await at.work();
      await lookAtHeld(at);
      await at.look();
      await at.judge();
      await decide();
      const isLeft = await isOpen();
      await decideHanging();
      return !isLeft;
    },
    180_000 + payments * 1_000 + (closeHeld === undefined ? 0 : 240_000),
  ).catch(async (error: Error) => {
    const held = await Promise.all(open.map(async (one) => (await at.paying.track(one.payment_hash)).isPending));
    throw new Error(`${error.message}; of these a channel holds ${held.filter(Boolean).length}: ${JSON.stringify(open)}`);
  });
  return { ...(await endings(engine, at, { ins, outs, backs })), hung, isClosed };
}

/** Each payout has arrived exactly where it is completed, each reimbursement where its transaction says so; the balance is what all of them left. */
async function endings(
  engine: LightningEngine,
  at: LightningPayouts,
  of: { readonly ins: readonly string[]; readonly outs: ReadonlyMap<string, Out>; readonly backs: ReadonlyMap<string, Out> },
): Promise<Omit<Walked, 'hung' | 'isClosed'>> {
  const { rows } = await at.admin.query(
    `select coalesce(sum(amount_due), 0)::text as due, count(*)::int as n from transactions where status in ('succeeded', 'settled')`,
  );
  let expected = BigInt(rows[0].due);
  const walked = { paidIn: of.ins.length, completed: 0, failed: 0, reimbursed: 0 };
  for (const [id, { hash }] of of.outs) {
    const { status, amountText, fee } = await at.payout(id);
    const amount = BigInt(amountText.replace('.', ''));
    expect(await engine.arrived(hash), `${id} is ${status}`).toBe(status === 'completed' ? Number(amount) : 0);
    if (status === 'completed') expected -= amount + (fee as bigint);
    walked[status === 'completed' ? 'completed' : 'failed'] += 1;
  }
  for (const [id, { hash }] of of.backs) {
    const refund = await at.refund(id);
    const isBack = (await at.path(id)).at(-1) === 'reimbursed';
    if (refund?.txid !== hash) continue;
    expect(await engine.arrived(hash), `${id} is reimbursed: ${isBack}`).toBe(isBack ? Number(refund.amount) : 0);
    if (isBack) walked.reimbursed += 1;
  }
  for (const id of of.ins) expect(['succeeded', 'reimbursed'], id).toContain((await at.path(id)).at(-1));
  expect(await at.available()).toBe(expected);
  expect(await at.compared()).toEqual([]);
  return walked;
}
