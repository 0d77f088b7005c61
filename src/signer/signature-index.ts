// What the rules ask about earlier signatures, kept in memory: which batch a payout and an outpoint belong to, what a batch's transactions
// spend and pay, and how much left when. Filled from the journal.
import { createHash } from 'node:crypto';
import { type CurrencyCode, ETHER } from '../core/currency.ts';
import { atLeastZero, greatest, minus, plus, sum } from '../core/money.ts';
import type { GasOffer } from '../core/payouts/gas.ts';
import type { SignedTransaction, TransactionToSign } from '../core/signer-wire.ts';

type Content = Omit<TransactionToSign, 'previous'>;

export type KnownSignature = {
  readonly sequence: number;
  readonly batchId: string;
  readonly number: number;
  readonly txid: string;
  /** Of everything that was asked for but the lease. */
  readonly content: string;
  /** Of the payees with their scripts and amounts, in any order. */
  readonly payees: string;
  readonly outpoints: ReadonlySet<string>;
  /** Null on other chains than Ethereum's. */
  readonly offer: GasOffer | null;
  readonly atMs: number;
};

/** An outpoint as it was spent first. */
export type KnownOutpoint = { readonly batchId: string; readonly amount: string; readonly path: string };

/** What a reimbursement took of our outputs when it was signed, its share of the fee included. */
export type KnownReimbursement = { readonly payoutId: string; readonly batchId: string; readonly total: bigint };

/** What one signature added to what leaves: for a replacement only the difference. */
export type Leaving = { readonly currency: string; readonly atMs: number; readonly amount: bigint };

export type SignatureIndex = {
  add(signed: SignedTransaction): void;
  /** In the order of their numbers. */
  ofBatch(batchId: string): readonly KnownSignature[];
  /** The batch that a payout was signed in. */
  batchOfPayout(payoutId: string): string | null;
  /**
   * The reimbursements that were signed of a transaction in a currency.
   * @param others payouts that are said to be of it too: what was signed before transactions were kept shows none
   */
  reimbursementsOf(transactionId: string, currency: string, others: readonly string[]): readonly KnownReimbursement[];
  outpoint(key: string): KnownOutpoint | null;
  /** The highest address of our own that change of a currency went to; -1 when none did. */
  highestChange(currency: string): number;
  /** The highest nonce that was signed for a sender of Ethereum's chain (as an input's txid); null when none was. */
  highestNonce(currency: string, sender: string): number | null;
  /** The most of a currency that any transaction of the batch lets leave: payees and fee, and of ether the gas. */
  leavingOf(batchId: string, currency: string): bigint;
  leaving(): readonly Leaving[];
};

/**
 * What the rules ask of everything that was signed, kept in memory as the journal is read: amounts are minor units, of Ethereum's chain wei
 * or the token's.
 */
export function createSignatureIndex(): SignatureIndex {
  const batches = new Map<string, KnownSignature[]>();
  const payouts = new Map<string, string>();
  const reimbursements = new Map<string, KnownReimbursement & { readonly currency: string }>();
  const ofTransactions = new Map<string, string[]>();
  const outpoints = new Map<string, KnownOutpoint>();
  const highest = new Map<string, bigint>();
  const changes = new Map<string, number>();
  const nonces = new Map<string, number>();
  const all: Leaving[] = [];
  return {
    add(signed) {
      const { request, sequence, txid, signedAtMs: atMs } = signed;
      const { batchId, number, currency } = request;
      const keys = request.inputs.map((input) => outpointKey(currency, input));
      const known = {
        sequence,
        batchId,
        number,
        txid,
        content: contentHash(request),
        payees: payeesHash(request),
        outpoints: new Set(keys),
        offer: request.evm === undefined ? null : { maxFee: BigInt(request.evm.maxFee), tip: BigInt(request.evm.tip) },
        atMs,
      };
      batches.set(batchId, [...(batches.get(batchId) ?? []), known]);
      for (const { payoutId } of request.outputs) if (!payouts.has(payoutId)) payouts.set(payoutId, batchId);
      for (const { payoutId, total, reimburses } of request.outputs) {
        if (total === undefined || reimbursements.has(payoutId)) continue;
        reimbursements.set(payoutId, { payoutId, batchId, currency, total: BigInt(total) });
        if (reimburses !== undefined) ofTransactions.set(reimburses, [...(ofTransactions.get(reimburses) ?? []), payoutId]);
      }
      for (const [at, input] of request.inputs.entries()) {
        const key = keys[at] as string;
        // a dead batch leaves its outpoints to another one
        outpoints.set(key, { batchId, amount: input.amount, path: keyPath(input) });
      }
      for (const { txid: sender, vout } of request.evm === undefined ? [] : request.inputs)
        nonces.set(`${currency} ${sender}`, Math.max(nonces.get(`${currency} ${sender}`) ?? -1, vout));
      if (request.change !== null) changes.set(currency, Math.max(changes.get(currency) ?? -1, request.change.index));
      for (const [what, now] of leavesOf(signed)) {
        const key = `${batchId} ${what}`;
        const before = highest.get(key) ?? 0n;
        highest.set(key, greatest(before, now));
        all.push({ currency: what, atMs, amount: atLeastZero(minus(now, before)) });
      }
    },
    ofBatch: (batchId) => batches.get(batchId) ?? [],
    batchOfPayout: (payoutId) => payouts.get(payoutId) ?? null,
    reimbursementsOf(transactionId, currency, others) {
      const ids = new Set([...(ofTransactions.get(transactionId) ?? []), ...others]);
      return [...ids].flatMap((id) => reimbursements.get(id) ?? []).filter((one) => one.currency === currency);
    },
    outpoint: (key) => outpoints.get(key) ?? null,
    highestChange: (currency) => changes.get(currency) ?? -1,
    highestNonce: (currency, sender) => nonces.get(`${currency} ${sender}`) ?? null,
    leavingOf: (batchId, currency) => highest.get(`${batchId} ${currency}`) ?? 0n,
    leaving: () => all,
  };
}

/** Of a signed transaction: what it takes of our money. */
type Takes = {
  readonly request: {
    readonly currency: string;
    readonly outputs: readonly { readonly amount: bigint | string }[];
    readonly evm?: { readonly gas: number; readonly maxFee: bigint | string; readonly purpose?: 'sweep' | 'top_up' };
  };
  readonly fee: bigint | string;
};

/** The most that a transaction lets leave, by currency. On Ethereum's chain gas is ether, whatever its payout is charged for it. */
export function leavesOf({ request, fee }: Takes): readonly (readonly [currency: CurrencyCode, amount: bigint])[] {
  const { evm } = request;
  const currency = request.currency as CurrencyCode;
  const paid = sum(request.outputs.map((output) => BigInt(output.amount)));
  if (evm === undefined) return [[currency, plus(paid, BigInt(fee))]];
  const gas = gasOf(evm);
  // what is moved stays ours: only gas leaves, and ether for gas
  if (evm.purpose === 'sweep') return [[ETHER, gas]];
  if (currency === ETHER) return [[ETHER, plus(paid, greatest(gas, BigInt(fee)))]];
  return [
    [currency, plus(paid, BigInt(fee))],
    [ETHER, gas],
  ];
}

/** The most that a transaction's gas costs, in wei. */
export function gasOf(call: { readonly gas: number; readonly maxFee: bigint | string }): bigint {
  return BigInt(call.gas) * BigInt(call.maxFee);
}

/** What an outpoint is known by in {@link SignatureIndex}; chains may have outpoints of the same name. */
export function outpointKey(currency: string, input: { readonly txid: string; readonly vout: number }): string {
  return `${currency} ${input.txid}:${input.vout}`;
}

/** Where an input's key is: it decides the script. */
export function keyPath(input: { readonly xpub: string; readonly chain: number; readonly index: number }): string {
  return `${input.xpub.slice(-12)}/${input.chain}/${input.index}`;
}

/** Of everything that decides the bytes: not of the lease, which may have passed to another worker meanwhile. */
export function contentHash(content: Content): string {
  const inputs = content.inputs.map((one) => [one.txid, one.vout, one.amount, one.xpub, one.chain, one.index]);
  const outputs = content.outputs.map((one) => [
    one.payoutId,
    one.script,
    one.amount,
    ...(one.total === undefined ? [] : [one.total]),
  ]);
  const change = content.change === null ? null : [content.change.index, content.change.amount];
  const { evm } = content;
  // what its payout is charged is not in the bytes
  const call =
    evm === undefined ? [] : [[evm.contract, evm.gas, evm.maxFee, evm.tip, ...(evm.purpose === undefined ? [] : [evm.purpose])]];
  return hashOf([content.currency, content.batchId, content.number, inputs, outputs, change, ...call]);
}

/** What a batch's transactions have in common: of a reimbursement, whose amount depends on the fee, what it takes with its fee. */
export function payeesHash(content: Pick<Content, 'outputs'>): string {
  const payees = content.outputs.map(({ payoutId, script, amount, total }) =>
    total === undefined ? `${payoutId} ${script} ${amount}` : `${payoutId} ${script} whole ${total}`,
  );
  return hashOf(payees.sort());
}

function hashOf(value: unknown): string {
  return createHash('sha256').update(JSON.stringify(value)).digest('base64');
}
