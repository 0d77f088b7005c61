// A fixed history in the simulated service: one merchant, a purchase or two, and what happens to them move by move; it ends with the same
// checks as a random history.
import { expect } from 'vitest';
import { cancelTransaction, resolveTransaction } from '../../src/flow/transactions/create-cancel-resolve.ts';
import { sealed, type Transaction } from '../../src/sandbox/utxo/transaction.ts';
import { CODES, type Code, HOUR, MINUTE } from './behaviour.ts';
import { type ChainMoveContext, calmDown, markStart, mineBlocks } from './chain-moves.ts';
import { bookedThoughSpent, bookedTooEarly, newChecks, wrongAtRest } from './checks.ts';
import { newModel, type Purchase, type Sent } from './model.ts';
import { randomOf } from './random.ts';
import { buy, lookAtAll, putAside, type ServiceMoveContext } from './service-moves.ts';
import type { SimulatedService } from './simulated-service.ts';

export type FixedHistory = Awaited<ReturnType<typeof openFixedHistory>>;

export async function openFixedHistory(
  service: SimulatedService,
  options: { currency?: Code; policy?: 'accept' | 'review' } = {},
) {
  const currency = options.currency ?? 'BTC';
  const model = newModel(service);
  const checks = await newChecks(service, model);
  const random = randomOf(1);
  const merchant = await service.addMerchant(options.policy ?? 'accept', 100);
  const note = () => undefined;
  const context: ServiceMoveContext = {
    service,
    model,
    random,
    currency,
    merchants: [merchant],
    note,
    afterJudge: () => bookedTooEarly(checks),
    afterLook: () => bookedThoughSpent(checks),
  };
  const chainContext = (of: Code): ChainMoveContext => ({ service, model, random, currency: of, note });
  for (const one of CODES) markStart(service, one);
  await lookAtAll(context);
  const balance = async (code: string): Promise<bigint> => {
    const { rows } = await service.db.query<{ amount: string }>({
      text: 'select amount from ledger.account_balance where code = $1',
      values: [code],
    });
    return BigInt(rows[0]?.amount ?? 0);
  };

  return {
    service,
    model,
    buy: (cents: bigint) => buy(context, { currency, merchant, cents }),
    look: () => lookAtAll(context),
    /** Sends currencies to a purchase; the default is its price in its currency. */
    pay(purchase: Purchase, amounts: readonly bigint[] = [purchase.amountDue], on: Code = currency): Sent {
      const tx = service.node(on).pay(amounts.map((minor) => ({ minor, script: purchase.script }))) as Transaction;
      model.send(
        on,
        tx,
        amounts.map((amount) => ({ purchase, amount })),
      );
      return model.known(tx.txid) as Sent;
    },
    mine(blocks = 1, on: Code = currency, only?: readonly Sent[]): void {
      mineBlocks(chainContext(on), blocks, (tx) => only === undefined || only.some((one) => one.tx === tx));
    },
    reorg(depth: number, drop: boolean): void {
      service.node(currency).reorg(depth, { drop });
      model.moved(currency);
    },
    doubleSpend(one: Sent): void {
      service.node(one.currency).doubleSpend([one.tx]);
      model.moved(one.currency);
    },
    hidden(one: Sent, hidden: boolean): void {
      service.node(one.currency).deny(one.tx, hidden);
      model.moved(one.currency);
    },
    /** The same payment under another id takes its place in the mempool. */
    malleate(one: Sent): void {
      const twin = sealed({ ...one.tx, lockTime: one.tx.lockTime + 1 });
      service.node(one.currency).enter(twin, { denied: false });
      model.rename(one, twin);
    },
    /** A fee replacement that pays another amount. */
    replace(old: Sent, amount: bigint): void {
      const purchase = (old.outputs[0] as Sent['outputs'][number]).purchase;
      const tx = service.node(currency).replace(old.tx, [{ minor: amount, script: purchase.script }]) as Transaction;
      model.send(currency, tx, [{ purchase, amount }], { replaces: old });
    },
    async cancel(purchase: Purchase): Promise<void> {
      await cancelTransaction(service.ctx, { merchantId: merchant.id, transactionId: purchase.id });
      purchase.words.cancelled = true;
    },
    down(down: boolean): void {
      service.node(currency).setTrouble({ down, fault: null, left: null });
    },
    price(cents: bigint): void {
      service.prices.set(currency, cents);
      model.priced();
    },
    /** Time passes; then everybody looks. */
    async wait(ms: number): Promise<void> {
      for (let left = ms; left > 0; left -= 30 * HOUR) {
        service.wait(Math.min(left, 30 * HOUR));
        await lookAtAll(context);
      }
    },
    afterWindow: (purchase: Purchase, more = 2 * MINUTE) => purchase.windowEnd + more - service.now(),
    async resolve(purchase: Purchase, action: 'accept' | 'decline', part: 'excess' | null = null): Promise<void> {
      await resolveTransaction(service.ctx, { merchantId: null, transactionId: purchase.id, action, part });
      if (action === 'decline') purchase.words.declined = true;
      else if (part === 'excess') purchase.words.acceptedExcess = true;
      else purchase.words.accepted = true;
    },
    spendAll: () => putAside(service, { merchant, currency, percent: 100, nonce: 0 }),
    available: () => balance(`merchant:${merchant.id}:available:${currency}`),
    receivable: () => balance(`asset:receivable:merchant:${merchant.id}:${currency}`),
    suspense: (purchase: Purchase, of: Code = currency) => balance(`suspense:${purchase.id}:${of}`),
    async path(purchase: Purchase): Promise<string> {
      const { rows } = await service.db.query<{ status: string }>({
        text: `select status from events where object_id = $1 and type = 'transaction.' || status order by sequence`,
        values: [purchase.id],
      });
      return rows.map((row) => row.status).join(' ');
    },
    /** All trouble ends, days pass, and everything is as the chain says. */
    async rest(): Promise<void> {
      for (const one of CODES) calmDown(chainContext(one));
      await lookAtAll(context);
      await this.wait(100 * HOUR);
      await wrongAtRest(checks);
      expect([...checks.wrong, ...service.troubles.splice(0)]).toEqual([]);
    },
  };
}
