// A random life of one order in ether or USDT in the running service, step by step beside the rules of rules.ts, as rule-walk.ts has it for the
// other chains. What is different here: a node does not say since when a transaction waits; what a contract sends is seen once it is in a
// block; a call that fails pays nothing; a transaction of an account is replaced by any other one with its nonce; and final is what the node says.

import type { EvmCode } from '../../src/core/currency.ts';
import { createTransaction } from '../../src/flow/transactions/create-cancel-resolve.ts';
import type { PayKind } from '../../src/sandbox/evm/simulated-evm.ts';
import type { EvmTransaction } from '../../src/sandbox/evm/transaction.ts';
import { type ChainCode, DAY, HOUR, MINUTE, SECOND, WINDOW } from './behaviour.ts';
import type { EvmService } from './evm-service.ts';
import { type Arrived, newOrder, type Order, type View } from './orders.ts';
import type { Random } from './random.ts';
import { differences, redAnswers } from './rule-comparison.ts';
import { judge, say, type Word } from './rules.ts';
import { sayAs } from './walk-parts.ts';

/** A transaction as it was sent: what it pays to the order if it succeeds. */
type Sent = {
  tx: EvmTransaction;
  readonly currency: EvmCode;
  readonly amounts: readonly bigint[];
  /** Nobody can tell whom it pays before it is in a block. */
  inside: boolean;
  readonly replaces: Sent | null;
  arrived: Arrived[] | null;
};
type Call = { readonly currency: EvmCode; readonly amounts: readonly bigint[]; readonly kind?: PayKind };

export type EvmWalk = Awaited<ReturnType<typeof openEvmWalk>>;

export async function openEvmWalk(service: EvmService, random: Random, currency: EvmCode) {
  const { chain } = service;
  const { state } = chain;
  const other: EvmCode = currency === 'ETH' ? 'USDT' : 'ETH';
  const log: string[] = [];
  const wrong: string[] = [];
  const sent: Sent[] = [];
  const prices: { at: number; code: EvmCode; cents: bigint }[] = [];
  const base = state.active.length;
  let readUntil = 0;
  const policy = random.one(['accept', 'accept', 'review'] as const);
  const merchant = await service.addMerchant(policy, random.one([0, 100, 100, 100, 500]));

  async function price(code: EvmCode, cents: bigint): Promise<void> {
    service.prices.set(code, cents);
    prices.push({ at: service.now(), code, cents });
    await service.run('rates');
  }
  for (const code of [currency, other]) await price(code, service.prices.get(code) as bigint);
  await service.read();

  const [least, most] = random.one([
    [3_00, 99_99],
    [3_00, 99_99],
    [100_00, 999_99],
    [1_000_00, 9_999_99],
    [10_000_00, 60_000_00],
  ]) as [number, number];
  const cents = BigInt(random.whole(least, most));
  const asked = await createTransaction(service.ctx, {
    merchantId: merchant.id,
    usdMinor: cents,
    method: currency,
    label: null,
    email: null,
  });
  const id = asked.transactionId;
  const { rows } = await service.db.query<{ address: string }>({
    text: 'select address from transactions where id = $1',
    values: [id],
  });
  const address = (rows[0] as { address: string }).address.toLowerCase();
  const createdAt = service.now();
  const quoted = service.prices.get(currency) as bigint;
  const order: Order = newOrder({
    ...{ currency, cents, price: quoted, due: asked.amountDue, toleranceBps: BigInt(merchant.toleranceBps), policy },
    ...{ createdAt, windowEnd: createdAt + WINDOW },
  });
  const priceAt = (code: ChainCode, at: number): bigint =>
    (prices.findLast((one) => one.code === code && one.at <= at) ?? prices.find((one) => one.code === code))?.cents as bigint;
  const view = (): View => ({
    now: service.now(),
    readUntil,
    tip: service.tip,
    dateOf: (_code, height) => (state.active[height]?.timestamp ?? 0) * SECOND,
    priceAt,
  });
  log.push(
    `${id} ${currency} ${cents} cents, due ${asked.amountDue}, ${policy} ${merchant.toleranceBps}, made ${new Date(createdAt).toISOString()}`,
  );

  const placeOf = ({ tx }: Sent): Pick<Arrived, 'place' | 'height' | 'instant' | 'chainLock'> => {
    const mined = state.places.get(tx.hash);
    const height = mined?.block.number ?? null;
    const isPaid = mined?.block.executed[mined.at]?.succeeded === true;
    const waiting = state.pool.has(tx.hash) ? 'pool' : state.evicted.has(tx.hash) ? 'gone' : 'dead';
    const place = mined === undefined ? waiting : isPaid ? 'chain' : 'dead';
    return { place, height, instant: false, chainLock: height !== null && height <= service.finalized() };
  };

  /** What our node shows now is what the rules know. */
  function note(): void {
    const before = readUntil;
    const now = service.now();
    for (const one of sent) {
      const there = placeOf(one);
      if (one.arrived === null) {
        if (there.place !== 'chain' && (there.place !== 'pool' || one.inside)) continue;
        one.arrived = arrival(one, before, now);
        order.arrived.push(...one.arrived);
      }
      for (const part of one.arrived) {
        // of what a contract is to send our node shows the hash, which is compared for four days
        const isForgotten = one.inside && part.goneSince !== null && now - part.goneSince > 4 * DAY;
        const place = there.place === 'pool' && isForgotten ? 'gone' : there.place;
        const goneSince = place === 'gone' ? (part.goneSince ?? now) : null;
        Object.assign(part, there, { place, goneSince });
      }
    }
    readUntil = now;
  }
  function arrival(one: Sent, readBefore: number, now: number): Arrived[] {
    const { windowEnd } = order.terms;
    const block = state.places.get(one.tx.hash)?.block ?? null;
    // a node does not say since when a transaction waits
    const evidence = block === null ? now : block.timestamp * SECOND;
    const isOnTime =
      !order.cancelled && (now <= windowEnd + MINUTE || (readBefore < windowEnd + MINUTE && evidence <= windowEnd + 2 * HOUR));
    const inherited = one.replaces?.arrived?.reduce((sum, part) => sum + part.onTime, 0n) ?? 0n;
    let left = isOnTime ? one.amounts.reduce((a, b) => a + b, 0n) : order.cancelled ? 0n : inherited;
    return one.amounts.map((amount, at) => {
      const onTime = left < amount ? left : amount;
      left -= onTime;
      return {
        ...{ name: `${one.tx.hash.slice(2, 8)}:${at}`, currency: one.currency, amount, coinbase: false, onTime },
        ...{ arrivedPrice: priceAt(one.currency, Math.min(now, evidence)), place: 'pool', height: null },
        ...{ instant: false, chainLock: false, goneSince: null, booked: null, took: 0n, counts: false, isNew: true },
        ...{ firstSeen: now, taken: null },
        replaces: at === 0 ? (one.replaces?.arrived ?? []) : [],
      };
    });
  }

  const isDown = (): boolean => state.trouble.down;
  /** Everybody looks; then the service must be where the rules are. */
  async function look(): Promise<void> {
    await service.run('rates');
    const isRead = await service.read();
    wrong.push(...(await redAnswers(service, 'between watcher and judge')));
    if (isRead) {
      note();
      judge(order, view());
    }
    await service.judge();
    wrong.push(...(await redAnswers(service, 'after the judge')));
    wrong.push(...(await differences(service, { id, merchantId: merchant.id, order, view: view(), isDown: isDown() })));
  }

  const shares = (amounts: readonly bigint[]) => amounts.map((minor) => ({ to: address, minor }));
  return {
    ...{ id, service, random, order, sent, wrong, log, currency, other, price, look, isDown, terms: order.terms },
    alive: (...places: Arrived['place'][]): Sent[] => sent.filter((one) => places.includes(placeOf(one).place)),
    own: (): number => state.active.length - base,
    /** @param call.kind a payment that fails, or is none, is forgotten at once: by the rules it changes nothing */
    pay({ currency: code, amounts, kind = null }: Call): boolean {
      const tx = chain.pay(code, shares(amounts), kind);
      if (tx === null) return false;
      const paysNothing = kind !== null && kind !== 'internal';
      if (!paysNothing) {
        const inside = kind === 'internal' || amounts.length > 1;
        sent.push({ tx, currency: code, amounts, inside, replaces: null, arrived: null });
      }
      return true;
    },
    replace(old: Sent, amount: bigint): boolean {
      const tx = chain.replace(old.tx, old.currency, shares([amount]));
      if (tx === null) return false;
      // the same nonce, and the same to us: a twin, which is the same payment
      if (old.amounts.length === 1 && old.amounts[0] === amount) {
        Object.assign(old, { tx, inside: false });
        return true;
      }
      sent.push({ tx, currency: old.currency, amounts: [amount], inside: false, replaces: old, arrived: null });
      return true;
    },
    async say(word: Word): Promise<void> {
      const allowed = say(order, word, view());
      log.push(`      ${word} ${await sayAs(service.ctx, { id, merchantId: merchant.id }, { word, allowed, wrong })}`);
    },
  };
}
