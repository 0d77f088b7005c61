// A random life of one order in the running service, step by step beside the rules of rules.ts: after every step status, credit, suspense,
// `crypto_received` and `confirmations` must be those that the words of behaviour §3 give. Times are drawn a second before, at and after
// each limit of the rules. One merchant for each order, so that nothing else moves the balance.

import { createTransaction } from '../../src/flow/transactions/create-cancel-resolve.ts';
import { sealed, type Transaction } from '../../src/sandbox/utxo/transaction.ts';
import { type ChainCode, type Code, HOUR, MINUTE, SECOND, WINDOW } from './behaviour.ts';
import { type Arrived, newOrder, type Order, type View } from './orders.ts';
import type { Random } from './random.ts';
import { differences, redAnswers } from './rule-comparison.ts';
import { judge, say, type Word } from './rules.ts';
import type { SimulatedService } from './simulated-service.ts';
import { sayAs } from './walk-parts.ts';

/** A payment as it was sent: one transaction, its outputs to the order, and what it replaces. */
type Sent = {
  tx: Transaction;
  readonly currency: Code;
  readonly amounts: readonly bigint[];
  readonly coinbase: boolean;
  sentAt: number;
  readonly replaces: Sent | null;
  arrived: Arrived[] | null;
};

export type Walk = Awaited<ReturnType<typeof openWalk>>;

export async function openWalk(service: SimulatedService, random: Random, currencies: readonly [own: Code, other: Code]) {
  const [currency, other] = currencies;
  const log: string[] = [];
  const wrong: string[] = [];
  const sent: Sent[] = [];
  const prices: { at: number; code: Code; cents: bigint }[] = [];
  const base = new Map(currencies.map((code) => [code, service.node(code).state.active.length]));
  let readUntil = 0;
  const policy = random.one(['accept', 'accept', 'review'] as const);
  const merchant = await service.addMerchant(policy, random.one([0, 100, 100, 100, 500]));
  const state = (code: ChainCode) => service.node(code as Code).state;

  async function price(code: Code, cents: bigint): Promise<void> {
    service.prices.set(code, cents);
    prices.push({ at: service.now(), code, cents });
    await service.pollRates();
  }
  for (const code of currencies) await price(code, service.prices.get(code) as bigint);
  await read();

  const cents = BigInt(
    random.one(
      [
        [3_00, 99_99],
        [3_00, 99_99],
        [100_00, 999_99],
        [1_000_00, 9_999_99],
        [10_000_00, 60_000_00],
      ].map(([a, b]) => random.whole(a as number, b as number)),
    ),
  );
  const quoted = service.prices.get(currency) as bigint;
  const asked = await createTransaction(service.ctx, {
    merchantId: merchant.id,
    usdMinor: cents,
    method: currency,
    label: null,
    email: null,
  });
  const id = asked.transactionId;
  const { rows } = await service.db.query<{ script: Buffer }>({
    text: 'select script from transactions where id = $1',
    values: [id],
  });
  const script = (rows[0] as { script: Buffer }).script;
  const createdAt = service.now();
  const order: Order = newOrder({
    ...{ currency, cents, price: quoted, due: asked.amountDue, toleranceBps: BigInt(merchant.toleranceBps), policy },
    ...{ createdAt, windowEnd: createdAt + WINDOW },
  });
  const view = (): View => ({
    now: service.now(),
    readUntil,
    tip: (code) => state(code).active.length - 1,
    dateOf: (code, height) => (state(code).active[height]?.time ?? 0) * SECOND,
    priceAt: (code, at) => priceAt(code, at),
  });
  const priceAt = (code: ChainCode, at: number): bigint =>
    (prices.findLast((one) => one.code === code && one.at <= at) ?? prices.find((one) => one.code === code))?.cents as bigint;
  log.push(
    `${id} ${currency} ${cents} cents, due ${asked.amountDue}, ${policy} ${merchant.toleranceBps}, made ${new Date(createdAt).toISOString()}`,
  );

  const placeOf = (one: Sent): Pick<Arrived, 'place' | 'height' | 'instant' | 'chainLock'> => {
    const known = state(one.currency).alive.get(one.tx.txid);
    const height = known?.block?.height ?? null;
    const hidden = known !== undefined && height === null && state(one.currency).denied.has(one.tx.txid);
    const place = known === undefined ? 'dead' : hidden ? 'gone' : height === null ? 'pool' : 'chain';
    const isThere = place === 'pool' || place === 'chain';
    return {
      place,
      height,
      instant: isThere && state(one.currency).locked.has(one.tx.txid),
      chainLock: height !== null && height <= state(one.currency).chainLock,
    };
  };

  const isDown = (): boolean => state(currency).trouble.down;
  /** The watchers read both chains; false when the order's node is down. */
  async function read(): Promise<boolean> {
    let own = false;
    for (const code of currencies) {
      for (let pass = 0; pass < 60; pass++) {
        const result = await service.pass(code);
        if (result?.caughtUp === true) {
          if (code === currency) own = true;
          break;
        }
        if (result !== null && result.state !== 'ready') break;
      }
    }
    return own;
  }

  /** The order's node could not be asked since it was last read. */
  let wasAway = false;
  /** What our node shows now is what the rules know. */
  function note(): void {
    const before = readUntil;
    const now = service.now();
    // only while our node can be asked somebody is gone for longer
    if (wasAway) for (const one of order.arrived) if (one.goneSince !== null) one.goneSince += now - before;
    wasAway = false;
    for (const one of sent) {
      const there = placeOf(one);
      if (one.arrived === null) {
        if (there.place !== 'pool' && there.place !== 'chain') continue;
        one.arrived = arrival(one, before, now);
        order.arrived.push(...one.arrived);
      }
      for (const part of one.arrived) {
        const goneSince = there.place === 'gone' ? (part.goneSince ?? now) : null;
        Object.assign(part, there, { goneSince });
      }
    }
    readUntil = now;
  }
  function arrival(one: Sent, readBefore: number, now: number): Arrived[] {
    const { windowEnd } = order.terms;
    const block = state(one.currency).alive.get(one.tx.txid)?.block ?? null;
    const entered = block === null ? Math.floor(one.sentAt / SECOND) * SECOND : now;
    const evidence = block === null ? entered : block.time * SECOND;
    const isOnTime =
      !order.cancelled &&
      (entered <= windowEnd + MINUTE || (readBefore < windowEnd + MINUTE && evidence <= windowEnd + 2 * HOUR));
    const inherited = one.replaces?.arrived?.reduce((sum, part) => sum + part.onTime, 0n) ?? 0n;
    let left = isOnTime ? one.amounts.reduce((a, b) => a + b, 0n) : order.cancelled ? 0n : inherited;
    return one.amounts.map((amount, vout) => {
      const onTime = left < amount ? left : amount;
      left -= onTime;
      return {
        ...{ name: `${one.tx.txid.slice(0, 6)}:${vout}`, currency: one.currency, amount, coinbase: one.coinbase, onTime },
        ...{
          arrivedPrice: priceAt(one.currency, Math.min(entered, evidence)),
          place: 'pool',
          height: null,
          instant: false,
          chainLock: false,
        },
        ...{
          firstSeen: Math.min(entered, now),
          goneSince: null,
          booked: null,
          taken: null,
          took: 0n,
          counts: false,
          isNew: true,
          replaces: vout === 0 ? (one.replaces?.arrived ?? []) : [],
        },
      };
    });
  }

  /** Everybody looks; then the service must be where the rules are. */
  async function look(): Promise<void> {
    await service.pollRates();
    const isRead = await read();
    wrong.push(...(await redAnswers(service, 'between watcher and judge')));
    if (isRead) {
      note();
      judge(order, view());
    } else wasAway = true;
    await service.judge();
    wrong.push(...(await redAnswers(service, 'after the judge')));
    wrong.push(...(await differences(service, { id, merchantId: merchant.id, order, view: view(), isDown: isDown() })));
  }

  const alive = (code: Code, ...places: Arrived['place'][]): Sent[] =>
    sent.filter((one) => one.currency === code && places.includes(placeOf(one).place));
  const minable = (code: Code): Transaction[] => {
    const left = new Set<string>();
    const chosen: Transaction[] = [];
    for (const { transaction } of state(code).mempool.values()) {
      if (state(code).denied.has(transaction.txid) || transaction.inputs.some((input) => left.has(input.txid)))
        left.add(transaction.txid);
      else chosen.push(transaction);
    }
    return chosen;
  };

  return {
    ...{ isDown, service, random, order, sent, wrong, log, currency, other, look, price, alive, read, note },
    id,
    merchantId: merchant.id,
    /** The last block with a reimbursement: it stays, so that what becomes of one that is undone is no question here. */
    sentAtHeight: 0,
    terms: order.terms,
    base,
    view,
    send(
      code: Code,
      amounts: readonly bigint[],
      tx: Transaction | null,
      replaces: Sent | null = null,
      coinbase = false,
    ): Sent | null {
      if (tx === null) return null;
      const one = { tx, currency: code, amounts, coinbase, sentAt: service.now(), replaces, arrived: null };
      sent.push(one);
      return one;
    },
    pay(code: Code, amounts: readonly bigint[]): Sent | null {
      return this.send(code, amounts, service.node(code).pay(amounts.map((minor) => ({ minor, script }))));
    },
    replace(old: Sent, amount: bigint): Sent | null {
      const tx = service.node(old.currency).replace(old.tx, [{ minor: amount, script }]);
      if (String(old.amounts) !== String(amount)) return this.send(old.currency, [amount], tx, old);
      // the same inputs and the same output to us: the same payment, whatever it pays others
      old.tx = tx ?? old.tx;
      return tx === null ? null : old;
    },
    malleate(one: Sent): void {
      const twin = sealed({
        version: one.tx.version,
        inputs: one.tx.inputs,
        outputs: one.tx.outputs,
        lockTime: one.tx.lockTime + 1,
      });
      service.node(one.currency).enter(twin, { denied: false });
      one.tx = twin;
    },
    coinbase(code: Code, amount: bigint): void {
      const block = service.node(code).mine(1, { outputs: [{ minor: amount, script }], transactions: [] });
      this.send(code, [amount], block.transactions[0] as Transaction, null, true);
    },
    mine(code: Code, blocks: number): void {
      for (let n = 0; n < blocks; n++) service.node(code).mine(1, { transactions: minable(code) });
    },
    own(code: Code): number {
      const above = state(code).active.length - 1 - this.sentAtHeight;
      return Math.min(state(code).active.length - (base.get(code) ?? 0), code === currency ? above : Number.POSITIVE_INFINITY);
    },
    /** Our clock is set; what waits for a time of the rules waits as long as it would have. */
    setBackMs: 0,
    setClock(byMs: number): void {
      service.setClock(byMs);
      this.setBackMs -= byMs;
      const { terms, arrived } = order;
      terms.createdAt += byMs;
      terms.windowEnd += byMs;
      order.succeededAt += byMs;
      readUntil += byMs;
      for (const one of arrived) {
        one.firstSeen += byMs;
        if (one.goneSince !== null) one.goneSince += byMs;
      }
      for (const one of prices) one.at += byMs;
    },
    async say(word: Word): Promise<void> {
      const allowed = say(order, word, view());
      log.push(`      ${word} ${await sayAs(service.ctx, { id, merchantId: merchant.id }, { word, allowed, wrong })}`);
    },
  };
}
