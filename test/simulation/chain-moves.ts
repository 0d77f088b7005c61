// What can happen on a chain of the simulation: payments of every kind, replacements, twins, double spends, blocks, reorganisations, and a
// node that forgets or is away. Each move picks its own details by chance and tells the model what it did; false = nothing to do it with.
import { outpointKey, sealed, type Transaction } from '../../src/sandbox/utxo/transaction.ts';
import { type Code, maturityOf } from './behaviour.ts';
import type { Model, Purchase, Sent } from './model.ts';
import type { Random } from './random.ts';
import type { SimulatedService } from './simulated-service.ts';

export type ChainMoveContext = {
  readonly service: SimulatedService;
  readonly model: Model;
  readonly random: Random;
  readonly currency: Code;
  /** What a move may say of itself, for the story of a failing seed. */
  readonly note: (text: string) => void;
};
type Output = { readonly minor: bigint; readonly script: Buffer };
type Move = (context: ChainMoveContext) => boolean;

const short = (tx: { readonly txid: string }): string => tx.txid.slice(0, 6);
const blockStart = new WeakMap<SimulatedService, Map<Code, number>>();

/** From here on blocks may be taken back: nothing deeper belongs to this round. */
export function markStart(service: SimulatedService, currency: Code): void {
  const grounds = blockStart.get(service) ?? new Map<Code, number>();
  blockStart.set(service, grounds);
  grounds.set(currency, service.node(currency).state.active.length);
}
function ownBlocks({ service, currency }: ChainMoveContext): number {
  return service.node(currency).state.active.length - (blockStart.get(service)?.get(currency) ?? 0);
}

/** Whom to pay: mostly an own purchase of this chain, now and then one of another currency. */
function payee({ model, random, currency }: ChainMoveContext): Purchase | null {
  const own = model.purchases.filter((one) => one.currency === currency);
  const others = model.purchases.filter((one) => one.currency !== currency);
  if (others.length > 0 && random.percent(10)) return random.one(others);
  return own.length === 0 ? null : random.one(own.slice(-4));
}

function amountFor({ service, model, random, currency }: ChainMoveContext, to: Purchase): bigint {
  // a currency of another chain: about the same worth
  const amountDue =
    to.currency === currency ? to.amountDue : (to.cents * 10n ** 8n) / (service.prices.get(currency) as bigint) + 1n;
  const paid = model.sent
    .filter((one) => one.currency === currency && ['pool', 'chain'].includes(model.placeOf(one).where))
    .flatMap((one) => one.outputs.filter(({ purchase }) => purchase === to).map(({ amount }) => amount))
    .reduce((sum, amount) => sum + amount, 0n);
  const rest = amountDue > paid ? amountDue - paid : amountDue;
  const share = (from: number, until: number): bigint => (amountDue * BigInt(random.whole(from, until))) / 1000n;
  const kind = random.weighted({ rest: 45, nearly: 12, part: 20, over: 12, tiny: 5, double: 6 });
  const amount = {
    rest,
    nearly: share(985, 1012),
    part: share(200, 900),
    over: share(1020, 1500),
    tiny: 700n,
    double: 2n * amountDue,
  }[kind];
  return amount < 700n ? 700n : amount;
}

function outputsOf(context: ChainMoveContext): { readonly list: readonly Output[]; readonly owed: Sent['outputs'] } | null {
  const { random } = context;
  const owed: { purchase: Purchase; amount: bigint }[] = [];
  for (let n = random.weighted({ 1: 88, 2: 12 }) === '2' ? 2 : 1; n > 0; n--) {
    const to = payee(context);
    if (to === null) return null;
    const amount = amountFor(context, to);
    const parts = amount > 10_000n && random.percent(22) ? BigInt(random.whole(2, 4)) : 1n;
    for (let part = 0n; part < parts; part++) {
      owed.push({ purchase: to, amount: part === 0n ? amount - (amount / parts) * (parts - 1n) : amount / parts });
    }
  }
  return { list: owed.map(({ purchase, amount }) => ({ minor: amount, script: purchase.script })), owed };
}

const pay: Move = (context) => {
  const { service, model, currency, note } = context;
  const outputs = outputsOf(context);
  const tx = outputs && service.node(currency).pay(outputs.list);
  if (!tx || !outputs) return false;
  model.send(currency, tx, outputs.owed);
  note(`${short(tx)} ${outputs.owed.map(({ purchase, amount }) => `${amount} to ${purchase.id.slice(-6)}`).join(', ')}`);
  return true;
};

const payInBlock: Move = (context) => pay(context) && mine(context);

const payByCoinbase: Move = (context) => {
  const { service, model, currency } = context;
  const to = payee(context);
  if (to === null) return false;
  const amount = amountFor(context, to);
  const block = service.node(currency).mine(1, { outputs: [{ minor: amount, script: to.script }], transactions: [] });
  model.send(currency, block.transactions[0] as Transaction, [{ purchase: to, amount }], { coinbase: true });
  if (context.random.percent(50)) mineBlocks(context, maturityOf(currency) - context.random.whole(0, 3));
  return true;
};

/** A fee replacement: the same amount, another one, to somebody else, or to nobody of ours. */
const replace: Move = (context) => {
  const { service, model, random, currency, note } = context;
  const waiting = model.on(currency, 'pool');
  if (waiting.length === 0) return false;
  const old = random.one(waiting);
  const kind = random.weighted({ same: 45, less: 15, more: 15, other: 15, none: 10 });
  const factor = { same: 100n, less: 60n, more: 130n, other: 100n, none: 100n }[kind];
  const owed =
    kind === 'none'
      ? []
      : kind === 'other'
        ? (outputsOf(context)?.owed ?? [])
        : old.outputs.map(({ purchase, amount }) => ({ purchase, amount: (amount * factor) / 100n + 1n }));
  const outputs = owed.map(({ purchase, amount }) => ({ minor: amount, script: purchase.script }));
  const tx = service.node(currency).replace(old.tx, outputs);
  if (tx === null) return false;
  note(`${short(old.tx)} by ${short(tx)} ${kind}`);
  if (owed.length > 0) model.send(currency, tx, owed, { replaces: old });
  model.moved(currency);
  return true;
};

/** The same inputs and outputs under another id; sometimes the outputs in another order. */
const malleate: Move = (context) => {
  const { service, model, random, currency, note } = context;
  const node = service.node(currency);
  const waiting = model.on(currency, 'pool', 'hidden').filter((one) => !one.coinbase && !hasChildren(context, one));
  if (waiting.length === 0) return false;
  const one = random.one(waiting);
  const { tx } = one;
  const outputs = random.percent(25) ? [...tx.outputs].reverse() : tx.outputs;
  const twin = sealed({ version: tx.version, inputs: tx.inputs, outputs, lockTime: tx.lockTime + 1 });
  const hidden = node.state.denied.has(tx.txid);
  note(`${short(tx)} as ${short(twin)}`);
  node.enter(twin, { denied: hidden });
  model.rename(one, twin);
  return true;
};

function hasChildren({ service, currency }: ChainMoveContext, one: Sent): boolean {
  const { spenders } = service.node(currency).state;
  return one.tx.outputs.some((_, vout) => spenders.has(outpointKey({ txid: one.tx.txid, vout })));
}

const doubleSpend: Move = ({ service, model, random, currency, note }) => {
  const waiting = model.on(currency, 'pool', 'hidden');
  if (waiting.length === 0) return false;
  const one = random.one(waiting);
  note(short(one.tx));
  const made = service.node(currency).doubleSpend([one.tx]);
  model.moved(currency);
  return made.length > 0;
};

/** What a miner would take: nothing that the node denies, nor what spends it. */
function minable({ service, currency }: ChainMoveContext, take: (tx: Transaction) => boolean): Transaction[] {
  const { state } = service.node(currency);
  const left = new Set<string>();
  const chosen: Transaction[] = [];
  for (const { transaction } of state.mempool.values()) {
    const waits = transaction.inputs.some((input) => left.has(input.txid));
    if (waits || state.denied.has(transaction.txid) || !take(transaction)) left.add(transaction.txid);
    else chosen.push(transaction);
  }
  return chosen;
}

export function mineBlocks(context: ChainMoveContext, blocks: number, take: (tx: Transaction) => boolean = () => true): void {
  const node = context.service.node(context.currency);
  for (let n = 0; n < blocks; n++) node.mine(1, { transactions: minable(context, take) });
  context.model.moved(context.currency);
}

const mine: Move = (context) => {
  mineBlocks(context, Number(context.random.weighted({ 1: 60, 2: 20, 3: 10, 6: 10 })));
  return true;
};
const mineSome: Move = (context) => {
  const some = context.random.whole(0, 1) === 1;
  mineBlocks(context, 1, () => some && context.random.percent(50));
  return true;
};

const reorg: Move = (context) => {
  const depth = Math.min(Number(context.random.weighted({ 1: 40, 2: 25, 3: 15, 5: 10, 8: 6, 13: 4 })), ownBlocks(context));
  return reorganise(context, depth);
};
const deepReorg: Move = (context) => {
  const depth = context.random.whole(14, 100);
  mineBlocks(context, Math.max(0, depth - ownBlocks(context)));
  return reorganise(context, depth);
};
function reorganise({ service, model, random, currency, note }: ChainMoveContext, depth: number): boolean {
  if (depth < 1) return false;
  const drop = random.percent(35);
  note(`${depth}${drop ? ' drop' : ''}`);
  service.node(currency).reorg(depth, { drop });
  model.moved(currency);
  return true;
}
/** Blocks are replaced; what they held comes back under another id, or paying another amount. */
const inReorg =
  (change: Move): Move =>
  (context) => {
    const depth = Math.min(context.random.whole(1, 4), ownBlocks(context));
    if (depth < 1) return false;
    context.service.node(context.currency).reorg(depth, { drop: false });
    context.model.moved(context.currency);
    const changed = change(context);
    if (context.random.percent(60)) mineBlocks(context, 1);
    return changed;
  };
const rewind: Move = (context) => {
  const depth = Math.min(context.random.whole(1, 3), ownBlocks(context));
  if (depth < 1) return false;
  context.service.node(context.currency).rewind(depth);
  context.model.moved(context.currency);
  return true;
};

const hide: Move = ({ service, model, random, currency, note }) => {
  const waiting = model.on(currency, 'pool');
  if (waiting.length === 0) return false;
  const gone = random.percent(25) ? waiting : [random.one(waiting)]; // a restarted node has an empty mempool
  for (const one of gone) service.node(currency).deny(one.tx, true);
  note(gone.map((one) => short(one.tx)).join(' '));
  model.moved(currency);
  return true;
};
const show: Move = ({ service, model, random, currency, note }) => {
  const hidden = model.on(currency, 'hidden');
  if (hidden.length === 0) return false;
  const one = random.one(hidden);
  note(short(one.tx));
  service.node(currency).deny(one.tx, false);
  model.moved(currency);
  return true;
};

const nodeDown: Move = ({ service, currency }) => {
  const { trouble } = service.node(currency).state;
  service.node(currency).setTrouble({ ...trouble, down: !trouble.down });
  return true;
};
const locks: Move = ({ service, currency }) => {
  if (currency !== 'DASH') return false;
  const { trouble } = service.node(currency).state;
  service.node(currency).setTrouble({ ...trouble, fault: trouble.fault === null ? 'no_locks' : null });
  return true;
};

export const CHAIN_MOVES = {
  pay,
  payInBlock,
  payByCoinbase,
  replace,
  malleate,
  doubleSpend,
  mine,
  mineSome,
  reorg,
  otherNameInReorg: inReorg(malleate),
  otherAmountInReorg: inReorg(replace),
  deepReorg,
  rewind,
  hide,
  show,
  nodeDown,
  locks,
} satisfies Record<string, Move>;

/** The end of all trouble: nodes are up, what is hidden comes back, is double-spent or stays away for ever; then blocks until all is final. */
export function calmDown(context: ChainMoveContext): void {
  const { service, model, random, currency } = context;
  const node = service.node(currency);
  node.setTrouble({ down: false, fault: null, left: null });
  for (const one of model.on(currency, 'hidden')) {
    const end = hasChildren(context, one) ? 'back' : random.one(['back', 'spent', 'away'] as const);
    if (end === 'back') node.deny(one.tx, false);
    if (end === 'spent') node.doubleSpend([one.tx]);
  }
  mineBlocks(context, 1);
  mineBlocks(context, model.blocksToRest(currency));
}
