// The walk's own truth about one merchant: what its customers sent, what it asked for, and what must follow from that by behaviour §3 and §5.
// It takes from the service only the ids, what a fee was and how a payout ended; what arrived it reads from the outside world.
import { achFee, balanceOf, bought, type Chosen, CURRENCIES, type Currency, type Method, tolerance } from './behaviour.ts';

export type Purchase = {
  readonly id: string;
  readonly chosen: Chosen;
  readonly address: string;
  readonly due: bigint;
  readonly usdCents: bigint;
  /** Base units that lie at its address in the outside world, or that its invoice has received. */
  arrived: bigint;
  /** It was paid, and the service has not been asked since whether it has seen that. */
  isUnseen: boolean;
  /** Paid by another merchant's payout, by an entry. */
  internal: boolean;
  accepted: boolean;
  acceptedExcess: boolean;
  reimbursement: { readonly part: 'whole' | 'excess'; readonly destination: string; isBack: boolean } | null;
};

export type Ending = { readonly status: string; readonly error: string | null; readonly fee: bigint | null };
export type Payout = {
  id: string | null;
  /** What was asked, to be asked again. */
  body: object;
  readonly method: Method;
  /** In the method's unit; null = `all`, until it is answered. */
  amount: bigint | null;
  readonly destination: string;
  /** The outside world's own name for the place, where that differs. */
  readonly hash: string | null;
  readonly source: Currency;
  /** It must not arrive: why it may be failed. */
  readonly mayFail: Set<string>;
  /** To this transaction of another merchant. */
  readonly internalTo: Purchase | null;
  ending: Ending | null;
  /** A person has decided it. */
  isResolved?: boolean;
};

export type ModelCopy = {
  knows(purchase: Purchase): boolean;
  /**
   * Puts the model back to it: what customers have bought since is lost, and of what was asked for since remains what is asked for again.
   * @returns what had been given back to customers since, and payouts that nobody asks for again
   */
  putBack(isAskedAgain: (one: Payout) => boolean): {
    readonly givenBack: readonly {
      readonly purchase: Purchase;
      readonly part: 'whole' | 'excess';
      readonly destination: string;
    }[];
    readonly forgotten: readonly Payout[];
  };
};

export type Prices = Readonly<Record<Currency, string>>;

/** Why a bank has sent a payout back. */
const RETURNED = /^R\d\d$/;

export function newModel() {
  const purchases: Purchase[] = [];
  let payouts: Payout[] = [];
  const before = new Map<Currency, bigint>(CURRENCIES.map((currency) => [currency, 0n]));

  /** Less arrived than was asked for, and nobody has taken it as it is. */
  const isTooLittle = ({ due, usdCents, arrived, accepted }: Purchase): boolean =>
    !accepted && arrived < due - tolerance(due, usdCents);
  /** What lies in suspense until somebody decides. */
  function suspended(one: Purchase): bigint {
    if (isTooLittle(one)) return one.arrived;
    return one.accepted || one.arrived <= one.due + tolerance(one.due, one.usdCents) ? 0n : one.arrived - one.due;
  }
  /** What a purchase has given its merchant, by what arrived in time. */
  function credited(one: Purchase): bigint {
    if (one.reimbursement?.part === 'whole') return 0n;
    return one.arrived - (one.acceptedExcess ? 0n : suspended(one));
  }
  /** What a payout has taken, in the currency of its source. */
  function taken(one: Payout, prices: Prices): bigint {
    const { ending, amount } = one;
    if (ending === null || amount === null) return 0n;
    if (one.method === 'ach') {
      const debit = bought(amount, one.source, prices[one.source], 'up');
      if (ending.status === 'completed') return debit;
      // what the bank has sent back buys at the price of then, rounded down
      return RETURNED.test(ending.error ?? '') ? debit - bought(amount, one.source, prices[one.source], 'down') : 0n;
    }
    return ending.status === 'completed' ? amount + (ending.fee ?? 0n) : 0n;
  }

  return {
    purchases,
    suspended,
    isTooLittle,
    /** Ids of rounds that are over. */
    earlier: new Set<string>(),
    /** Base units that have left by themselves in this round, fees included. */
    automatic: 0n,
    get payouts(): readonly Payout[] {
      return payouts;
    },
    add: (one: Payout): void => void payouts.push(one),
    /** It was refused: it must not exist. */
    drop(one: Payout): void {
      payouts = payouts.filter((other) => other !== one);
    },
    /** What must be available in each currency when nothing is on its way any more, in base units. */
    available(prices: Prices): Record<Currency, bigint> {
      const all = new Map(before);
      const add = (currency: Currency, amount: bigint) => all.set(currency, (all.get(currency) as bigint) + amount);
      for (const one of purchases) add(balanceOf(one.chosen), credited(one));
      for (const one of payouts) add(one.source, -taken(one, prices));
      add('BTC', -this.automatic);
      return Object.fromEntries(all) as Record<Currency, bigint>;
    },
    /** What the payee of a payout must have, in one payment; null = nothing. */
    arrival({ method, ending, amount, internalTo }: Payout): bigint | null {
      if (ending?.status !== 'completed' || amount === null || internalTo !== null) return null;
      return method === 'ach' ? amount - achFee(amount) : amount;
    },
    /** What a database that is copied now knows: it has seen all that was paid. */
    copy(): ModelCopy {
      const bought = new Map(purchases.map((one) => [one, { ...one }]));
      const asked = payouts.map((one) => ({ ...one, mayFail: new Set(one.mayFail) }));
      return {
        knows: (purchase) => bought.has(purchase),
        putBack(isAskedAgain) {
          const givenBack = purchases
            .filter((one) => bought.has(one) && one.reimbursement !== bought.get(one)?.reimbursement)
            .map((purchase) => ({ purchase, ...(purchase.reimbursement as NonNullable<Purchase['reimbursement']>) }));
          purchases.length = 0;
          for (const [one, { accepted, acceptedExcess, reimbursement }] of bought)
            purchases.push(Object.assign(one, { accepted, acceptedExcess, reimbursement }));
          const known = new Set(asked.map(({ body }) => body));
          const since = payouts.filter(({ body }) => !known.has(body));
          const again = since.filter(isAskedAgain);
          // what the bank has sent back since it says again
          const sentBack = new Map(payouts.map(({ body, mayFail }) => [body, [...mayFail].filter((why) => RETURNED.test(why))]));
          payouts = [
            ...asked.map((one) => ({ ...one, mayFail: new Set([...one.mayFail, ...(sentBack.get(one.body) ?? [])]) })),
            ...again.map((one) => ({ ...one, id: null, ending: null })),
          ];
          return { givenBack, forgotten: since.filter((one) => !again.includes(one)) };
        },
      };
    },
    /** The round is over and was right: the next one begins with these balances. */
    close(prices: Prices): void {
      for (const [currency, amount] of Object.entries(this.available(prices)) as [Currency, bigint][])
        before.set(currency, amount);
      for (const { id } of payouts) if (id !== null) this.earlier.add(id);
      purchases.length = 0;
      payouts = [];
      this.automatic = 0n;
    },
  };
}
export type Model = ReturnType<typeof newModel>;
