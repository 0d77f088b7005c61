// Signs transactions, one after the other: reads what it must check, applies the rules, signs, and has the signature on disk before it answers.
import { evmAddressOf } from '../core/currencies/evm.ts';
import { type CurrencyCode, chainNetwork, evmRow, type Network } from '../core/currency.ts';
import { transferCall } from '../core/evm/transaction.ts';
import { plus } from '../core/money.ts';
import type { SignedTransaction, SignerReplies } from '../core/signer-wire.ts';
import { readSigningFacts } from '../store/payouts/signing-facts.ts';
import type { Database } from '../store/postgres/connect.ts';
import {
  checkEvmFee,
  checkEvmForm,
  checkNonce,
  checkReplacement,
  checkSweepAmounts,
  checkSweepFacts,
  checkSweepForm,
  noncesAfter,
} from './evm-rules.ts';
import type { Keyring } from './keyring.ts';
import { checkLimits, dated, type SignerLimits, timeOf, withinLimits } from './limits.ts';
import { hotAddressOf, scriptsOf } from './own-scripts.ts';
import { createShownOutputs, type ShownOutputs } from './previous-outputs.ts';
import { SigningRefused } from './refused.ts';
import {
  type EvmSigningRequest,
  isOnEvm,
  isSweep,
  RequestMalformed,
  readShown,
  readSigningRequest,
  type SigningRequest,
  type SweepSigningRequest,
} from './request.ts';
import {
  checkAmounts,
  checkChange,
  checkConflicts,
  checkFacts,
  checkFee,
  checkForm,
  checkJournal,
  checkReimbursed,
  checkStops,
  repeatedSignature,
  withReimbursed,
} from './rules.ts';
import { type Leaving, leavesOf, outpointKey, type SignatureIndex } from './signature-index.ts';
import type { SignatureJournal } from './signature-journal.ts';
import { type InputSigner, inputSigner, type Signed, signEvm, type TransactionParts, transactionSigner } from './transaction.ts';
import { createTurns, type Turns } from './turns.ts';

export type SigningOptions = {
  readonly keyring: Keyring;
  /** Under the role bursar_signer. */
  readonly db: Database;
  /** The journal, opened when it is first needed. */
  readonly journal: () => Promise<SignatureJournal>;
  /** The public keys of APIs whose intents count. */
  readonly intentKeys: () => Promise<readonly string[]>;
  readonly limits: SignerLimits;
  /** Limits are compared, and what leaves is written down, alone: on chains and over Lightning one after the other. */
  readonly countedAlone: Turns;
  /** What left and is not in this journal, as over Lightning: the limits are of all of it together. Absent: nothing has. */
  readonly leftBesides?: () => Promise<readonly Leaving[]>;
  /** Looks for what was counted over Lightning and did not leave; whether there was any. */
  readonly giveBackFailed?: () => Promise<boolean>;
  /** The contract of USDT by the signer's own settings, lower case; null where it has none. */
  readonly tokenContract: string | null;
  /** The system's clock. */
  readonly now: () => number;
  /** A clock that nobody sets; absent: that of this process. */
  readonly steady?: () => number;
  /** Called when a signature is on disk and nobody was answered: tests stop the process there (main/sandbox/failpoints). */
  readonly reached?: (step: 'journalled') => Promise<void>;
};

export type Signing = {
  /** @throws RequestMalformed, SigningRefused, SeedTrouble */
  sign(message: unknown): Promise<SignedTransaction>;
  /** Remembers what a transaction has made, for a request that comes without it. @throws RequestMalformed */
  show(message: unknown): { readonly txid: string };
  /** The public keys of APIs whose intents count. */
  intentKeys(): Promise<readonly string[]>;
  /** What was signed after a sequence number (of one batch where it is named), when everything that was asked for before is signed. */
  signed(after: number, batchId: string | null): Promise<SignerReplies['signed']>;
};

/** How many signatures, and about how many bytes of them, one answer has at most. */
const PAGE = 200;
const PAGE_BYTES = 2_000_000;

/**
 * Signs what a request asks for if every rule of `rules` allows it, one at a time; the same request again gets the same bytes, from the
 * journal.
 */
export function createSigning(options: SigningOptions): Signing {
  const { keyring } = options;
  /** One at a time: the rules of the second see what the first has signed. */
  const inTurn = createTurns();
  const shown = createShownOutputs();

  async function sign(request: SigningRequest<CurrencyCode>): Promise<SignedTransaction> {
    const journal = await options.journal();
    const repeated = repeatedSignature(request, journal.index);
    if (repeated !== null) return journal.read(repeated);
    const { make, fee, wire, checkLeaving } = await checkedAny({ ...options, shown }, request, journal);
    const entry = await options.countedAlone(async () => {
      await checkLeaving();
      const signed = await keyring.spend(request.currency, (account) => make(inputSigner(account, request)));
      if (signed === null) throw new SigningRefused('keys', 'there is no seed');
      const parts = { request: wire, ...signed, fee: fee.toString() };
      return dated(options, journal.index, (signedAtMs) => journal.append({ ...parts, signedAtMs }));
    });
    await options.reached?.('journalled');
    return entry;
  }

  return {
    intentKeys: options.intentKeys,
    async sign(message) {
      const request = readSigningRequest(message);
      const signed = () => inTurn(() => sign(request));
      if (isOnEvm(request)) return signed();
      // outside of the turn: a Lightning node that hangs must not keep the other currencies from being signed
      return withinLimits(signed, async () => (await options.giveBackFailed?.()) ?? false);
    },
    show(message) {
      const { raw, inputs } = readShown(message);
      const txid = shown.add(raw, inputs);
      if (txid === null) throw new RequestMalformed('raw must be a raw transaction in hex');
      return { txid };
    },
    signed: (after, batchId) => inTurn(async () => page(await options.journal(), after, batchId)),
  };
}

type Checked = {
  readonly make: (keys: InputSigner) => Signed;
  readonly fee: bigint;
  readonly wire: SigningRequest['wire'];
  /** Throws where it would be more than the limits allow, as everything counts at that moment. */
  readonly checkLeaving: () => Promise<void>;
};

type Checking = SigningOptions & { readonly shown: ShownOutputs };

function checkedAny(options: Checking, request: SigningRequest<CurrencyCode>, journal: SignatureJournal): Promise<Checked> {
  if (!isOnEvm(request)) return checked(options, request as SigningRequest, journal);
  return isSweep(request) ? checkedSweep(options, request, journal) : checkedEvm(options, request, journal);
}

/** Applies every rule that needs no signature but for the limits; returns what makes the signature, with the fee. */
async function checked(options: Checking, request: SigningRequest, { index }: SignatureJournal): Promise<Checked> {
  const { keyring, limits, leftBesides } = options;
  const { currency, batchId, inputs, outputs, change } = request;
  const account = await accountOf(keyring, currency);
  checkForm(request, account.xpub);
  const scripts = scriptsOf({ ...account, currency });
  const inputScripts = inputs.map((input) => scripts(input.chain, input.index));
  checkAmounts(request, (at) => inputScripts[at] as Uint8Array, options.shown);
  const facts = await checkedFacts(options, request, index);
  checkChange(request, index);
  checkStops(request, facts, index);
  const { fee, each } = checkFee(request, facts);
  const payouts = outputs.map(({ payoutId, amount }, at) => ({ id: payoutId, amount: plus(amount, each[at] ?? 0n) }));
  async function checkLeaving(): Promise<void> {
    const leaving = { network: keyring.network, currency, batchId, payouts, ...timeOf(options) };
    checkLimits(limits, leaving, index, await leftBesides?.());
  }
  const signTransaction = await transactionSigner(currency);
  const parts: TransactionParts = {
    inputs: inputs.map(({ txid, vout, amount }, at) => ({ txid, vout, amount, script: inputScripts[at] as Uint8Array })),
    outputs: [
      ...outputs.map(({ script, amount }) => ({ script: Uint8Array.from(Buffer.from(script, 'hex')), amount })),
      // the signer derives it itself: nobody can say where change goes
      ...(change === null ? [] : [{ script: scripts(1, change.index), amount: change.amount }]),
    ],
  };
  return { make: (keys) => signTransaction(parts, keys), fee, wire: withReimbursed(request.wire, facts), checkLeaving };
}

/** The same for Ethereum's chain. */
async function checkedEvm(options: SigningOptions, request: EvmSigningRequest, { index }: SignatureJournal): Promise<Checked> {
  const { keyring, tokenContract } = options;
  const { currency } = request;
  const account = await accountOf(keyring, currency);
  checkEvmForm(request, { xpub: account.xpub, hot: hotAddressOf({ ...account, currency }), tokenContract });
  const facts = await checkedFacts(options, request, index);
  checkReplacement(request, index);
  checkNonce(request, facts, index);
  checkStops(request, facts, index);
  const fee = checkEvmFee(request, facts);
  const checkLeaving = () => checkEvmLeaving(options, request, fee, index);
  return { make: makerOf(request, keyring.network), fee, wire: withReimbursed(request.wire, facts), checkLeaving };
}

/** The same for what moves between our own addresses there: no intent, no hold, and nowhere else. */
async function checkedSweep(
  options: SigningOptions,
  request: SweepSigningRequest,
  { index }: SignatureJournal,
): Promise<Checked> {
  const { keyring, db, tokenContract } = options;
  const { network } = keyring;
  checkSweepForm(request, { network, accounts: (await keyring.accounts()) ?? [], tokenContract });
  const fee = checkSweepAmounts(request);
  const facts = await factsFor(db, request, index);
  checkSweepFacts(request, facts);
  checkJournal(facts, index);
  checkConflicts(request, index, facts.batches);
  checkReplacement(request, index);
  checkNonce(request, facts, index);
  checkStops(request, facts, index);
  const checkLeaving = () => checkEvmLeaving(options, request, fee, index);
  return { make: makerOf(request, network), fee, wire: request.wire, checkLeaving };
}

/** Its limits, and those of ether for its gas: what its payout is charged for that is the worker's word. */
async function checkEvmLeaving(
  options: SigningOptions,
  { wire, batchId, outputs }: EvmSigningRequest,
  fee: bigint,
  index: SignatureIndex,
): Promise<void> {
  const { keyring, limits, leftBesides } = options;
  const leaving = { network: keyring.network, batchId, ...timeOf(options) };
  const besides = await leftBesides?.();
  for (const [currency, amount] of leavesOf({ request: wire, fee }))
    checkLimits(limits, { ...leaving, currency, payouts: [{ id: outputs[0].payoutId, amount }] }, index, besides);
}

/** Signs the call of a request whose rules were applied. */
function makerOf({ currency, evm, inputs, outputs }: EvmSigningRequest, network: Network): Checked['make'] {
  const [{ amount, script }] = outputs;
  const payee = evmAddressOf(script);
  const { contract, gas, maxFee, tip } = evm;
  const call = {
    chainId: evmRow(currency).evm.chainId[chainNetwork(network)],
    nonce: inputs[0].vout,
    tip,
    maxFee,
    gas,
    ...(contract === null
      ? { to: payee, value: amount, input: '0x' }
      : { to: contract, value: 0n, input: transferCall(payee, amount) }),
  };
  return (keys) => signEvm(call, keys);
}

/** The account of the signer's seed that a currency leaves from. */
async function accountOf(keyring: Keyring, currency: CurrencyCode) {
  const account = (await keyring.accounts())?.find((one) => one.currency === currency);
  if (account === undefined) throw new SigningRefused('keys', `the signer has no account of ${currency}`);
  return account;
}

/** What a request for payouts is compared with on every chain: the database, as the signer reads it itself, the intents and the journal. */
async function checkedFacts(
  { keyring, db, intentKeys }: SigningOptions,
  request: SigningRequest<CurrencyCode>,
  index: SignatureIndex,
) {
  const facts = await factsFor(db, request, index);
  const trust = { network: keyring.network, intentKeys: await intentKeys() };
  checkFacts(request, facts, trust);
  checkJournal(facts, index);
  checkConflicts(request, index, facts.batches);
  checkReimbursed(request, facts, index, trust);
  return facts;
}

/** Reads what a request is compared with. */
function factsFor(db: Database, { currency, batchId, inputs, outputs }: SigningRequest<CurrencyCode>, index: SignatureIndex) {
  const knownBatches = inputs.map((input) => index.outpoint(outpointKey(currency, input))?.batchId ?? batchId);
  return readSigningFacts(db, {
    batchId,
    otherBatches: [...new Set(knownBatches)].filter((one) => one !== batchId),
    payoutIds: outputs.map(({ payoutId }) => payoutId),
    nonces: noncesAfter(currency, inputs, index),
  });
}

async function page(journal: SignatureJournal, after: number, batchId: string | null): Promise<SignerReplies['signed']> {
  const wanted =
    batchId === null
      ? Array.from({ length: Math.max(0, Math.min(PAGE + 1, journal.count() - after)) }, (_, at) => after + 1 + at)
      : journal.index
          .ofBatch(batchId)
          .map((one) => one.sequence)
          .filter((sequence) => sequence > after);
  const transactions: SignedTransaction[] = [];
  let bytes = 0;
  for (const sequence of wanted) {
    if (transactions.length === PAGE || bytes > PAGE_BYTES) return { transactions, more: true };
    const signed = await journal.read(sequence);
    bytes += JSON.stringify(signed).length;
    transactions.push(signed);
  }
  return { transactions, more: false };
}
