// What can happen at the service in the simulation: purchases, the merchant's decisions, passes of the watchers (also of two workers at
// once, and of one that dies in the middle), prices and time. `false` means that the move was not possible.

import { Refusal } from '../../src/core/refusal.ts';
import { cancelTransaction, createTransaction, resolveTransaction } from '../../src/flow/transaction-life.ts';
import { postEntries } from '../../src/store/ledger/ledger.ts';
import { CHAIN_MOVES } from './chain-moves.ts';
import type { Chance } from './chance.ts';
import { COINS, type Coin, HOUR, MINUTE, SECOND } from './law.ts';
import type { Model, Purchase } from './model.ts';
import type { Merchant, SimulatedService } from './simulated-service.ts';

export type Counter = {
  readonly world: SimulatedService;
  readonly model: Model;
  readonly chance: Chance;
  readonly coin: Coin;
  readonly merchants: readonly Merchant[];
  readonly note: (text: string) => void;
  /** After every verdict: what was booked is looked at. */
  readonly afterJudge: () => Promise<void>;
  /** After all chains were read and judged. */
  readonly afterLook: () => Promise<void>;
};
type Move = (counter: Counter) => Promise<boolean>;

const MOST_PURCHASES = 6;
const CENTS = [
  [3_00, 99_99],
  [100_00, 999_99],
  [1_000_00, 9_999_99],
  [10_000_00, 60_000_00],
] as const;

const create: Move = async ({ world, model, chance, coin, merchants, note }) => {
  if (model.purchases.filter((one) => one.coin === coin).length >= MOST_PURCHASES) return false;
  const step = Number(chance.weighted({ 0: 45, 1: 28, 2: 17, 3: 10 }));
  const [from, until] = CENTS[step] as (typeof CENTS)[number];
  const merchant = chance.one(merchants);
  const cents = BigInt(chance.whole(from, until));
  const purchase = await orRefused(buy({ world, model }, { coin, merchant, cents }));
  if (purchase === null) return false;
  note(`${purchase.id.slice(-6)} ${cents} cents, ${purchase.amountDue}, ${merchant.policy} ${merchant.toleranceBps}`);
  return true;
};

/** A purchase through the product, and what the model must know of it. */
export async function buy(
  { world, model }: { readonly world: SimulatedService; readonly model: Model },
  what: { readonly coin: Coin; readonly merchant: Merchant; readonly cents: bigint },
): Promise<Purchase> {
  const { coin, merchant, cents } = what;
  const order = { merchantId: merchant.id, usdMinor: cents, method: coin, label: null, email: null };
  const asked = await createTransaction(world.ctx, order);
  const id = asked.transactionId;
  const { rows } = await world.db.query<{ script: Buffer }>({
    text: 'select script from transactions where id = $1',
    values: [id],
  });
  const script = rows[0]?.script as Buffer;
  const price = world.prices.get(coin) as bigint;
  return model.ask({ id, coin, script, merchant, cents, price, amountDue: asked.amountDue, createdAt: world.now() });
}

/** What a verb answered; null when it was refused. */
async function orRefused<T>(verb: Promise<T>): Promise<T | null> {
  try {
    return await verb;
  } catch (error) {
    if (error instanceof Refusal) return null;
    throw error;
  }
}

export async function look(counter: Counter, coin: Coin): Promise<void> {
  const { world, model } = counter;
  for (let pass = 0; pass < 60; pass++) {
    const atMs = world.now();
    const result = await world.pass(coin);
    const done = result?.caughtUp === true;
    model.looked(coin, { caughtUp: done, atMs });
    if (done || (result !== null && result.state !== 'ready')) return;
    // a node that has fallen behind what we have read shows nothing new
    if (result !== null && !result.more && result.blocksRead === 0 && pass > 2) return;
  }
  world.troubles.push(`the watcher of ${coin} does not catch up`);
}

export async function judge(counter: Counter): Promise<void> {
  await counter.world.judge();
  await counter.afterJudge();
}

/** The watchers read every chain, the judge decides. */
export async function lookAtAll(counter: Counter): Promise<void> {
  await counter.world.pollRates();
  await Promise.all(COINS.map((coin) => look(counter, coin)));
  await judge(counter);
  await counter.afterLook();
}

const lookHere: Move = async (counter) => {
  await look(counter, counter.coin);
  await judge(counter);
  return true;
};
const lookOnly: Move = async (counter) => {
  await look(counter, counter.coin);
  return true;
};

const bothWorkers: Move = async (counter) => {
  const { world, model, coin } = counter;
  const atMs = world.now();
  const result = await world.passBoth(coin);
  model.looked(coin, { caughtUp: result?.caughtUp === true, atMs });
  await world.judgeBoth();
  await judge(counter);
  return true;
};

/** The worker dies before, inside or after one of its next database transactions. */
const dying: Move = async (counter) => {
  const { world, model, chance, coin, note } = counter;
  const how = chance.one(['before', 'inside', 'after'] as const);
  const at = chance.whole(1, 5);
  note(`${how} ${at}`);
  world.killAt(at, how);
  const atMs = world.now();
  const result = await world.pass(coin);
  model.looked(coin, { caughtUp: result?.caughtUp === true, atMs });
  await world.judge();
  world.spare();
  await counter.afterJudge();
  return true;
};
const restart: Move = async ({ world, chance }) => {
  await world.restart(chance.whole(0, 1));
  return true;
};

const newPrice: Move = async ({ world, model, chance, coin, note }) => {
  const old = world.prices.get(coin) as bigint;
  const price = (old * BigInt(chance.whole(70, 140))) / 100n;
  world.prices.set(coin, price < 10n ? 10n : price);
  note(`${price}`);
  model.priced();
  world.wait(SECOND);
  await world.pollRates();
  return true;
};

const pause =
  (from: number, until: number): Move =>
  async (counter) => {
    const { world, chance, note } = counter;
    const ms = chance.whole(from, until);
    note(`${Math.round(ms / SECOND)} s`);
    world.wait(ms);
    if (chance.percent(85)) await lookAtAll(counter);
    else await world.pollRates();
    return true;
  };

/** What lay in the last blocks is nowhere for longer than a booked payment may be; mostly it comes back. */
const goneForAWhile: Move = async (counter) => {
  const { world, model, chance, coin } = counter;
  if (!CHAIN_MOVES.reorg(counter)) return false;
  const waiting = model.on(coin, 'pool');
  for (const one of waiting) world.node(coin).deny(one.tx, true);
  model.moved(coin);
  await lookAtAll(counter);
  await pause(11 * MINUTE, 25 * MINUTE)(counter);
  if (chance.percent(75)) for (const one of model.on(coin, 'hidden')) world.node(coin).deny(one.tx, false);
  model.moved(coin);
  if (chance.percent(50)) CHAIN_MOVES.mine(counter);
  return true;
};

const word =
  (say: (world: SimulatedService, purchase: Purchase) => Promise<unknown>, heard: keyof Purchase['words']): Move =>
  async (counter) => {
    const { world, model, chance, coin, note } = counter;
    const own = model.purchases.filter((one) => one.coin === coin);
    if (own.length === 0) return false;
    const purchase = chance.one(own);
    const answer = await orRefused(say(world, purchase));
    await counter.afterJudge();
    note(`${purchase.id.slice(-6)}${answer === null ? ' refused' : ''}`);
    if (answer !== null) purchase.words[heard] = true;
    return answer !== null;
  };
const resolve = (action: 'accept' | 'decline', part: 'excess' | null) => (world: SimulatedService, purchase: Purchase) =>
  resolveTransaction(world.ctx, { merchantId: null, transactionId: purchase.id, action, part, destination: null });

const spend: Move = async ({ world, chance, coin, merchants, note }) => {
  const merchant = chance.one(merchants);
  const amount = await putAside(world, { merchant, coin, percent: chance.whole(30, 100), nonce: chance.whole(0, 1e9) });
  note(`${amount} of merchant ${merchant.id}`);
  return amount > 0n;
};

/** The merchant puts some of the balance aside for a payout: a loss finds less than it looks for. */
export function putAside(
  world: SimulatedService,
  what: { readonly merchant: Merchant; readonly coin: Coin; readonly percent: number; readonly nonce: number },
): Promise<bigint> {
  const { merchant, coin, percent, nonce } = what;
  const code = `merchant:${merchant.id}:available:${coin}`;
  return world.db.transaction(async (sql) => {
    const { rows } = await sql.query<{ amount: string }>({
      text: 'select amount from ledger.lock_balances($1)',
      values: [[code]],
    });
    const amount = (BigInt(rows[0]?.amount ?? 0) * BigInt(percent)) / 100n;
    if (amount === 0n) return amount;
    const postings = [
      { account: code, amount },
      { account: `merchant:${merchant.id}:held:${coin}`, amount: -amount },
    ];
    const key = `sim:${merchant.id}:${coin}:${world.now()}:${nonce}`;
    const entry = { key, kind: 'payout_held', postings, parts: [] };
    await postEntries(sql, [{ entry, transactionId: null, atMs: world.now() }]);
    return amount;
  });
}

export const SERVICE_MOVES = {
  create,
  lookHere,
  lookOnly,
  bothWorkers,
  dying,
  restart,
  newPrice,
  goneForAWhile,
  seconds: pause(5 * SECOND, 90 * SECOND),
  minutes: pause(2 * MINUTE, 18 * MINUTE),
  hours: pause(HOUR, 30 * HOUR),
  days: pause(72 * HOUR + MINUTE, 80 * HOUR),
  cancel: word(
    (world, purchase) => cancelTransaction(world.ctx, { merchantId: purchase.merchant.id, transactionId: purchase.id }),
    'cancelled',
  ),
  accept: word(resolve('accept', null), 'accepted'),
  acceptExcess: word(resolve('accept', 'excess'), 'acceptedExcess'),
  decline: word(resolve('decline', null), 'declined'),
  spend,
} satisfies Record<string, Move>;
