// The end of a round: trouble is over, everything that was asked for comes to its end, and what the service says, what lies in the outside
// world and the model must agree.
import { setTimeout as delay } from 'node:timers/promises';
import type { Random } from '../simulation/random.ts';
import { achFee, balanceOf, CURRENCIES, type Currency, highestRoutingFee, UNIT, units } from './behaviour.ts';
import { control, type Json } from './caller.ts';
import { giveBack, type Merchant, newKey, type Scene } from './customers.ts';
import type { Payout, Purchase } from './model.ts';
import { request } from './moves.ts';
import { allIsFinal, goOn } from './trouble.ts';

/** How long everything may take to come to its end. */
const REST_MS = 240_000;

type Received = { readonly received: string; readonly payments: readonly { readonly txid: string; readonly amount: string }[] };
const received = async ({ base }: Scene, currency: string, address: string): Promise<Received> =>
  (await control(base(), 'receive', { currency, address })).json as unknown as Received;

const ended = (payout: Json): boolean => payout.status === 'completed' || payout.status === 'failed';
const now = async ({ caller }: Merchant, id: string): Promise<Json> =>
  (await caller.get('/check_payout', { payout_id: id })).payout as Json;
/** All that a merchant has ever asked for, and what it is paid by itself. */
async function listed({ caller }: Merchant): Promise<Json[]> {
  const all: Json[] = [];
  for (let after: string | null = null; ; ) {
    const body: Json = { limit: 100, ...(after === null ? {} : { starting_after: after }) };
    const { data, has_more } = (await caller.get('/list_payouts', body)) as { data: Json[]; has_more: boolean };
    all.push(...data);
    if (!has_more) return all;
    after = data.at(-1)?.id as string;
  }
}

/** Whoever holds a payment takes or refuses it in the end. */
export const endHeld = (scene: Scene, random: Random, payment_hash: string) =>
  control(scene.base(), 'invoice_resolve', { payment_hash, settle: random.percent(60) });

/** A merchant asks again for what has no answer yet. What a copy had forgotten may be held by its recipient, who takes or refuses it in the end. */
export async function askAgain(scene: Scene, merchant: Merchant): Promise<void> {
  const { model, random } = merchant;
  for (const one of model.payouts) {
    if (one.id !== null || (await request(merchant, one)) !== 'refused') continue;
    model.drop(one);
    if (one.hash !== null) await endHeld(scene, random, one.hash);
  }
}

/** Ends what only the outside world, or the merchant, can end. */
async function decide(scene: Scene, merchant: Merchant): Promise<void> {
  const { model, random, caller } = merchant;
  await askAgain(scene, merchant);
  for (const one of model.payouts) {
    if (one.id === null || one.ending !== null) continue;
    const at = await now(merchant, one.id);
    if (ended(at)) {
      one.ending = {
        status: at.status as string,
        error: at.error as string | null,
        fee: at.fee === null ? null : units(at.fee as string, UNIT[one.method]),
      };
      continue;
    }
    if (at.status === 'pending' && at.held_reason === 'approval') {
      const { status } = await caller.ask('/cancel_payout', { payout_id: one.id, idempotency_key: newKey() });
      if (status === 200) one.mayFail.add('cancelled');
    }
    if (one.hash !== null) await endHeld(scene, random, one.hash);
  }
}

const refundOf = async ({ caller }: Merchant, { id }: Purchase): Promise<Json> =>
  caller.get('/check_transaction', { transaction_id: id, expand: ['refund'] });
/** One that the operator was asked about, and whose recipient had nothing, is asked for again, and given up where its merchant has less than that by now. */
async function lookAtRefund(merchant: Merchant, one: Purchase): Promise<void> {
  if (one.reimbursement === null) return;
  const status = ((await refundOf(merchant, one)).refund as Json | null)?.status;
  one.reimbursement.isBack = status === 'completed';
  if (status !== 'failed') return;
  const { json } = await giveBack(merchant, one, one.reimbursement);
  if (json.error === 'insufficient_balance') one.reimbursement = null;
}

/** What of a merchant is not at its end, in words. */
async function unfinishedOf(scene: Scene, merchant: Merchant): Promise<string[]> {
  await decide(scene, merchant);
  const { model, name, automatic, caller } = merchant;
  const open: string[] = [];
  for (const { id, body, ending } of model.payouts)
    if (ending === null) open.push(`${name} ${id} ${JSON.stringify(body)}: ${JSON.stringify(id && (await now(merchant, id)))}`);
  for (const one of model.purchases) {
    if (one.reimbursement?.isBack === true) continue;
    await lookAtRefund(merchant, one);
    if (one.reimbursement?.isBack === false)
      open.push(`${name} ${one.id}: ${JSON.stringify((await refundOf(merchant, one)).refund)}`);
  }
  if (automatic === null) return open;
  const going = (await listed(merchant)).filter((one) => one.destination === automatic && !ended(one));
  for (const one of going)
    if (one.held_reason === 'approval') await caller.ask('/cancel_payout', { payout_id: one.id, idempotency_key: newKey() });
  return [...open, ...going.map((one) => `${name}, by itself: ${JSON.stringify(one)}`)];
}
const unfinished = async (scene: Scene): Promise<string[]> =>
  (await Promise.all(scene.merchants.map((merchant) => unfinishedOf(scene, merchant)))).flat();

/**
 * Lets everything come to its end.
 * @param operate what the operator does each time
 * @returns what does not
 */
export async function comeToRest(scene: Scene, operate: () => Promise<readonly string[]> = async () => []): Promise<string[]> {
  for (const { automatic, caller } of scene.merchants)
    if (automatic !== null) await caller.ask('/set_payout_settings', { enabled: false, idempotency_key: newKey() });
  await goOn(scene, 1_100);
  await allIsFinal(scene);
  for (const end = performance.now() + REST_MS; ; await delay(100)) {
    const open = [...(await operate()), ...(await unfinished(scene))];
    if (open.length === 0) break;
    if (performance.now() > end) return open.map((one) => `it does not end: ${one}`);
    if (open.some((one) => one.includes('"method":"ach"'))) await control(scene.base(), 'bank', { action: 'settle' });
    await goOn(scene, 61);
  }
  await allIsFinal(scene);
  return [];
}

/** What is wrong with one payout and its arrival. */
async function wrongPayout(scene: Scene, { model, name }: Merchant, one: Payout): Promise<string[]> {
  const wrong: string[] = [];
  const { ending, mayFail, method, destination, internalTo } = one;
  const says = (text: string): void => void wrong.push(`${name} ${one.id} (${method}, ${destination}): ${text}`);
  if (ending?.status === 'failed' && !mayFail.has(ending.error ?? '')) says(`failed: ${ending.error}`);
  if (ending?.status === 'completed' && mayFail.has('cancelled')) says('was cancelled, and is completed');
  if (internalTo !== null) return wrong;
  const due = model.arrival(one);
  const currency = method === 'lightning' ? 'BTC-LN' : method === 'ach' ? 'USD' : UNIT[method];
  const { payments } = await received(scene, currency, destination);
  const arrived = payments.map(({ amount }) => units(amount, UNIT[method]));
  // what was asked for as "all" before a copy was put back was another amount
  const isDue = arrived[0] === due || (one.isResolved === true && 'amount' in one.body && one.body.amount === 'all');
  if (arrived.length !== (due === null ? 0 : 1) || (due !== null && !isDue))
    says(`${ending?.status}, due ${due}, arrived ${arrived}`);
  if (ending?.status !== 'completed' || one.amount === null) return wrong;
  const { fee } = ending;
  const isRight =
    fee !== null &&
    (method === 'ach'
      ? fee === achFee(one.amount) || one.isResolved === true
      : method === 'lightning'
        ? fee >= 0n && fee <= highestRoutingFee(one.amount)
        : fee > 0n || one.isResolved === true);
  if (!isRight) says(`a fee of ${fee}`);
  return wrong;
}

/** What is wrong with one transaction and what came back of it. */
async function wrongPurchase(scene: Scene, merchant: Merchant, one: Purchase): Promise<string[]> {
  const currency = balanceOf(one.chosen);
  const answer = await refundOf(merchant, one);
  const { status, refund } = answer as { status: string; refund: Json | null };
  const expected =
    one.reimbursement?.part === 'whole'
      ? ['reimbursed']
      : one.arrived === 0n
        ? ['started', 'timedout', 'timedout_checked']
        : merchant.model.isTooLittle(one)
          ? ['declined']
          : ['succeeded', 'settled'];
  const wrong: string[] = [];
  const says = (text: string): void => void wrong.push(`${merchant.name} ${one.id} (${one.chosen}): ${text}`);
  if (!expected.includes(status)) says(`is ${status}, not ${expected.join(' or ')}; arrived ${one.arrived} of ${one.due}`);
  if (one.reimbursement === null) return wrong;
  const { payments } = await received(scene, currency, one.reimbursement.destination);
  const [amount, fee] = [units(String(refund?.amount), currency), units(String(refund?.fee), currency)];
  const whole = one.reimbursement.part === 'whole' ? one.arrived : merchant.model.suspended(one);
  if (amount + fee !== whole) says(`${amount} and a fee of ${fee} go back of ${whole}`);
  if (payments.length !== 1 || units(payments[0]!.amount, currency) !== amount)
    says(`${JSON.stringify(payments)} have come back, not ${amount}`);
  return wrong;
}

/** What lies at the addresses, by the outside world; what an entry has paid, by how its payout ended. */
async function lookAtArrivals(scene: Scene): Promise<void> {
  for (const { model } of scene.merchants)
    for (const one of model.purchases)
      if (one.chosen !== 'BTC-LN')
        one.arrived = units((await received(scene, one.chosen, one.address)).received, balanceOf(one.chosen));
  for (const { model } of scene.merchants)
    for (const { internalTo, ending } of model.payouts)
      if (internalTo !== null && ending?.status === 'completed') internalTo.arrived += internalTo.due;
}

const inOrder = (amounts: readonly bigint[]): bigint[] => amounts.toSorted((a, b) => (a < b ? -1 : a > b ? 1 : 0));

/** What a merchant was paid out by itself in this round, and what is wrong with it. */
async function wrongAutomatic(scene: Scene, { model, name, automatic }: Merchant, all: readonly Json[]): Promise<string[]> {
  if (automatic === null) return [];
  const made = all.filter(({ destination, status }) => destination === automatic && status === 'completed');
  const amounts = inOrder(made.map(({ amount }) => units(amount as string, 'BTC')));
  const arrived = inOrder((await received(scene, 'BTC', automatic)).payments.map(({ amount }) => units(amount, 'BTC')));
  model.automatic = made.reduce((sum, { amount, fee }) => sum + units(amount as string, 'BTC') + units(fee as string, 'BTC'), 0n);
  return String(amounts) === String(arrived) ? [] : [`${name} is paid ${arrived} by itself, and it says ${amounts}`];
}

/** Compares everything of a round. @returns what is wrong */
export async function compare(scene: Scene): Promise<string[]> {
  await lookAtArrivals(scene);
  return (await Promise.all(scene.merchants.map((merchant) => wrongOf(scene, merchant)))).flat();
}

async function wrongOf(scene: Scene, merchant: Merchant): Promise<string[]> {
  const { model, caller, name } = merchant;
  const all = await listed(merchant);
  const wrong = await wrongAutomatic(scene, merchant, all);
  const asked = new Set([...model.payouts.map(({ id }) => id), ...model.earlier]);
  for (const { id, destination } of all) if (destination === merchant.automatic) asked.add(id as string);
  for (const one of all) if (!asked.has(one.id as string)) wrong.push(`${name}: nobody has asked for ${JSON.stringify(one)}`);
  for (const one of model.payouts) wrong.push(...(await wrongPayout(scene, merchant, one)));
  for (const one of model.purchases) wrong.push(...(await wrongPurchase(scene, merchant, one)));
  const { balances } = (await caller.get('/get_account_info')) as { balances: Record<Currency, string> };
  const right = model.available(scene.prices);
  for (const currency of CURRENCIES) {
    const is = units(balances[currency], currency);
    if (is !== right[currency]) wrong.push(`${name} has ${is} of ${currency}, not ${right[currency]} (${is - right[currency]})`);
  }
  return wrong;
}
