// What one merchant does in a walk, a move at a time: customers pay, money is asked for by every method, cancelled, sent back by the bank,
// given back to customers. Each move waits for its own answer only; what follows from it comes while others go on.
import { bought, type Chosen, inWords, type Method, MINIMUM, UNIT, units } from './behaviour.ts';
import { type Answer, control, type Json, post } from './caller.ts';
import { create, earn, type Merchant, type Move, newKey, type Scene } from './customers.ts';
import type { Payout } from './model.ts';

const done = ({ status }: Answer): boolean => status === 200;
const outside = async ({ base }: Scene, currency: string): Promise<string> =>
  (await control(base(), 'address', { currency })).json.address as string;
const ETHEREUM: readonly Chosen[] = ['ETH', 'USDT'];
const chainOf = (chosen: Chosen): Chosen => (ETHEREUM.includes(chosen) ? 'ETH' : chosen);

/** A share of the balance, not below the method's minimum; null when there is too little. */
async function shareOf({ caller, random }: Merchant, method: Exclude<Method, 'ach'>): Promise<bigint | null> {
  const currency = UNIT[method] as 'BTC' | 'USDT';
  const { balances } = await caller.get('/get_account_info');
  const most = units((balances as Record<string, string>)[currency] as string, currency);
  const least = method === 'lightning' ? 1_000n : MINIMUM[method];
  const amount = (most * BigInt(random.whole(5, 60))) / 100n;
  return amount >= least ? amount : most > least + least / 2n ? least : null;
}

type Asked = Pick<Payout, 'method' | 'amount' | 'destination'> & Partial<Payout>;
async function ask(merchant: Merchant, asked: Asked): Promise<void> {
  const { model, random, log } = merchant;
  const unit = UNIT[asked.method];
  const payout: Payout = {
    id: null,
    body: {},
    hash: null,
    source: unit === 'USD' ? 'BTC' : unit,
    mayFail: new Set(),
    internalTo: null,
    ending: null,
    ...asked,
  };
  const amount = asked.amount === null ? 'all' : inWords(asked.amount, unit);
  const body = {
    method: asked.method,
    amount,
    destination: asked.destination,
    idempotency_key: newKey(),
    ...(unit === 'USD' ? { source_currency: payout.source } : {}),
  };
  payout.body = body;
  model.add(payout);
  // a server that is impatient asks twice at once
  const answers = await Promise.all(Array.from({ length: random.percent(15) ? 2 : 1 }, () => request(merchant, payout)));
  log.push(`${payout.id ?? 'no payout'}: ${JSON.stringify({ ...body, destination: asked.destination.slice(0, 24) })} ${answers}`);
  if (answers.every((answer) => answer === 'refused')) model.drop(payout);
}

/** Asks for a payout, or asks again for the same: `refused` for good, `made`, or `unknown` while a node is away. */
async function request({ caller, log }: Merchant, payout: Payout): Promise<'refused' | 'made' | 'unknown'> {
  const { status, json } = await caller.ask('/request_payout', payout.body);
  if (status >= 500) return 'unknown';
  if (status !== 200) {
    log.push(`refused: ${json.error}`);
    // what has left of a payout that a copy has forgotten was booked as lost before its merchant asked again
    const isBooked = payout.id === null && json.error === 'invoice_already_used';
    if (json.error !== 'insufficient_balance' && json.error !== 'payout_below_minimum' && !isBooked)
      throw new Error(`/request_payout ${JSON.stringify(payout.body)} answered ${status} ${JSON.stringify(json)}`);
    return 'refused';
  }
  const made = json.payout as Json;
  if (payout.id !== null && payout.id !== made.id) throw new Error(`one key has made ${payout.id} and ${made.id}`);
  payout.id = made.id as string;
  payout.amount = units(made.amount as string, UNIT[payout.method]);
  return 'made';
}

const payBitcoin: Move = async (scene, merchant) => {
  const amount = await shareOf(merchant, 'bitcoin');
  if (amount === null) return;
  const isAll = merchant.random.percent(12);
  await ask(merchant, { method: 'bitcoin', amount: isAll ? null : amount, destination: await outside(scene, 'BTC') });
};

const payUsdt: Move = async (scene, merchant) => {
  const amount = await shareOf(merchant, 'usdt');
  if (amount === null) return;
  const isAll = merchant.random.percent(12);
  await ask(merchant, { method: 'usdt', amount: isAll ? null : amount, destination: await outside(scene, 'USDT') });
};

const REFUSED = 'the recipient did not accept the payment';
/** Of an invoice that lasts an hour, while a day passes. */
const NOT_SENT = 'the invoice expired, and the Lightning node was never asked to pay it';
const payLightning: Move = async ({ base }, merchant) => {
  const { random } = merchant;
  const amount = await shareOf(merchant, 'lightning');
  if (amount === null) return;
  const behaviour = random.weighted({ pay: 55, hold: 15, fail: 12, lnurl: 18 });
  if (behaviour === 'lnurl') {
    const { address } = (await control(base(), 'lnurl', { max: '1' })).json as { address: string };
    await ask(merchant, { method: 'lightning', amount, destination: address, mayFail: new Set(['invoice_expired', NOT_SENT]) });
    return;
  }
  const asked = { behaviour, expires_in: 31_536_000, ...(random.percent(50) ? { amount: inWords(amount, 'BTC') } : {}) };
  const { payment_request: destination, payment_hash: hash } = (await control(base(), 'invoice', asked)).json as Json;
  const mayFail = new Set(behaviour === 'pay' ? [] : [REFUSED]);
  await ask(merchant, { method: 'lightning', amount, destination: String(destination), hash: String(hash), mayFail });
};

const accounts = { next: 10_000_000 };
const payAch: Move = async ({ prices }, merchant) => {
  const { caller, random } = merchant;
  const source = random.weighted({ BTC: 50, USDT: 50 });
  const { balances } = await caller.get('/get_account_info');
  const most = units((balances as Record<string, string>)[source] as string, source);
  const cents = BigInt(random.whole(100_00, 260_00));
  if (bought(cents, source, prices[source], 'up') > most) return;
  accounts.next += 1;
  await ask(merchant, { method: 'ach', amount: cents, destination: `ach:021000021:${accounts.next}`, source });
};

/** Another merchant's transaction is paid: by an entry. */
const payInternally: Move = async ({ merchants }, merchant) => {
  const { random } = merchant;
  const method = random.weighted({ bitcoin: 50, lightning: 50 });
  const other = random.one(merchants.filter((one) => one !== merchant));
  const amount = await shareOf(merchant, method);
  if (amount === null || amount < MINIMUM.bitcoin + 10_000n) return;
  const internalTo = await create(other, method === 'bitcoin' ? 'BTC' : 'BTC-LN', '70.00');
  if (internalTo === null) return;
  const mayFail = new Set(method === 'lightning' ? ['invoice_expired'] : []);
  internalTo.internal = true;
  await ask(merchant, { method, amount: internalTo.due, destination: internalTo.address, internalTo, mayFail });
};

const open = ({ model }: Merchant): Payout[] => model.payouts.filter(({ id, ending }) => id !== null && ending === null);

const cancel: Move = async (_scene, merchant) => {
  const candidates = open(merchant);
  if (candidates.length === 0) return;
  const one = merchant.random.one(candidates);
  if (done(await merchant.caller.ask('/cancel_payout', { payout_id: one.id, idempotency_key: newKey() })))
    one.mayFail.add('cancelled');
  merchant.log.push(`${one.id} is cancelled: ${one.mayFail.has('cancelled')}`);
};

const returnAch: Move = async ({ base }, merchant) => {
  const candidates = open(merchant).filter(({ method }) => method === 'ach');
  if (candidates.length === 0) return;
  const one = merchant.random.one(candidates);
  const code = merchant.random.one(['R01', 'R03', 'R16']);
  one.mayFail.add(code);
  const { status } = await post(`${base()}/sandbox/bank`, { action: 'return', payout_id: one.id, code });
  merchant.log.push(`${one.id} is sent back with ${code}: ${status}`);
};

const resolve =
  (action: 'accept' | 'reimburse', part: 'whole' | 'excess'): Move =>
  async (scene, merchant) => {
    const { model, random, caller, log, needsApproval } = merchant;
    // one that waits for a person cannot be cancelled
    if (action === 'reimburse' && needsApproval) return;
    const candidates = model.purchases.filter(
      (one) => one.chosen !== 'BTC-LN' && !one.internal && one.reimbursement === null && !one.accepted && !one.acceptedExcess,
    );
    if (candidates.length === 0) return;
    const one = random.one(candidates);
    const destination = action === 'reimburse' ? await outside(scene, chainOf(one.chosen)) : undefined;
    const answer = await caller.ask('/resolve_transaction', {
      transaction_id: one.id,
      action,
      ...(destination === undefined ? {} : { destination }),
      ...(part === 'excess' ? { part } : {}),
      idempotency_key: newKey(),
    });
    log.push(`${one.id}: ${action} ${part}: ${answer.status} ${JSON.stringify(answer.json.error)}`);
    if (!done(answer)) return;
    if (destination !== undefined) one.reimbursement = { part, destination, isBack: false };
    else if (part === 'excess') one.acceptedExcess = true;
    else one.accepted = true;
  };

/** What is refused leaves nothing. */
const askTooMuch: Move = async (scene, merchant) => {
  const method = merchant.random.one(['bitcoin', 'usdt', 'lightning'] as const);
  const tooLittle = merchant.random.percent(50);
  const unit = UNIT[method];
  const amount = tooLittle ? MINIMUM[method] - 1n : units('9000000', unit);
  const destination =
    method === 'lightning'
      ? ((await control(scene.base(), 'invoice', { expires_in: 31_536_000 })).json.payment_request as string)
      : await outside(scene, unit);
  const body = { method, amount: inWords(amount, unit), destination, idempotency_key: newKey() };
  const { status, json } = await merchant.caller.ask('/request_payout', body);
  const right = tooLittle ? 'payout_below_minimum' : 'insufficient_balance';
  if (status < 500 && (status !== 422 || json.error !== right))
    throw new Error(`${JSON.stringify(body)} answered ${status} ${JSON.stringify(json)}, not ${right}`);
};

export const MOVES = {
  earn: { weight: 30, move: earn },
  bitcoin: { weight: 16, move: payBitcoin },
  usdt: { weight: 12, move: payUsdt },
  lightning: { weight: 18, move: payLightning },
  ach: { weight: 10, move: payAch },
  internal: { weight: 5, move: payInternally },
  cancel: { weight: 5, move: cancel },
  returnAch: { weight: 3, move: returnAch },
  reimburse: { weight: 8, move: resolve('reimburse', 'whole') },
  reimburseExcess: { weight: 4, move: resolve('reimburse', 'excess') },
  accept: { weight: 2, move: resolve('accept', 'whole') },
  acceptExcess: { weight: 3, move: resolve('accept', 'excess') },
  tooMuch: { weight: 3, move: askTooMuch },
} as const;
const WEIGHTS = Object.fromEntries(Object.entries(MOVES).map(([name, { weight }]) => [name, weight])) as Record<
  keyof typeof MOVES,
  number
>;

/** One move of a merchant. */
export async function step(scene: Scene, merchant: Merchant): Promise<void> {
  await MOVES[merchant.random.weighted(WEIGHTS)].move(scene, merchant);
}
export { request };
