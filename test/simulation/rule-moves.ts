// What happens in a random life of an order: see rule-walk.ts.
import { type Code, HOUR, SECOND } from './behaviour.ts';
import type { Random } from './random.ts';
import { askRefund, sendRefund } from './refund-walk.ts';
import { openWalk, type Walk } from './rule-walk.ts';
import type { Word } from './rules.ts';
import type { SimulatedService } from './simulated-service.ts';
import { accountOf, amountFor, passTime } from './walk-parts.ts';

const PAIRS: readonly (readonly [Code, Code])[] = [
  ['BTC', 'LTC'],
  ['LTC', 'BTC'],
  ['BTC', 'LTC'],
  ['BCH', 'DOGE'],
  ['DOGE', 'BCH'],
  ['DASH', 'BCH'],
];

const PRICES: readonly (readonly [Code, bigint])[] = [
  ['BTC', 65_000_00n],
  ['LTC', 80_00n],
  ['BCH', 400_00n],
  ['DASH', 30_00n],
  ['DOGE', 20n],
];

const otherAmount = ({ random, terms, service, other }: Walk): bigint =>
  (terms.cents * 10n ** 8n * BigInt(random.whole(300, 1200))) / 1000n / (service.prices.get(other) as bigint) + 700n;

type Move = (walk: Walk) => Promise<boolean> | boolean;
const pay: Move = (walk) => {
  const amount = amountFor(walk, 700n);
  const parts = amount > 10_000n && walk.random.percent(15) ? 2n : 1n;
  const amounts = parts === 1n ? [amount] : [amount / 2n, amount - amount / 2n];
  walk.log.push(`      ${amounts}`);
  return walk.pay(walk.currency, amounts) !== null;
};
const MOVES = {
  pay,
  payOther: (walk) => !walk.isDown() && walk.pay(walk.other, [otherAmount(walk)]) !== null,
  payInBlock: (walk) => {
    const done = pay(walk);
    walk.mine(walk.currency, 1);
    return done;
  },
  mine: (walk) => {
    walk.mine(walk.currency, Number(walk.random.weighted({ 1: 55, 2: 20, 3: 10, 6: 10, 12: 4, 60: 3 })));
    return true;
  },
  // what comes on the other chain meanwhile would be seen at once
  mineOther: (walk) => {
    if (walk.isDown()) return false;
    walk.mine(walk.other, Number(walk.random.weighted({ 1: 40, 3: 20, 12: 20, 60: 5 })));
    return true;
  },
  reorg: (walk) => reorg(walk, walk.currency),
  reorgOther: (walk) => !walk.isDown() && reorg(walk, walk.other),
  hide: (walk) => hideOrShow(walk, 'pool', true),
  show: (walk) => hideOrShow(walk, 'gone', false),
  doubleSpend: (walk) => {
    const waiting = walk.alive(walk.currency, 'pool');
    return waiting.length > 0 && walk.service.node(walk.currency).doubleSpend([walk.random.one(waiting).tx]).length > 0;
  },
  replace: (walk) => {
    const waiting = walk.alive(walk.currency, 'pool').filter((one) => !one.coinbase);
    if (waiting.length === 0) return false;
    const old = walk.random.one(waiting);
    const amount = (old.amounts.reduce((a, b) => a + b, 0n) * BigInt(walk.random.one([100, 100, 60, 130]))) / 100n;
    walk.log.push(`      ${old.tx.txid.slice(0, 6)} by ${amount}`);
    return walk.replace(old, amount < 700n ? 700n : amount) !== null;
  },
  malleate: (walk) => {
    const waiting = walk.alive(walk.currency, 'pool').filter((one) => !one.coinbase);
    if (waiting.length === 0) return false;
    walk.malleate(walk.random.one(waiting));
    return true;
  },
  newPrice: async (walk) => {
    const code = walk.random.percent(80) ? walk.currency : walk.other;
    const cents = ((walk.service.prices.get(code) as bigint) * BigInt(walk.random.whole(80, 125))) / 100n;
    walk.service.wait(SECOND);
    walk.log.push(`      ${code} ${cents}`);
    await walk.price(code, cents < 10n ? 10n : cents);
    walk.service.wait(SECOND);
    return true;
  },
  outage: (walk) => {
    const isDown = !walk.isDown();
    walk.log.push(`      ${isDown ? 'down' : 'up'}`);
    walk.service.node(walk.currency).setTrouble({ down: isDown, fault: null, left: null });
    return true;
  },
  cancel: word('cancel'),
  accept: word('accept'),
  acceptExcess: word('acceptExcess'),
  decline: word('decline'),
  reimburse: (walk) => !walk.isDown() && askRefund(walk, 'whole'),
  reimburseExcess: (walk) => !walk.isDown() && askRefund(walk, 'excess'),
  send: (walk) => !walk.isDown() && sendRefund(walk),
  clock: (walk) => !walk.isDown() && setClock(walk),
} satisfies Record<string, Move>;

/** While nobody can read the chain the merchant's words are left out: what they refer to is not what is there. */
function word(what: Word): Move {
  return async (walk) => {
    if (walk.isDown()) return false;
    await walk.say(what);
    return true;
  };
}
/** Back, or forward again as far as it was set back: more cannot be distinguished from time that passed. */
function setClock(walk: Walk): boolean {
  const { random, setBackMs: back } = walk;
  if (walk.sent.some((one) => one.arrived === null)) return false;
  const byMs =
    back > 0 && random.percent(60) ? random.one([back, random.whole(3, 3 * HOUR)]) : -random.whole(3 * SECOND, 3 * HOUR);
  const set = Math.min(byMs, back);
  walk.log.push(`      ${set} ms`);
  walk.setClock(set);
  return true;
}
function reorg(walk: Walk, code: Code): boolean {
  const depth = Math.min(Number(walk.random.weighted({ 1: 45, 2: 25, 3: 15, 6: 15 })), walk.own(code));
  if (depth < 1) return false;
  const drop = walk.random.percent(30);
  walk.log.push(`      ${depth}${drop ? ' drop' : ''}`);
  walk.service.node(code).reorg(depth, { drop });
  return true;
}
function hideOrShow(walk: Walk, from: 'pool' | 'gone', denied: boolean): boolean {
  const waiting = walk.alive(walk.currency, from);
  if (waiting.length === 0) return false;
  walk.service.node(walk.currency).deny(walk.random.one(waiting).tx, denied);
  return true;
}

const WEIGHTS: Record<keyof typeof MOVES, number> = {
  ...{
    pay: 34,
    payOther: 7,
    payInBlock: 8,
    mine: 40,
    mineOther: 8,
    reorg: 12,
    reorgOther: 2,
    hide: 7,
    show: 6,
    doubleSpend: 4,
    replace: 8,
    malleate: 5,
  },
  ...{ outage: 5, newPrice: 12, cancel: 2, accept: 6, acceptExcess: 4, decline: 3 },
  ...{ reimburse: 8, reimburseExcess: 6, send: 12, clock: 5 },
};

export async function runWalk(service: SimulatedService, random: Random): Promise<{ wrong: string[]; log: string[] }> {
  service.wait(1_000 - (service.now() % 1_000));
  // a seed is the same whatever ran before it in this service
  for (const [code, cents] of PRICES) service.prices.set(code, cents);
  const walk = await openWalk(service, random, random.one(PAIRS));
  await walk.look();
  const steps = random.whole(8, 26);
  for (let n = 0; n < steps && walk.wrong.length === 0; n++) {
    passTime(walk);
    const seen = random.percent(60);
    if (seen) await walk.look();
    const name = random.weighted(WEIGHTS);
    walk.log.push(`${n} ${new Date(service.now()).toISOString().slice(5, 19)} ${seen ? 'looked, ' : ''}${name}`);
    if (!seen && ['cancel', 'accept', 'acceptExcess', 'decline', 'reimburse', 'reimburseExcess', 'send', 'clock'].includes(name))
      await walk.look();
    const did = await MOVES[name](walk);
    if (!did) walk.log.push('      nothing to do it with');
    await walk.look();
    walk.log.push(`      ${walk.order.status}`);
  }
  if (walk.isDown() && walk.wrong.length === 0) {
    MOVES.outage(walk);
    await walk.look();
  }
  service.node(walk.currency).setTrouble({ down: false, fault: null, left: null });
  walk.wrong.push(...service.troubles.splice(0));
  if (walk.wrong.length > 0) walk.log.push(...(await accountOf(service, walk.id, walk.order)));
  return walk;
}
