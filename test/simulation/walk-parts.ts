// What the random lives of orders have in common, whatever they are paid in: what is paid, how time passes, how a merchant says something, and what is
// told of a life that went wrong.

import { Refusal } from '../../src/core/refusal.ts';
import type { Context } from '../../src/flow/context.ts';
import { cancelTransaction, resolveTransaction } from '../../src/flow/transactions/create-cancel-resolve.ts';
import { DAY, HOUR, MINUTE, SECOND } from './behaviour.ts';
import { type Order, toleranceOf } from './orders.ts';
import type { Random } from './random.ts';
import { recorded } from './recorded.ts';
import type { Word } from './rules.ts';
import type { SimulatedService } from './simulated-service.ts';

type Life = { readonly random: Random; readonly order: Order };

/** About what is missing of the price, at the edges of the tolerance too; a part, more, or as little as a chain carries. */
export function amountFor({ random, order }: Life, dust: bigint): bigint {
  const { terms } = order;
  const { due } = terms;
  const tolerance = toleranceOf(terms);
  const paid = order.arrived
    .filter((one) => one.currency === terms.currency && (one.place === 'pool' || one.place === 'chain'))
    .reduce((sum, one) => sum + one.amount, 0n);
  const rest = due > paid ? due - paid : due;
  const edge = BigInt(random.whole(-1, 1));
  const amount = {
    rest,
    least: rest - tolerance + edge,
    most: rest + tolerance + edge,
    part: (due * BigInt(random.whole(200, 900))) / 1000n,
    over: (due * BigInt(random.whole(1020, 1500))) / 1000n,
    dust,
  }[random.weighted({ rest: 40, least: 15, most: 10, part: 20, over: 10, dust: 5 })];
  return amount < dust ? dust : amount;
}

/** Moments around which something changes. */
function limits({ terms: { createdAt, windowEnd }, arrived, succeededAt }: Order): number[] {
  const gone = arrived.flatMap((one) => (one.goneSince === null ? [] : [one.goneSince + 10 * MINUTE, one.goneSince + 72 * HOUR]));
  const settling = succeededAt > 0 ? [succeededAt + DAY] : [];
  return [windowEnd, windowEnd + MINUTE, windowEnd + 2 * HOUR, createdAt + DAY, windowEnd + DAY, ...gone, ...settling];
}

/** Time goes to a limit of the rules, a second before or after it, or simply on. */
export function passTime({ random, order, service }: Life & { readonly service: Pick<SimulatedService, 'now' | 'wait'> }): void {
  const now = service.now();
  const coming = limits(order)
    .map((at) => at + random.one([-SECOND, SECOND]))
    .filter((at) => at > now);
  const next = random.percent(70) ? Math.min(...coming) : coming.length > 0 ? random.one(coming) : Number.POSITIVE_INFINITY;
  const kind = random.weighted({ little: 60, limit: 30, hour: 4, days: 2 });
  const ms =
    kind === 'limit' && Number.isFinite(next)
      ? next - now
      : {
          little: random.whole(1, 100) * SECOND,
          limit: MINUTE,
          hour: random.whole(1, 90) * MINUTE,
          days: random.one([25 * HOUR, 4 * DAY]),
        }[kind];
  service.wait(ms);
}

/**
 * The merchant, or the operator, says something to the service; what it does must be what the rules allow.
 * @returns what the service has done, as a word
 */
export async function sayAs(
  ctx: Context,
  { id, merchantId }: { readonly id: string; readonly merchantId: bigint },
  { word, allowed, wrong }: { readonly word: Word; readonly allowed: boolean; readonly wrong: string[] },
): Promise<string> {
  const action = word === 'decline' ? 'decline' : 'accept';
  const part = word === 'acceptExcess' ? 'excess' : null;
  const call =
    word === 'cancel'
      ? cancelTransaction(ctx, { merchantId, transactionId: id })
      : resolveTransaction(ctx, { merchantId: null, transactionId: id, action, part });
  const done = await call.then(
    () => true,
    (error: unknown) => {
      if (error instanceof Refusal) return false;
      throw error;
    },
  );
  const [is, must] = [done, allowed].map((one) => (one ? 'done' : 'refused')) as [string, string];
  if (is !== must) wrong.push(`${word} is ${is}, by the rules ${must}`);
  return is;
}

/** What the rules and the service have of an order that went wrong. */
export async function accountOf(service: Pick<SimulatedService, 'db'>, id: string, order: Order): Promise<string[]> {
  const text = (one: object): string => JSON.stringify(one, (_, value) => (typeof value === 'bigint' ? String(value) : value));
  return [
    '',
    `by the rules ${order.path.join(' > ')} ${order.cause ?? ''}`,
    ...order.arrived.map((one) => text({ ...one, replaces: one.replaces.map(({ name }) => name) })),
    '',
    ...(await recorded(service, id)),
  ];
}
