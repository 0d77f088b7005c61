// Random lives of a few orders over Lightning in the running service, step by step beside the rules of rules.ts. What is different here: an invoice
// takes its whole amount or up to twice as much, and only while the node has it open; what is settled is final; and a cancel is first the node's.
import { createTransaction } from '../../src/flow/transactions/create-cancel-resolve.ts';
import { checkTransaction } from '../../src/flow/transactions/reads.ts';
import type { SimulatedEngine } from '../support/lightning-engines.ts';
import type { LightningService } from '../support/lightning-service.ts';
import { DAY, HOUR, MINUTE, SECOND, WINDOW } from './behaviour.ts';
import { isLive, newOrder, type Order, type View } from './orders.ts';
import type { Random } from './random.ts';
import { recorded } from './recorded.ts';
import { redAnswers } from './rule-comparison.ts';
import { judge, received, say, type Word } from './rules.ts';
import { sayAs } from './walk-parts.ts';

const PRICE = 100_000_00n;
/** Deeper than anything waits for: what is settled is final. */
const TIP = 1_000;
const MOST_ORDERS = 3;
type Life = { readonly id: string; readonly hash: string; readonly order: Order };
export type LightningWorld = {
  readonly engine: SimulatedEngine;
  readonly at: LightningService;
  readonly clock: { nowMs: number };
};
type Walk = LightningWorld & {
  readonly random: Random;
  readonly lives: Life[];
  readonly log: string[];
  readonly wrong: string[];
  readUntil: number;
  /** When the service looked last, the node did not answer: it makes no invoice before it has looked again. */
  wasAway: boolean;
};

const isDown = ({ engine }: Walk): boolean => engine.node().trouble().down;
/** Its next answer does not arrive. */
const isMute = (walk: Walk): boolean => isDown(walk) || walk.engine.node().trouble().fault !== null;
const viewOf = ({ clock, readUntil }: Walk): View => ({
  now: clock.nowMs,
  readUntil,
  tip: () => TIP,
  dateOf: () => clock.nowMs,
  priceAt: () => PRICE,
});

async function create(walk: Walk): Promise<boolean> {
  const { at, engine, clock, random, lives } = walk;
  if (lives.length === MOST_ORDERS || isMute(walk) || walk.wasAway) return false;
  await at.rate('100000.00');
  const [from, until] = random.one([
    [1, 99],
    [1_00, 99_99],
    [100_00, 999_99],
    [1_000_00, 5_000_00],
  ]) as [number, number];
  const cents = BigInt(random.whole(from, until));
  const { merchantId } = at;
  const asked = await createTransaction(at.ctx, { merchantId, usdMinor: cents, method: 'BTC-LN', label: null, email: null });
  const hash = await at.hashOf(asked.transactionId);
  if (engine.node().find(hash)?.valueMsat !== asked.amountDue * 1_000n) walk.wrong.push('the invoice asks for another amount');
  const order = newOrder({
    ...{ currency: 'BTC', cents, price: PRICE, due: asked.amountDue, toleranceBps: 100n, policy: 'accept' },
    ...{ createdAt: clock.nowMs, windowEnd: clock.nowMs + WINDOW },
  });
  lives.push({ id: asked.transactionId, hash, order });
  walk.log.push(`      ${asked.transactionId} ${cents} cents, due ${asked.amountDue}`);
  return true;
}

/** The payer's wallet gives the amount, a little more, up to twice as much, or too little, which the node refuses. */
function pay({ engine, random, lives, log, wrong }: Walk): boolean {
  if (lives.length === 0) return false;
  const { hash, order } = random.one(lives);
  const due = order.terms.due * 1_000n;
  const more = {
    none: 0n,
    fraction: BigInt(random.whole(1, 999)),
    most: due / 100n + BigInt(random.whole(-1, 1)) * 1_000n,
    some: (due * BigInt(random.whole(1, 999))) / 1_000n,
    twice: due,
    less: -1n,
  }[random.weighted({ none: 45, fraction: 10, most: 15, some: 15, twice: 10, less: 5 })];
  const isOpen = engine.node().find(hash)?.status === 'OPEN';
  const answer = engine.node().pay(hash, due + more, random.whole(1, 3));
  log.push(`      ${due + more} msat of ${due}: ${JSON.stringify(answer)}`);
  if (answer.paid !== (isOpen && more >= 0n)) wrong.push('the node took a payment that it should not have taken');
  return answer.paid;
}

/** What the node shows now is what the rules know. */
function note(walk: Walk): void {
  for (const life of walk.lives) noteOf(walk, life);
  walk.readUntil = walk.clock.nowMs;
}
function noteOf({ engine, clock }: Walk, { hash, order }: Life): void {
  const invoice = engine.node().find(hash);
  if (invoice?.status !== 'SETTLED' || order.arrived.length > 0) return;
  const amount = invoice.paidMsat / 1_000n;
  order.arrived.push({
    ...{ name: hash.slice(0, 6), currency: 'BTC', amount, coinbase: false, onTime: order.cancelled ? 0n : amount },
    ...{ arrivedPrice: PRICE, place: 'chain', height: 1, instant: true, chainLock: true, goneSince: null },
    ...{ booked: null, took: 0n, counts: false, isNew: true, replaces: [], firstSeen: clock.nowMs, taken: null },
  });
}

/** What the node announced before it could not be asked any more may have arrived, or not. */
async function noteWhatIsKnown(walk: Walk): Promise<void> {
  const { at, lives } = walk;
  for (const life of lives) {
    const shown = await checkTransaction(at.ctx, { merchantId: at.merchantId, transactionId: life.id });
    if (shown.receivedMinor === 0n) continue;
    noteOf(walk, life);
    judge(life.order, viewOf(walk));
  }
}

/** The worker looks; then the service must be where the rules are. */
async function look(walk: Walk): Promise<void> {
  const { at, lives, wrong } = walk;
  await at.rate('100000.00');
  const canFail = isMute(walk);
  const { caughtUp } = await at.work();
  walk.wasAway = !caughtUp;
  if (caughtUp) {
    note(walk);
    for (const { order } of lives) judge(order, viewOf(walk));
  } else if (!canFail) wrong.push('the node can be read, and the watcher has not caught up');
  else await noteWhatIsKnown(walk);
  wrong.push(...(await redAnswers({ ...at, db: at.ctx.db }, 'after the judge')));
  for (const life of lives) wrong.push(...(await differences(walk, life)));
}

async function differences({ at }: Walk, { id, order }: Life): Promise<string[]> {
  const shown = await checkTransaction(at.ctx, { merchantId: at.merchantId, transactionId: id });
  const { rows } = await at.admin.query<{ kind: string; amount: string }>(
    `select a.kind, sum(-p.amount)::text as amount from ledger.entry e join ledger.posting p on p.entry_id = e.id
       join ledger.account a on a.id = p.account_id where e.transaction_id = $1 and p.currency = 'BTC' group by 1`,
    [id],
  );
  const booked = (...kinds: string[]): bigint =>
    rows.filter(({ kind }) => kinds.includes(kind)).reduce((sum, { amount }) => sum + BigInt(amount), 0n);
  const [one] = order.arrived;
  const isConfirmed = ['succeeded', 'settled'].includes(order.status);
  const expected = {
    status: [shown.status, order.status],
    credit: [booked('available', 'receivable', 'income'), one?.booked?.credit ?? 0n],
    suspense: [booked('suspense'), one?.booked?.suspense ?? 0n],
    crypto_received: [shown.receivedMinor, received(order)],
    // what counts has one; before, and after a cancel, nothing counts
    confirmations: [shown.confirmations, order.arrived.some(isLive) && order.status !== 'cancelled' ? 1 : 0],
    'confirmed_at is set': [shown.confirmedAtMs !== null, isConfirmed],
    history: [(await at.path(id)).join(' > '), order.path.join(' > ')],
  };
  return Object.entries(expected).flatMap(([what, [is, must]]) =>
    String(is) === String(must) ? [] : [`${what} of ${id} is ${is}, by the rules ${must}`],
  );
}

/** The node's word decides: what is paid there is paid, and where it does not answer nothing is changed. */
function cancelByRules(walk: Walk, life: Life): boolean {
  const { order, hash } = life;
  if (order.status !== 'started') return say(order, 'cancel', viewOf(walk));
  if (isMute(walk)) return false;
  // what was paid is decided when the worker looks
  return walk.engine.node().find(hash)?.status !== 'SETTLED' && say(order, 'cancel', viewOf(walk));
}

const word =
  (what: Word) =>
  async (walk: Walk): Promise<boolean> => {
    const { at, random, lives, wrong, log } = walk;
    if (lives.length === 0) return false;
    const life = random.one(lives);
    const { id } = life;
    const allowed = what === 'cancel' ? cancelByRules(walk, life) : say(life.order, what, viewOf(walk));
    log.push(`      ${what} of ${id} ${await sayAs(at.ctx, { id, merchantId: at.merchantId }, { word: what, allowed, wrong })}`);
    return true;
  };

const MOVES: Record<string, (walk: Walk) => boolean | Promise<boolean>> = {
  create,
  pay,
  // paid, and cancelled before anybody has looked
  payAndCancel: async (walk) => pay(walk) && (await word('cancel')(walk)),
  cancel: word('cancel'),
  accept: word('accept'),
  acceptExcess: word('acceptExcess'),
  decline: word('decline'),
  outage: (walk) => {
    walk.engine.node().setTrouble({ down: !isDown(walk), fault: null, left: null });
    return true;
  },
  loseAnswers: (walk) => {
    if (isDown(walk)) return false;
    walk.engine.node().setTrouble({ down: false, fault: 'lose_answers', left: 1 });
    return true;
  },
  nodeRestarts: async (walk) => {
    await walk.engine.restart();
    return true;
  },
  workerRestarts: async (walk) => {
    await walk.at.restartWorker();
    return true;
  },
};
const WEIGHTS = { create: 20, pay: 40, payAndCancel: 6, cancel: 10, accept: 8, acceptExcess: 8, decline: 5, outage: 10 };
const TROUBLES = { loseAnswers: 4, nodeRestarts: 3, workerRestarts: 4 };

/** To a second before or after a limit of the rules, or simply on. */
function passTime({ clock, random, lives }: Walk): void {
  const coming = lives
    .flatMap(({ order: { terms, succeededAt } }) => [
      ...[terms.windowEnd, terms.windowEnd + MINUTE, terms.createdAt + DAY],
      ...(succeededAt > 0 ? [succeededAt + DAY] : []),
    ])
    .map((at) => at + random.one([-SECOND, 0, SECOND]))
    .filter((at) => at > clock.nowMs);
  const kind = random.weighted({ little: 60, limit: 35, hours: 5 });
  clock.nowMs =
    kind === 'limit' && coming.length > 0
      ? Math.min(...coming)
      : clock.nowMs + { little: random.whole(1, 100) * SECOND, limit: MINUTE, hours: random.whole(1, 30) * HOUR }[kind];
}

export async function runLightningWalk(world: LightningWorld, random: Random): Promise<{ wrong: string[]; log: string[] }> {
  const walk: Walk = { ...world, random, lives: [], log: [], wrong: [], readUntil: 0, wasAway: false };
  world.clock.nowMs += SECOND - (world.clock.nowMs % SECOND);
  await look(walk);
  await create(walk);
  const steps = random.whole(8, 26);
  for (let n = 0; n < steps && walk.wrong.length === 0; n++) {
    passTime(walk);
    const name = random.weighted({ ...WEIGHTS, ...TROUBLES });
    walk.log.push(`${n} ${new Date(world.clock.nowMs).toISOString().slice(5, 19)} ${name}`);
    if (!(await MOVES[name]?.(walk))) walk.log.push('      nothing to do it with');
    if (random.percent(70)) await look(walk);
    walk.log.push(`      ${walk.lives.map(({ order }) => order.status).join(', ')}`);
  }
  world.engine.node().setTrouble({ down: false, fault: null, left: null });
  if (walk.wrong.length === 0) await look(walk);
  if (walk.wrong.length > 0)
    for (const { id, order } of walk.lives)
      walk.log.push(id, `by the rules ${order.path.join(' > ')}`, ...(await recorded({ db: world.at.ctx.db }, id)));
  return walk;
}
