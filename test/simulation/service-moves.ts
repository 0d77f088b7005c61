// What can happen at the service in the simulation: purchases, the merchant's decisions, passes of the watchers (also of two workers at
// once, and of one that dies in the middle), prices and time. `false` means that the move was not possible.

import { Refusal } from '../../src/core/refusal.ts';
import { cancelTransaction, createTransaction, resolveTransaction } from '../../src/flow/transactions/create-cancel-resolve.ts';
import { postEntries } from '../../src/store/ledger/ledger.ts';
import { CODES, type Code, HOUR, MINUTE, SECOND } from './behaviour.ts';
import { CHAIN_MOVES } from './chain-moves.ts';
import type { Model, Purchase } from './model.ts';
import type { Random } from './random.ts';
import type { Merchant, SimulatedService } from './simulated-service.ts';

export type ServiceMoveContext = {
  readonly service: SimulatedService;
  readonly model: Model;
  readonly random: Random;
  readonly currency: Code;
  readonly merchants: readonly Merchant[];
  readonly note: (text: string) => void;
  /** After every verdict: what was booked is looked at. */
  readonly afterJudge: () => Promise<void>;
  /** After all chains were read and judged. */
  readonly afterLook: () => Promise<void>;
};
type Move = (context: ServiceMoveContext) => Promise<boolean>;

const MOST_PURCHASES = 6;
const CENTS = [
  [3_00, 99_99],
  [100_00, 999_99],
  [1_000_00, 9_999_99],
  [10_000_00, 60_000_00],
] as const;

const create: Move = async ({ service, model, random, currency, merchants, note }) => {
  if (model.purchases.filter((one) => one.currency === currency).length >= MOST_PURCHASES) return false;
  const step = Number(random.weighted({ 0: 45, 1: 28, 2: 17, 3: 10 }));
  const [from, until] = CENTS[step] as (typeof CENTS)[number];
  const merchant = random.one(merchants);
  const cents = BigInt(random.whole(from, until));
  const purchase = await orRefused(buy({ service, model }, { currency, merchant, cents }));
  if (purchase === null) return false;
  note(`${purchase.id.slice(-6)} ${cents} cents, ${purchase.amountDue}, ${merchant.policy} ${merchant.toleranceBps}`);
  return true;
};

/** A purchase through the product, and what the model must know of it. */
export async function buy(
  { service, model }: { readonly service: SimulatedService; readonly model: Model },
  what: { readonly currency: Code; readonly merchant: Merchant; readonly cents: bigint },
): Promise<Purchase> {
  const { currency, merchant, cents } = what;
  const order = { merchantId: merchant.id, usdMinor: cents, method: currency, label: null, email: null };
  const asked = await createTransaction(service.ctx, order);
  const id = asked.transactionId;
  const { rows } = await service.db.query<{ script: Buffer }>({
    text: 'select script from transactions where id = $1',
    values: [id],
  });
  const script = rows[0]?.script as Buffer;
  const price = service.prices.get(currency) as bigint;
  return model.ask({ id, currency, script, merchant, cents, price, amountDue: asked.amountDue, createdAt: service.now() });
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

export async function look(context: ServiceMoveContext, currency: Code): Promise<void> {
  const { service, model } = context;
  for (let pass = 0; pass < 60; pass++) {
    const atMs = service.now();
    const result = await service.pass(currency);
    const done = result?.caughtUp === true;
    model.looked(currency, { caughtUp: done, atMs });
    if (done || (result !== null && result.state !== 'ready')) return;
    // a node that has fallen behind what we have read shows nothing new
    if (result !== null && !result.more && result.blocksRead === 0 && pass > 2) return;
  }
  service.troubles.push(`the watcher of ${currency} does not catch up`);
}

export async function judge(context: ServiceMoveContext): Promise<void> {
  await context.service.judge();
  await context.afterJudge();
}

/** The watchers read every chain, the judge decides. */
export async function lookAtAll(context: ServiceMoveContext): Promise<void> {
  await context.service.pollRates();
  await Promise.all(CODES.map((currency) => look(context, currency)));
  await judge(context);
  await context.afterLook();
}

const lookHere: Move = async (context) => {
  await look(context, context.currency);
  await judge(context);
  return true;
};
const lookOnly: Move = async (context) => {
  await look(context, context.currency);
  return true;
};

const bothWorkers: Move = async (context) => {
  const { service, model, currency } = context;
  const atMs = service.now();
  const result = await service.passBoth(currency);
  model.looked(currency, { caughtUp: result?.caughtUp === true, atMs });
  await service.judgeBoth();
  await judge(context);
  return true;
};

/** The worker dies before, inside or after one of its next database transactions. */
const dying: Move = async (context) => {
  const { service, model, random, currency, note } = context;
  const how = random.one(['before', 'inside', 'after'] as const);
  const at = random.whole(1, 5);
  note(`${how} ${at}`);
  service.killAt(at, how);
  const atMs = service.now();
  const result = await service.pass(currency);
  model.looked(currency, { caughtUp: result?.caughtUp === true, atMs });
  await service.judge();
  service.spare();
  await context.afterJudge();
  return true;
};
const restart: Move = async ({ service, random }) => {
  await service.restart(random.whole(0, 1));
  return true;
};

const newPrice: Move = async ({ service, model, random, currency, note }) => {
  const old = service.prices.get(currency) as bigint;
  const price = (old * BigInt(random.whole(70, 140))) / 100n;
  service.prices.set(currency, price < 10n ? 10n : price);
  note(`${price}`);
  model.priced();
  service.wait(SECOND);
  await service.pollRates();
  return true;
};

const pause =
  (from: number, until: number): Move =>
  async (context) => {
    const { service, random, note } = context;
    const ms = random.whole(from, until);
    note(`${Math.round(ms / SECOND)} s`);
    service.wait(ms);
    if (random.percent(85)) await lookAtAll(context);
    else await service.pollRates();
    return true;
  };

/** What lay in the last blocks is nowhere for longer than a booked payment may be; mostly it comes back. */
const goneForAWhile: Move = async (context) => {
  const { service, model, random, currency } = context;
  if (!CHAIN_MOVES.reorg(context)) return false;
  const waiting = model.on(currency, 'pool');
  for (const one of waiting) service.node(currency).deny(one.tx, true);
  model.moved(currency);
  await lookAtAll(context);
  await pause(11 * MINUTE, 25 * MINUTE)(context);
  if (random.percent(75)) for (const one of model.on(currency, 'hidden')) service.node(currency).deny(one.tx, false);
  model.moved(currency);
  if (random.percent(50)) CHAIN_MOVES.mine(context);
  return true;
};

const word =
  (say: (service: SimulatedService, purchase: Purchase) => Promise<unknown>, heard: keyof Purchase['words']): Move =>
  async (context) => {
    const { service, model, random, currency, note } = context;
    const own = model.purchases.filter((one) => one.currency === currency);
    if (own.length === 0) return false;
    const purchase = random.one(own);
    const answer = await orRefused(say(service, purchase));
    await context.afterJudge();
    note(`${purchase.id.slice(-6)}${answer === null ? ' refused' : ''}`);
    if (answer !== null) purchase.words[heard] = true;
    return answer !== null;
  };
const resolve = (action: 'accept' | 'decline', part: 'excess' | null) => (service: SimulatedService, purchase: Purchase) =>
  resolveTransaction(service.ctx, { merchantId: null, transactionId: purchase.id, action, part });

const spend: Move = async ({ service, random, currency, merchants, note }) => {
  const merchant = random.one(merchants);
  const amount = await putAside(service, { merchant, currency, percent: random.whole(30, 100), nonce: random.whole(0, 1e9) });
  note(`${amount} of merchant ${merchant.id}`);
  return amount > 0n;
};

/** The merchant puts some of the balance aside for a payout: a loss finds less than it looks for. */
export function putAside(
  service: SimulatedService,
  what: { readonly merchant: Merchant; readonly currency: Code; readonly percent: number; readonly nonce: number },
): Promise<bigint> {
  const { merchant, currency, percent, nonce } = what;
  const code = `merchant:${merchant.id}:available:${currency}`;
  return service.db.transaction(async (sql) => {
    const { rows } = await sql.query<{ amount: string }>({
      text: 'select amount from ledger.lock_balances($1)',
      values: [[code]],
    });
    const amount = (BigInt(rows[0]?.amount ?? 0) * BigInt(percent)) / 100n;
    if (amount === 0n) return amount;
    const postings = [
      { account: code, amount },
      { account: `merchant:${merchant.id}:held:${currency}`, amount: -amount },
    ];
    const key = `sim:${merchant.id}:${currency}:${service.now()}:${nonce}`;
    const entry = { key, kind: 'payout_held', postings, parts: [] };
    await postEntries(sql, [{ entry, transactionId: null, atMs: service.now() }]);
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
    (service, purchase) => cancelTransaction(service.ctx, { merchantId: purchase.merchant.id, transactionId: purchase.id }),
    'cancelled',
  ),
  accept: word(resolve('accept', null), 'accepted'),
  acceptExcess: word(resolve('accept', 'excess'), 'acceptedExcess'),
  decline: word(resolve('decline', null), 'declined'),
  spend,
} satisfies Record<string, Move>;
