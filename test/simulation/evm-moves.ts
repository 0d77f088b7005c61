// What happens in a random life of an order in ether or USDT: see evm-walk.ts.
import type { EvmCode } from '../../src/core/currency.ts';
import { TOKEN, tokens } from '../../src/sandbox/evm/contracts.ts';
import { SECOND, unitOf } from './behaviour.ts';
import type { EvmService } from './evm-service.ts';
import { type EvmWalk, openEvmWalk } from './evm-walk.ts';
import type { Random } from './random.ts';
import type { Word } from './rules.ts';
import { accountOf, amountFor, passTime } from './walk-parts.ts';

const PRICES: readonly (readonly [EvmCode, bigint])[] = [
  ['ETH', 3_000_00n],
  ['USDT', 1_00n],
];

/** A share of the price in the other currency of the chain. */
const otherAmount = ({ random, terms, service, other }: EvmWalk): bigint =>
  (terms.cents * unitOf(other) * BigInt(random.whole(300, 1200))) / 1000n / (service.prices.get(other) as bigint) + 1n;

type Move = (walk: EvmWalk) => Promise<boolean> | boolean;
const pay: Move = (walk) => {
  const { random, currency } = walk;
  const amount = amountFor(walk, 1n);
  const parts = amount > 10_000n && random.percent(12) ? 2n : 1n;
  const amounts = parts === 1n ? [amount] : [amount / 2n, amount - amount / 2n];
  const kind = currency === 'ETH' && random.percent(15) ? 'internal' : null;
  walk.log.push(`      ${amounts} ${kind ?? ''}`);
  return walk.pay({ currency, amounts, kind });
};
const mineBlocks = ({ service, log }: EvmWalk, blocks: number): true => {
  service.chain.mine(blocks);
  log.push(`      ${blocks} to ${service.tip()}, final ${service.finalized()}`);
  return true;
};
const MOVES = {
  pay,
  payOther: (walk) => walk.pay({ currency: walk.other, amounts: [otherAmount(walk)] }),
  payInBlock: (walk) => pay(walk) && mineBlocks(walk, 1),
  // calls that fail, and tokens that only look like one: none of them is a payment
  payNothing: (walk) =>
    walk.pay(
      walk.random.percent(50)
        ? { currency: 'USDT', amounts: [10_000_000n], kind: walk.random.one(['token_fake', 'token_failed'] as const) }
        : { currency: 'ETH', amounts: [10n ** 17n], kind: 'internal_reverted' },
    ),
  mine: (walk) => mineBlocks(walk, Number(walk.random.weighted({ 1: 40, 3: 14, 6: 18, 12: 12, 32: 8, 65: 8 }))),
  reorg: (walk) => {
    const depth = Math.min(Number(walk.random.weighted({ 1: 30, 2: 15, 5: 15, 8: 20, 20: 20 })), walk.own());
    if (depth < 1 || walk.service.tip() - depth <= walk.service.finalized()) return false;
    const drop = walk.random.percent(40);
    walk.log.push(`      ${depth}${drop ? ' drop' : ''}`);
    walk.service.chain.reorg(depth, drop);
    return true;
  },
  // a transfer of tokens that its sender no longer has when a block takes it
  spentBefore: (walk) => {
    const waiting = walk.alive('pool').filter(({ currency }) => currency === 'USDT');
    if (waiting.length === 0) return false;
    walk.service.chain.state.accounts.set(tokens(TOKEN, walk.random.one(waiting).tx.from), 0n);
    return mineBlocks(walk, 1);
  },
  evict: (walk) => {
    const waiting = walk.alive('pool');
    if (waiting.length === 0) return false;
    walk.service.chain.evict([walk.random.one(waiting).tx]);
    return true;
  },
  sendAgain: (walk) => {
    const gone = walk.alive('gone');
    return gone.length > 0 && walk.service.chain.sendAgain([walk.random.one(gone).tx]).length > 0;
  },
  doubleSpend: (walk) => {
    const waiting = walk.alive('pool');
    return waiting.length > 0 && walk.service.chain.doubleSpend([walk.random.one(waiting).tx]).length > 0;
  },
  replace: (walk) => {
    const waiting = walk.alive('pool');
    if (waiting.length === 0) return false;
    const old = walk.random.one(waiting);
    const amount = (old.amounts.reduce((a, b) => a + b, 0n) * BigInt(walk.random.one([100, 100, 60, 130]))) / 100n;
    walk.log.push(`      ${old.tx.hash.slice(2, 8)} by ${amount}`);
    return walk.replace(old, amount < 1n ? 1n : amount);
  },
  finality: (walk) => {
    const stands = walk.random.percent(50);
    walk.log.push(`      ${stands ? 'stands' : 'goes on'}`);
    walk.service.stall(stands);
    // what is final changes with a block
    return mineBlocks(walk, 1);
  },
  newPrice: async (walk) => {
    const { random, service } = walk;
    const code = random.percent(80) ? walk.currency : walk.other;
    const cents = ((service.prices.get(code) as bigint) * BigInt(random.whole(80, 125))) / 100n;
    service.wait(SECOND);
    walk.log.push(`      ${code} ${cents}`);
    await walk.price(code, cents < 50n ? 50n : cents);
    service.wait(SECOND);
    return true;
  },
  outage: (walk) => {
    const isDown = !walk.isDown();
    walk.log.push(`      ${isDown ? 'down' : 'up'}`);
    walk.service.setDown(isDown);
    return true;
  },
  // the worker dies before, inside or after one of its next database transactions
  die: async (walk) => {
    const { random, service, log } = walk;
    const left = random.whole(1, 8);
    const how = random.one(['before', 'inside', 'after'] as const);
    log.push(`      ${how} transaction ${left}`);
    await service.die(left, how);
    return true;
  },
  restart: async (walk) => {
    await walk.service.restart();
    return true;
  },
  cancel: word('cancel'),
  accept: word('accept'),
  acceptExcess: word('acceptExcess'),
  decline: word('decline'),
} satisfies Record<string, Move>;

/** While nobody can read the chain the merchant's words are left out: what they refer to is not what is there. */
function word(what: Word): Move {
  return async (walk) => {
    if (walk.isDown()) return false;
    await walk.say(what);
    return true;
  };
}

const WEIGHTS: Record<keyof typeof MOVES, number> = {
  ...{ pay: 34, payOther: 7, payInBlock: 8, payNothing: 3, mine: 44, reorg: 12, evict: 7, sendAgain: 6, doubleSpend: 4 },
  ...{
    replace: 8,
    spentBefore: 3,
    finality: 5,
    outage: 5,
    restart: 3,
    die: 12,
    newPrice: 12,
    cancel: 2,
    accept: 6,
    acceptExcess: 4,
    decline: 3,
  },
};
const WORDS: readonly string[] = ['cancel', 'accept', 'acceptExcess', 'decline'];

export async function runEvmWalk(service: EvmService, random: Random): Promise<{ wrong: string[]; log: string[] }> {
  service.wait(1_000 - (service.now() % 1_000));
  // a seed is the same whatever ran before it in this service
  for (const [code, cents] of PRICES) service.prices.set(code, cents);
  const walk = await openEvmWalk(service, random, random.one(['ETH', 'USDT'] as const));
  await walk.look();
  // an order that is paid at once has more to lose
  if (random.percent(50)) {
    service.wait(10 * SECOND);
    await pay(walk);
    await walk.look();
  }
  const steps = random.whole(8, 26);
  for (let n = 0; n < steps && walk.wrong.length === 0; n++) {
    passTime(walk);
    const seen = random.percent(60);
    if (seen) await walk.look();
    const name = random.weighted(WEIGHTS);
    walk.log.push(`${n} ${new Date(service.now()).toISOString().slice(5, 19)} ${seen ? 'looked, ' : ''}${name}`);
    if (!seen && WORDS.includes(name)) await walk.look();
    if (!(await MOVES[name](walk))) walk.log.push('      nothing to do it with');
    await walk.look();
    walk.log.push(`      ${walk.order.status}`);
  }
  service.setDown(false);
  service.stall(false);
  mineBlocks(walk, 1);
  if (walk.wrong.length === 0) await walk.look();
  walk.wrong.push(...service.troubles.splice(0));
  if (walk.wrong.length > 0) walk.log.push(...(await accountOf(service, walk.id, walk.order)));
  return walk;
}
