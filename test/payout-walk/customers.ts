// The merchants of a walk, and their customers: transactions are made and paid, exactly, too little, too much, in parts or never.
import type { Random } from '../simulation/random.ts';
import { type Chosen, inWords, units } from './behaviour.ts';
import { type Caller, control } from './caller.ts';
import type { Model, Prices, Purchase } from './model.ts';

export type Merchant = {
  readonly name: string;
  readonly caller: Caller;
  readonly model: Model;
  readonly log: string[];
  /** What it takes out beyond a limit waits for a person, who lets nothing through. */
  readonly needsApproval: boolean;
  random: Random;
  /** Where its automatic payouts go; null = it has none. */
  automatic: string | null;
};
export type Scene = { readonly base: () => string; readonly prices: Prices; readonly merchants: readonly Merchant[] };
export type Move = (scene: Scene, merchant: Merchant) => Promise<void>;

let keys = 0;
/** No key and no bank account comes twice, however often a seed is walked. */
export function newKey(): string {
  keys += 1;
  return `walk-${process.pid}-${keys}`;
}

/** Asks for a reimbursement, with a new key. */
export function giveBack(
  { caller }: Merchant,
  { id }: Pick<Purchase, 'id'>,
  { part, destination }: Pick<NonNullable<Purchase['reimbursement']>, 'part' | 'destination'>,
) {
  const body = { transaction_id: id, action: 'reimburse', destination, ...(part === 'excess' ? { part } : {}) };
  return caller.ask('/resolve_transaction', { ...body, idempotency_key: newKey() });
}

/** A transaction; null while its currency's node is away. */
export async function create({ caller, model, log }: Merchant, chosen: Chosen, usd: string): Promise<Purchase | null> {
  const body = { amount: usd, crypto_selected: chosen, idempotency_key: newKey() };
  const { status, json } = await caller.ask('/create_transaction', body);
  if (status !== 200) return null;
  const made: Purchase = {
    id: json.transaction_id as string,
    chosen,
    address: json.wallet_address as string,
    due: units(json.crypto_amount as string, chosen === 'BTC-LN' ? 'BTC' : chosen),
    usdCents: units(usd, 'USD'),
    arrived: 0n,
    isUnseen: false,
    internal: false,
    accepted: false,
    acceptedExcess: false,
    reimbursement: null,
  };
  model.purchases.push(made);
  log.push(`${made.id}: ${usd} USD in ${chosen}`);
  return made;
}

const WAYS = { exact: 60, over: 15, under: 12, twice: 8, never: 5 };
const EARNED: Readonly<Record<Chosen, number>> = {
  BTC: 40,
  'BTC-LN': 20,
  USDT: 25,
  LTC: 4,
  ETH: 4,
  BCH: 2,
  DASH: 2,
  DOGE: 3,
};

async function pay({ base }: Scene, { log }: Merchant, one: Purchase, amounts: readonly bigint[]): Promise<void> {
  const currency = one.chosen === 'BTC-LN' ? 'BTC' : one.chosen;
  for (const amount of amounts) {
    log.push(`${one.id} is paid ${inWords(amount, currency)}`);
    await control(base(), 'pay', { transaction_id: one.id, amount: inWords(amount, currency) });
  }
  if (one.chosen === 'BTC-LN') one.arrived = one.due;
  one.isUnseen = true;
}

/** What was paid is seen before the clock moves: it is on time then, whatever the clock does. */
export async function allIsSeen({ merchants }: Scene): Promise<void> {
  const seen = async ({ caller, model }: Merchant): Promise<void> => {
    for (const one of model.purchases) {
      if (!one.isUnseen) continue;
      const asked = { transaction_id: one.id, status_was: 'started', wait_seconds: 20 };
      for (let looks = 0; one.isUnseen; looks++) {
        one.isUnseen = (await caller.get('/check_transaction', asked)).status === 'started';
        if (looks === 6) throw new Error(`${one.id} was paid, and nobody sees it`);
      }
    }
  };
  await Promise.all(merchants.map(seen));
}

export const earn: Move = async (scene, merchant) => {
  const { random } = merchant;
  const chosen = random.weighted(EARNED);
  const one = await create(merchant, chosen, `${random.whole(chosen === 'BTC-LN' ? 50 : 150, 950)}.${random.whole(10, 99)}`);
  if (one === null) return;
  const way = chosen === 'BTC-LN' ? 'exact' : random.weighted(WAYS);
  const amounts = {
    exact: [one.due],
    over: [one.due + one.due / BigInt(random.whole(2, 5))],
    under: [one.due / 2n],
    twice: [one.due / 3n, one.due - one.due / 3n],
    never: [],
  }[way];
  if (amounts.length > 0) await pay(scene, merchant, one, amounts);
};
