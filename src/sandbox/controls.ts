// The controls of the sandbox by name: what POST /sandbox/<name> does. Fields are checked first, then what they refer to, then whether it
// can be done. control-pay.ts has those about payments, this file the others.
import { LIGHTNING } from '../core/currencies/lightning.ts';
import { CURRENCY_CODES, type CurrencyCode, isUtxo, type PaymentMethod } from '../core/currency.ts';
import { parseRate } from '../core/rate.ts';
import { Refusal } from '../core/refusal.ts';
import { bankControl, receivedInBank } from './control-bank.ts';
import {
  type Body,
  bad,
  ControlRefusal,
  fromRefusal,
  impossible,
  oneOf,
  optionalFlag,
  optionalText,
  optionalWhole,
  requiredNode,
  requiredText,
  requiredWhole,
} from './control-fields.ts';
import {
  isLightning,
  isReachable,
  lightningTrouble,
  outsideInvoice,
  outsideLnurl,
  payInvoice,
  receivedOverLightning,
  resolveInvoice,
} from './control-lightning.ts';
import {
  doubleSpendTransaction,
  evictTransaction,
  outsideAddress,
  payTransaction,
  receivedOutside,
  returnTransaction,
} from './control-pay.ts';
import type { ControlledNode } from './controlled-node.ts';
import { type Prices, SOURCES } from './rates.ts';
import type { ControlContext } from './service-side.ts';
import type { Fault, Trouble } from './trouble.ts';

type Control = (context: ControlContext, body: Body) => Promise<unknown>;

const MOST_BLOCKS = 10_000;
const MOST_DEPTH = 1_000;
/** The clock stays in this century: a block's time has 32 bits. */
const LAST_MS = Date.UTC(2100, 0, 1);
/** How long the clock's control waits before it moves, and again afterwards. A client waits for five minutes. */
const READ_MS = 90_000;
const SETTLE_MS = 150_000;

const isReadable = (node: ControlledNode): boolean => !node.trouble().down && node.trouble().fault !== 'hang';

/** Whatever is mined or waits on a chain concerns all its currencies. */
async function nudged(context: ControlContext, { currencies }: ControlledNode, isBlock = false): Promise<void> {
  // no Ethereum node announces its blocks
  const isAnnounced = isBlock && currencies.every(isUtxo);
  await Promise.all(currencies.map((currency) => context.nudge(currency, isAnnounced)));
}

/** After a payment or another move on a chain: answers when the service has seen it, unless the service cannot reach the node. */
async function seen(
  context: ControlContext,
  { answer, node, isBlock = false }: { readonly answer: unknown; readonly node: ControlledNode; readonly isBlock?: boolean },
): Promise<unknown> {
  if (isReadable(node)) await nudged(context, node, isBlock);
  return answer;
}

async function mine(context: ControlContext, body: Body): Promise<unknown> {
  const node = requiredNode(context.nodes, body);
  return seen(context, { answer: node.mine(requiredWhole(body, 'blocks', 1, MOST_BLOCKS)), node, isBlock: true });
}

async function reorg(context: ControlContext, body: Body): Promise<unknown> {
  const node = requiredNode(context.nodes, body);
  const depth = requiredWhole(body, 'depth', 1, MOST_DEPTH);
  const drop = optionalFlag(body, 'drop') ?? false;
  const most = node.deepestReorg();
  if (depth > most) throw impossible(`depth: this chain can be replaced ${most} blocks deep at most`);
  return seen(context, { answer: node.reorg(depth, drop), node });
}

/** Whether a body is about the bank, by the code that it uses there. */
const isOf = ({ currency }: Body, code: 'ACH' | 'USD'): boolean =>
  typeof currency === 'string' && currency.toUpperCase() === code;

const FAULTS: readonly Fault[] = ['lose_answers', 'hang', 'reject', 'forgets', 'no_locks'];

async function trouble(context: ControlContext, body: Body): Promise<unknown> {
  if (isLightning(body)) return lightningTrouble(context, troubleOf(body));
  const isBank = isOf(body, 'ACH');
  const node = isBank ? null : requiredNode(context.nodes, body);
  const before = node?.trouble() ?? context.bank.trouble();
  const { down, fault, count } = troubleOf(body);
  if (isBank && (fault === 'no_locks' || fault === 'forgets')) throw bad('fault', `${fault} is not for the bank`);
  if (fault === 'no_locks' && node?.hasQuorums !== true) throw bad('fault', 'no_locks is for DASH only');
  if (fault === 'no_locks' && count !== null) throw bad('for', 'counts calls: no_locks lasts until it is ended');
  if (count !== null && !fault) throw bad('for', 'needs a fault: it says for how many calls');
  const left = count ?? (fault === 'reject' ? 1 : null);
  const after: Trouble = { ...before, down: down ?? before.down, ...(fault === undefined ? {} : { fault, left }) };
  if (node === null) context.bank.setTrouble(after);
  else node.setTrouble(after);
  if (node !== null && before.down !== after.down) await nudged(context, node);
  return { currency: node?.code ?? 'ACH', down: after.down, fault: after.fault, for: after.left };
}

/** What a body asks for; one of `down` and `fault` is required. */
function troubleOf(body: Body): {
  readonly down: boolean | null;
  readonly fault: Fault | null | undefined;
  readonly count: number | null;
} {
  const down = optionalFlag(body, 'down');
  const fault = oneOf(body, 'fault', FAULTS);
  const count = optionalWhole(body, 'for', 1, 1_000_000);
  if (down !== null || fault !== undefined) return { down, fault, count };
  throw new ControlRefusal(
    400,
    'missing_field',
    `down (true or false) or fault (null or one of ${FAULTS.join(', ')}) is required`,
    'down',
  );
}

async function advanceClock(context: ControlContext, body: Body): Promise<unknown> {
  const room = Math.max(0, Math.floor((LAST_MS - context.clock.now()) / 1000));
  const seconds = requiredWhole(body, 'advance_seconds', 0, room);
  // everything that the sandbox has answered before belongs to the time before the move
  const chains = [...context.nodes.values()].filter(isReadable).map((node) => node.code);
  const readable: readonly PaymentMethod[] = isReachable(context.lightning) ? [...chains, LIGHTNING.code] : chains;
  if (!(await context.service.untilRead(readable, READ_MS))) {
    throw impossible(
      `the service has not read within ${READ_MS / 1000} s what happened before: the clock was not moved, try again later`,
    );
  }
  context.clock.advance(seconds * 1000);
  await context.service.refreshRates();
  const isDone = await context.service.settle(SETTLE_MS);
  const now = new Date(context.clock.now()).toISOString();
  if (isDone) return { now };
  throw impossible(
    `the clock was moved, it is ${now}; what is due has not all been done within ${SETTLE_MS / 1000} s: advance_seconds 0 waits for the rest`,
  );
}

function pricesOf(code: string, value: unknown): Prices {
  const isPrice = (each: unknown): boolean => typeof each === 'string' && parseRate(each) !== null;
  if (value === null) return SOURCES.map(() => null);
  if (isPrice(value)) return SOURCES.map(() => value as string);
  const each = Array.isArray(value) && value.length === SOURCES.length ? value : null;
  if (each?.every((one) => one === null || isPrice(one))) return each as Prices;
  const order = SOURCES.join(', ');
  throw bad(
    code,
    `must be a price such as "65000.00" (above zero, at most 8 decimals), null, or a list of ${SOURCES.length} of these (${order})`,
  );
}

async function rates(context: ControlContext, body: Body): Promise<unknown> {
  const changes: Partial<Record<CurrencyCode, Prices>> = {};
  for (const [name, value] of Object.entries(body)) {
    const code = CURRENCY_CODES.find((each) => each === name.toUpperCase());
    if (code === undefined)
      throw new ControlRefusal(400, 'unsupported_currency', `${name} is none of ${CURRENCY_CODES.join(', ')}`, name);
    changes[code] = pricesOf(name, value);
  }
  context.exchanges.set(changes);
  await context.service.refreshRates();
  return { rates: context.exchanges.prices() };
}

const taken = (username: string): ControlRefusal =>
  new ControlRefusal(409, 'not_possible', `username: ${username} is taken`, 'username');

async function merchant(context: ControlContext, body: Body): Promise<unknown> {
  const username = requiredText(body, 'username');
  const made = await context.service.addMerchant({
    username,
    password: requiredText(body, 'password'),
    email: optionalText(body, 'email'),
    businessName: optionalText(body, 'business_name'),
  });
  if (made === null) throw taken(username);
  return made;
}

function scopesOf(body: Body): readonly string[] {
  const { scopes } = body;
  if (scopes === undefined || scopes === null) {
    throw new ControlRefusal(400, 'missing_field', 'scopes is required: a list of read, payments, payouts', 'scopes');
  }
  if (typeof scopes === 'string') return scopes.split(',').map((scope) => scope.trim());
  if (Array.isArray(scopes) && scopes.every((scope) => typeof scope === 'string')) return scopes;
  throw bad('scopes', 'must be a list of read, payments, payouts');
}

async function user(context: ControlContext, body: Body): Promise<unknown> {
  const [affiliateId, username] = [requiredText(body, 'affiliate_id'), requiredText(body, 'username')];
  const made = await context.service.addUser({
    affiliateId,
    username,
    password: requiredText(body, 'password'),
    scopes: scopesOf(body),
  });
  if (made === null) throw taken(username);
  return made;
}

const CONTROLS: Readonly<Record<string, Control>> = {
  pay: async (context, body) => (await payInvoice(context, body)) ?? seen(context, await payTransaction(context, body)),
  double_spend: async (context, body) => seen(context, await doubleSpendTransaction(context, body)),
  evict: async (context, body) => seen(context, await evictTransaction(context, body)),
  return: async (context, body) => seen(context, await returnTransaction(context, body)),
  mine,
  reorg,
  node: trouble,
  address: async (context, body) => outsideAddress(context, body),
  async receive(context, body) {
    if (isOf(body, 'USD') || isOf(body, 'ACH')) return receivedInBank(context, body);
    return isLightning(body) ? receivedOverLightning(context, body) : receivedOutside(context, body);
  },
  clock: advanceClock,
  rates,
  merchant,
  user,
  invoice: async (context, body) => outsideInvoice(context, body),
  invoice_resolve: async (context, body) => resolveInvoice(context, body),
  lnurl: async (context, body) => outsideLnurl(context, body),
  bank: bankControl,
};

/**
 * Does what POST /sandbox/<name> asks.
 * @returns the body of the 200 answer
 * @throws ControlRefusal with 400, 404 or 409
 */
export async function control(context: ControlContext, name: string, body: unknown): Promise<unknown> {
  const chosen = Object.hasOwn(CONTROLS, name) ? CONTROLS[name] : undefined;
  if (chosen === undefined) {
    throw new ControlRefusal(404, 'not_found', `there is no control of this name; there are ${Object.keys(CONTROLS).join(', ')}`);
  }
  if (typeof body !== 'object' || body === null || Array.isArray(body)) {
    throw new ControlRefusal(400, 'invalid_json', 'the body must be one JSON object');
  }
  try {
    return await chosen(context, body as Body);
  } catch (error) {
    throw error instanceof Refusal ? fromRefusal(error) : error;
  }
}
