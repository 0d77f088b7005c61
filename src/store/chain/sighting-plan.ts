// What sightings mean for the known payments, worked out in memory before anything is written: a payment is new, found again, taken over by
// its malleated twin, or loses against a conflicting transaction. No SQL here.
import { createHash } from 'node:crypto';
import { DISPROVED_PLACE } from '../../core/currencies/evm.ts';
import { type CurrencyCode, isUtxo } from '../../core/currency.ts';
import { sum } from '../../core/money.ts';
import type { Outpoint, OutputFacts, TransactionFacts } from '../../core/ports.ts';
import type { KnownFacts, NewPayment, PaymentFacts, PlaceOfBlock, Sighting, SightingsContext } from './payment-facts.ts';
import type { NewSpend } from './payment-writes.ts';

export type Plan = {
  readonly currency: CurrencyCode;
  readonly context: SightingsContext;
  readonly owners: ReadonlyMap<string, string>;
  /** Payments after the sightings so far, by id, and the ids by outpoint, by the key that a twin shares, and by txid. */
  readonly rows: Map<bigint, PaymentFacts>;
  readonly byOutpoint: Map<string, bigint>;
  readonly byMalleationKey: Map<string, Set<bigint>>;
  readonly byTxid: Map<string, Set<bigint>>;
  readonly changed: Set<bigint>;
  /** Those of them that have another place in their transaction than before. */
  readonly moved: Set<bigint>;
  /** New payments by outpoint, and the outpoints by txid. */
  readonly made: Map<string, NewPayment>;
  readonly madeByTxid: Map<string, string[]>;
  readonly spends: NewSpend[];
  readonly spenders: Map<string, Set<string>>;
  /** Txids whose spends are already recorded. */
  readonly noted: Set<string>;
  /** Txids that spend an outpoint that a payment spends. */
  readonly conflictingTxids: Set<string>;
};

/** A plan that changes nothing yet: what is known, ready for the sightings of one block or one look at a mempool. */
export function createPlan(currency: CurrencyCode, context: SightingsContext, known: KnownFacts): Plan {
  const plan: Plan = {
    currency,
    context,
    owners: known.owners,
    rows: new Map(),
    byOutpoint: new Map(),
    byMalleationKey: new Map(),
    byTxid: new Map(),
    changed: new Set(),
    moved: new Set(),
    made: new Map(),
    madeByTxid: new Map(),
    spends: [],
    spenders: new Map([...known.spenders].map(([outpoint, txids]) => [outpoint, new Set(txids)])),
    noted: new Set(),
    conflictingTxids: new Set(),
  };
  for (const row of known.payments) addRow(plan, row);
  return plan;
}

/** Adds one transaction to the plan, in time linear in its own size. */
export function applySighting(plan: Plan, sighting: Sighting): void {
  const { facts } = sighting;
  const { block } = plan.context;
  const promised = facts.outputs.some(({ byBalance }) => byBalance === true) ? disprovedNow(plan) : null;
  for (const { output, transactionId, malleationKey } of ours(plan.owners, facts)) {
    const outpoint = outpointKey({ txid: facts.txid, vout: output.vout });
    const key = malleationKeyWithin(malleationKey, transactionId);
    const there = rowAt(plan, plan.byOutpoint.get(outpoint));
    const isOther = there !== undefined && isDecidedByBlock(plan) && keyOf(there) !== key;
    const twin = isOther ? twinAmong(plan, output, key) : (there ?? twinAmong(plan, output, key));
    if (isOther) displace(plan, there, facts);
    if (twin !== undefined) {
      // a look at the mempool does not undo what the best chain has decided: that list may be older
      if (block === null && (twin.state === 'mined' || (twin.state === 'conflicted' && twin.conflictMined))) continue;
      if (isAsKnown(twin, { txid: facts.txid, vout: output.vout }, block)) continue;
      replacePromised(plan, promised?.get(transactionId), output, facts);
      replace(plan, twin, {
        ...twin,
        txid: facts.txid,
        vout: output.vout,
        state: block === null ? 'mempool' : 'mined',
        block,
        goneSinceMs: null,
        lastHeight: block?.height ?? twin.lastHeight,
        conflictTxid: null,
        conflictMined: false,
      });
      if (twin.txid !== facts.txid) noteSpends(plan, facts);
      continue;
    }
    if (plan.made.has(outpoint)) continue;
    replacePromised(plan, promised?.get(transactionId), output, facts);
    add(plan.madeByTxid, facts.txid, outpoint);
    plan.made.set(outpoint, {
      transactionId,
      txid: facts.txid,
      vout: output.vout,
      amount: output.amountMinor,
      coinbase: facts.coinbase,
      malleationKey,
      state: block === null ? 'mempool' : 'mined',
      block,
      lastHeight: block?.height ?? null,
      seenAtMs: sighting.seenAtMs,
      caughtUpAtMs: Math.max(sighting.caughtUpAtMs ?? 0, plan.context.caughtUpAtMs),
    });
    noteSpends(plan, facts);
  }
  markConflicted(plan, facts);
  if (isDecidedByBlock(plan)) markDisproved(plan, facts);
}

/** What a transaction of accounts pays is known from the block that it is in: in another block its calls may do something else. */
function isDecidedByBlock(plan: Plan): boolean {
  return plan.context.block !== null && !isUtxo(plan.currency);
}

/**
 * The block shows another payment in this place of the same transaction: the one that another block, which was replaced, showed there was
 * never paid, and its place is free.
 */
function displace(plan: Plan, row: PaymentFacts, { txid }: TransactionFacts): void {
  const ofTxid = [...(plan.byTxid.get(txid) ?? [])].map((id) => (plan.rows.get(id) as PaymentFacts).vout);
  plan.conflictingTxids.add(txid);
  replace(plan, row, {
    ...row,
    vout: Math.max(DISPROVED_PLACE, ...ofTxid.map((vout) => vout + 1)),
    state: 'conflicted',
    block: null,
    goneSinceMs: null,
    conflictTxid: txid,
    conflictMined: true,
  });
}

/**
 * A waiting transaction of an account promises what its call may not keep (it fails, or a token takes a fee): once it is in a block, what
 * that block does not show of it was never paid.
 */
function markDisproved(plan: Plan, facts: TransactionFacts): void {
  for (const id of [...(plan.byTxid.get(facts.txid) ?? [])]) {
    const row = plan.rows.get(id) as PaymentFacts;
    if (row.state !== 'mined' || row.block?.hash !== plan.context.block?.hash) markOneConflicted(plan, row, facts);
  }
}

/**
 * What balances show has the block's name, and replaces what waiting calls in that block had promised to the same address, one of them or all
 * together, where the sums agree: so it is as much on time as they were. The block has disproved them just now, as it shows no calls.
 */
function replacePromised(
  plan: Plan,
  promised: readonly PaymentFacts[] | undefined,
  output: OutputFacts,
  facts: TransactionFacts,
): void {
  if (promised === undefined) return;
  const all = [...Map.groupBy(promised, ({ txid }) => txid).values(), promised];
  const kept = all.find((rows) => sum(rows.map(({ amount }) => amount)) === output.amountMinor) ?? [];
  for (const row of kept) markOneConflicted(plan, row, facts);
}
/** What the block has disproved, by transaction of ours. */
function disprovedNow(plan: Plan): ReadonlyMap<string, readonly PaymentFacts[]> {
  const changed = [...plan.changed].map((id) => plan.rows.get(id) as PaymentFacts);
  const disproved = changed.filter(({ state, conflictTxid, txid }) => state === 'conflicted' && conflictTxid === txid);
  return Map.groupBy(disproved, ({ transactionId }) => transactionId);
}

/**
 * The payment that is this output under another txid. A peg-out, and what only balances show, has only script and amount to identify it, so its
 * twin is a payment that is no longer there; for an output in a block also one that waited in the mempool until now.
 */
function twinAmong(plan: Plan, output: OutputFacts, twin: string): PaymentFacts | undefined {
  const rows = [...(plan.byMalleationKey.get(twin) ?? [])].map((id) => plan.rows.get(id) as PaymentFacts);
  if (output.pegOut === undefined && output.byBalance === undefined) return rows[0];
  return rows.find(({ state }) => state !== 'mined' && (state !== 'mempool' || plan.context.block !== null));
}

/** Seen again where it was seen before: nothing has changed. A node may name another place of the same transaction on Ethereum's chain. */
function isAsKnown(row: PaymentFacts, { txid, vout }: Outpoint, block: PlaceOfBlock | null): boolean {
  if (row.txid !== txid) return false;
  return block === null ? row.state === 'mempool' : row.vout === vout && row.state === 'mined' && row.block?.hash === block.hash;
}

type OurOutput = {
  readonly output: OutputFacts;
  readonly transactionId: string;
  readonly malleationKey: string;
};

/** The keys that identify the outputs of these transactions to ours under whatever txid (hex). */
export function malleationKeysOf(owners: ReadonlyMap<string, string>, sightings: readonly TransactionFacts[]): readonly string[] {
  return sightings.flatMap((facts) => ours(owners, facts).map(({ malleationKey }) => malleationKey));
}

/** The outputs to transactions of ours, each with the key that its twin under another txid shares. */
function ours(owners: ReadonlyMap<string, string>, facts: TransactionFacts): OurOutput[] {
  const inputs = facts.inputs.length === 0 ? facts.txid : facts.inputs.map(outpointKey).sort().join(',');
  const begun = createHash('sha256').update(`${inputs}|`);
  const seen = new Map<string, number>();
  const found: OurOutput[] = [];
  for (const output of facts.outputs) {
    const transactionId = owners.get(output.script);
    if (transactionId === undefined || output.amountMinor <= 0n) continue;
    const what = `${output.script}:${output.amountMinor}`;
    if (output.pegOut !== undefined || output.byBalance !== undefined) {
      const kind = output.pegOut === undefined ? 'by-balance' : 'peg-out';
      found.push({ output, transactionId, malleationKey: createHash('sha256').update(`${kind}|${what}`).digest('hex') });
      continue;
    }
    const nth = seen.get(what) ?? 0;
    seen.set(what, nth + 1);
    found.push({ output, transactionId, malleationKey: begun.copy().update(`${what}|${nth}`).digest('hex') });
  }
  return found;
}

/** Every payment under another txid that spends the same outpoint has lost against this transaction. */
function markConflicted(plan: Plan, facts: TransactionFacts): void {
  const losers = new Set<string>();
  for (const outpoint of facts.inputs) {
    for (const txid of plan.spenders.get(outpointKey(outpoint)) ?? []) if (txid !== facts.txid) losers.add(txid);
  }
  for (const txid of losers) {
    for (const id of [...(plan.byTxid.get(txid) ?? [])]) {
      const row = plan.rows.get(id) as PaymentFacts;
      // a block of this chain has it, and no other can have its nonce: what says so is a node's word (bytes of Bitcoin's family prove theirs)
      if (row.state !== 'mined' || !isDecidedByBlock(plan)) markOneConflicted(plan, row, facts);
    }
    // seen and replaced within one look: it is as if it never existed
    for (const outpoint of plan.madeByTxid.get(txid) ?? []) plan.made.delete(outpoint);
    plan.madeByTxid.delete(txid);
  }
}

function markOneConflicted(plan: Plan, row: PaymentFacts, facts: TransactionFacts): void {
  const { block } = plan.context;
  // what the chain has decided otherwise cannot be in the mempool: such a list is older than our cursor
  if (block === null && (row.state === 'mined' || (row.state === 'conflicted' && row.conflictMined))) return;
  plan.conflictingTxids.add(facts.txid);
  if (row.state === 'conflicted' && row.conflictTxid === facts.txid) return;
  replace(plan, row, {
    ...row,
    state: 'conflicted',
    block: null,
    goneSinceMs: null,
    conflictTxid: facts.txid,
    conflictMined: block !== null,
  });
}

/** Once per transaction: its outputs share its inputs. */
function noteSpends(plan: Plan, facts: TransactionFacts): void {
  if (plan.noted.has(facts.txid)) return;
  plan.noted.add(facts.txid);
  for (const input of facts.inputs) {
    const key = outpointKey(input);
    const spenders = plan.spenders.get(key) ?? new Set();
    plan.spenders.set(key, spenders);
    if (spenders.has(facts.txid)) continue;
    spenders.add(facts.txid);
    plan.spends.push({ prevTxid: input.txid, prevVout: input.vout, txid: facts.txid });
  }
}

const rowAt = (plan: Plan, id: bigint | undefined): PaymentFacts | undefined =>
  id === undefined ? undefined : plan.rows.get(id);

function addRow(plan: Plan, row: PaymentFacts): void {
  plan.rows.set(row.id, row);
  plan.byOutpoint.set(outpointKey(row), row.id);
  const twin = keyOf(row);
  const twins = plan.byMalleationKey.get(twin) ?? new Set();
  plan.byMalleationKey.set(twin, twins);
  twins.add(row.id);
  const ofTxid = plan.byTxid.get(row.txid) ?? new Set();
  plan.byTxid.set(row.txid, ofTxid);
  ofTxid.add(row.id);
}

function replace(plan: Plan, before: PaymentFacts, after: PaymentFacts): void {
  if (plan.byOutpoint.get(outpointKey(before)) === before.id) plan.byOutpoint.delete(outpointKey(before));
  plan.byTxid.get(before.txid)?.delete(before.id);
  addRow(plan, after);
  plan.changed.add(after.id);
  if (after.vout !== before.vout) plan.moved.add(after.id);
}

function add(lists: Map<string, string[]>, key: string, value: string): void {
  const list = lists.get(key);
  if (list === undefined) lists.set(key, [value]);
  else list.push(value);
}

const malleationKeyWithin = (malleationKey: string, transactionId: string): string => `${malleationKey} ${transactionId}`;

const keyOf = (row: PaymentFacts): string => malleationKeyWithin(row.malleationKey, row.transactionId);

const outpointKey = ({ txid, vout }: Outpoint): string => `${txid}:${vout}`;
