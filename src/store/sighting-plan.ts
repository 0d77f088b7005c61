// What sightings mean for the payments that are known, worked out in memory before anything is written: a payment is new, found again,
// taken over by its malleated twin, or loses against a rival. Called by chain-facts.ts; no SQL here.
import { createHash } from 'node:crypto';
import type { UtxoCode } from '../core/currency.ts';
import type { Outpoint, TransactionFacts } from '../core/ports.ts';
import type { KnownFacts, NewPayment, PaymentFacts, Sighting, SightingsContext } from './payment-facts.ts';

export type Plan = {
  readonly currency: UtxoCode;
  readonly context: SightingsContext;
  readonly owners: ReadonlyMap<string, string>;
  /** Rows as they are after the sightings so far. */
  readonly rows: Set<PaymentFacts>;
  readonly changed: Set<PaymentFacts>;
  made: NewPayment[];
  readonly spends: { prevTxid: string; prevVout: number; txid: string }[];
  readonly spenders: Map<string, Set<string>>;
  /** Txids that spend what a payment spends. */
  readonly rivals: Set<string>;
};

export function createPlan(currency: UtxoCode, context: SightingsContext, known: KnownFacts): Plan {
  return {
    currency,
    context,
    owners: known.owners,
    rows: new Set(known.payments),
    changed: new Set(),
    made: [],
    spends: [],
    spenders: new Map([...known.spenders].map(([outpoint, txids]) => [outpoint, new Set(txids)])),
    rivals: new Set(),
  };
}

/** Works one transaction into the plan. */
export function applySighting(plan: Plan, sighting: Sighting): void {
  const { facts } = sighting;
  const { block } = plan.context;
  for (const { output, transactionId, twinKey } of ours(plan, facts)) {
    const same = find(plan, (row) => row.txid === facts.txid && row.vout === output.vout);
    const twin =
      same ?? find(plan, (row) => row.twinKey === twinKey && row.transactionId === transactionId && row.txid !== facts.txid);
    if (twin !== undefined) {
      // what the best chain has decided is not unmade by a look at the mempool: that list may be older
      if (block === null && (twin.state === 'mined' || (twin.state === 'conflicted' && twin.rivalMined))) continue;
      replace(plan, twin, {
        ...twin,
        txid: facts.txid,
        vout: output.vout,
        state: block === null ? 'mempool' : 'mined',
        block,
        goneSinceMs: null,
        lastHeight: block?.height ?? twin.lastHeight,
        conflictTxid: null,
        rivalMined: false,
      });
      if (twin.txid !== facts.txid) noteSpends(plan, facts);
      continue;
    }
    if (plan.made.some((row) => row.txid === facts.txid && row.vout === output.vout)) continue;
    plan.made.push({
      transactionId,
      txid: facts.txid,
      vout: output.vout,
      amount: output.amountMinor,
      coinbase: facts.coinbase,
      twinKey,
      state: block === null ? 'mempool' : 'mined',
      block,
      lastHeight: block?.height ?? null,
      seenAtMs: sighting.seenAtMs,
      caughtUpAtMs: plan.context.caughtUpAtMs,
    });
    noteSpends(plan, facts);
  }
  beatRivals(plan, facts);
}

type OurOutput = {
  readonly output: TransactionFacts['outputs'][number];
  readonly transactionId: string;
  readonly twinKey: string;
};

/** The outputs to transactions of ours, each with the key that its twin under another txid has too. */
function ours(plan: Plan, facts: TransactionFacts): OurOutput[] {
  const inputs = facts.inputs.length === 0 ? facts.txid : facts.inputs.map(outpointKey).sort().join(',');
  const seen = new Map<string, number>();
  const found: OurOutput[] = [];
  for (const output of facts.outputs) {
    const transactionId = plan.owners.get(output.script);
    if (transactionId === undefined || output.amountMinor <= 0n) continue;
    const what = `${output.script}:${output.amountMinor}`;
    const nth = seen.get(what) ?? 0;
    seen.set(what, nth + 1);
    const twinKey = createHash('sha256').update(`${inputs}|${what}|${nth}`).digest('hex');
    found.push({ output, transactionId, twinKey });
  }
  return found;
}

/** Every payment under another txid that spends the same outpoint has lost against this transaction. */
function beatRivals(plan: Plan, facts: TransactionFacts): void {
  const { block } = plan.context;
  const losers = new Set<string>();
  for (const outpoint of facts.inputs) {
    for (const txid of plan.spenders.get(outpointKey(outpoint)) ?? []) if (txid !== facts.txid) losers.add(txid);
  }
  if (losers.size === 0) return;
  for (const row of plan.rows) {
    if (!losers.has(row.txid)) continue;
    // the mempool holds nothing that the chain has already decided otherwise: such a list is older than our cursor
    if (block === null && (row.state === 'mined' || (row.state === 'conflicted' && row.rivalMined))) continue;
    plan.rivals.add(facts.txid);
    if (row.state === 'conflicted' && row.conflictTxid === facts.txid) continue;
    replace(plan, row, {
      ...row,
      state: 'conflicted',
      block: null,
      goneSinceMs: null,
      conflictTxid: facts.txid,
      rivalMined: block !== null,
    });
  }
  // seen and replaced within one look: it never was there
  plan.made = plan.made.filter((row) => !losers.has(row.txid));
}

function noteSpends(plan: Plan, facts: TransactionFacts): void {
  for (const input of facts.inputs) {
    const key = outpointKey(input);
    const spenders = plan.spenders.get(key) ?? new Set();
    plan.spenders.set(key, spenders);
    if (spenders.has(facts.txid)) continue;
    spenders.add(facts.txid);
    plan.spends.push({ prevTxid: input.txid, prevVout: input.vout, txid: facts.txid });
  }
}

function find(plan: Plan, fits: (row: PaymentFacts) => boolean): PaymentFacts | undefined {
  for (const row of plan.rows) if (fits(row)) return row;
  return undefined;
}

function replace(plan: Plan, before: PaymentFacts, after: PaymentFacts): void {
  plan.rows.delete(before);
  plan.changed.delete(before);
  plan.rows.add(after);
  plan.changed.add(after);
}

function outpointKey(outpoint: Outpoint): string {
  return `${outpoint.txid}:${outpoint.vout}`;
}
