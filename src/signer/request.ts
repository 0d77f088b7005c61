// Reads a request for a signature. Nothing that comes over the socket is believed, not even that it has the right form.
import { END_OF_INDEXES } from '../core/account-key.ts';
import { GAS } from '../core/currencies/evm.ts';
import { CURRENCY_CODES, type CurrencyCode, type EvmCode, isUtxo, type UtxoCode } from '../core/currency.ts';
import { sum } from '../core/money.ts';
import type { Outpoint } from '../core/ports.ts';
import type { TransactionToSign } from '../core/signer-wire.ts';

export type RequestedInput = {
  readonly txid: string;
  readonly vout: number;
  readonly amount: bigint;
  readonly xpub: string;
  readonly chain: 0 | 1;
  readonly index: number;
};
export type RequestedOutput = {
  readonly payoutId: string;
  readonly script: string;
  readonly amount: bigint;
  /** Of a reimbursement: its amount and its share of the fee. Null for a payout. */
  readonly total: bigint | null;
};

/** Of a transaction on Ethereum's chain, amounts in wei but for `fee`. */
type RequestedCall = {
  readonly contract: string | null;
  readonly gas: number;
  readonly maxFee: bigint;
  readonly tip: bigint;
  readonly fee: bigint;
  /** Null for one that pays a payout. */
  readonly purpose: 'sweep' | 'top_up' | null;
  /** Of a top-up: the address of ours. `chain` 1: the one that payouts leave from; absent: of a receiving chain. */
  readonly payee: { readonly currency: EvmCode; readonly index: number; readonly chain?: 1 } | null;
};

/** A request in the forms that the rules calculate with; `wire` is the same as it came, without the previous transactions. */
export type SigningRequest<Code extends CurrencyCode = UtxoCode> = {
  readonly wire: Omit<TransactionToSign, 'previous'>;
  readonly currency: Code;
  readonly evm: RequestedCall | null;
  readonly batchId: string;
  readonly number: number;
  readonly leaseEpoch: bigint;
  readonly inputs: readonly RequestedInput[];
  readonly outputs: readonly RequestedOutput[];
  readonly change: { readonly index: number; readonly amount: bigint } | null;
  readonly previous: readonly string[];
  /** What the inputs hold, and what the payees get. */
  readonly total: bigint;
  readonly paid: bigint;
};

/** One input, which is sender and nonce, and one output. */
export type EvmSigningRequest = SigningRequest<EvmCode> & {
  readonly evm: RequestedCall;
  readonly inputs: readonly [RequestedInput];
  readonly outputs: readonly [RequestedOutput];
};
export type SweepSigningRequest = EvmSigningRequest & { readonly evm: { readonly purpose: 'sweep' | 'top_up' } };

/** Whether it moves money between our own addresses (a sweep or a top-up) and pays no payout. */
export function isSweep(request: EvmSigningRequest): request is SweepSigningRequest {
  return request.evm.purpose !== null;
}

/** Whether it is for Ethereum's chain, where a nonce takes the place of inputs. */
export function isOnEvm(request: SigningRequest<CurrencyCode>): request is EvmSigningRequest {
  return request.evm !== null;
}

/** A request of another form; the message names the field and what is accepted. */
export class RequestMalformed extends Error {}

const MOST_INPUTS = 500;
const MOST_OUTPUTS = 2_000;
const TXID = /^[0-9a-f]{64}$/;
const AMOUNT = /^[1-9]\d{0,29}$/;
const ID = /^[\x21-\x7e]{1,100}$/;
const SCRIPT = /^([0-9a-f]{2}){1,100}$/;
const RAW = /^([0-9a-f]{2}){10,4000000}$/;

type Fields = Readonly<Record<string, unknown>>;

/** @throws RequestMalformed */
export function readSigningRequest(message: unknown): SigningRequest<CurrencyCode> {
  const fields = objectOf(message, 'the request');
  const currency = CURRENCY_CODES.find((code) => code === fields.currency);
  if (currency === undefined) throw new RequestMalformed(`currency must be one of ${CURRENCY_CODES.join(', ')}`);
  const evm = isUtxo(currency) ? null : callOf(fields.evm);
  const inputs = listOf(fields.inputs, 'inputs', MOST_INPUTS).map(inputOf);
  const outputs = listOf(fields.outputs, 'outputs', MOST_OUTPUTS).map(outputOf);
  if (inputs.length === 0 || outputs.length === 0) throw new RequestMalformed('inputs and outputs must not be empty');
  const change = fields.change === null ? null : changeOf(fields.change);
  if (evm !== null && (inputs.length !== 1 || outputs.length !== 1 || change !== null))
    throw new RequestMalformed(`a transaction of ${currency} has one input, one output and no change`);
  const batchId = textOf(fields.batchId, 'batchId', ID, 'printable characters, at most 100');
  const number = wholeOf(fields.number, 'number', 1, 100_000);
  const leaseEpoch = textOf(fields.leaseEpoch, 'leaseEpoch', /^\d{1,18}$/, 'a whole number as text');
  const previous = fields.previous === undefined ? [] : listOf(fields.previous, 'previous', MOST_INPUTS);
  return {
    wire: {
      currency,
      batchId,
      number,
      leaseEpoch,
      inputs: inputs.map((input) => ({ ...input, amount: input.amount.toString() })),
      outputs: outputs.map(({ total, ...output }) => ({
        ...output,
        amount: output.amount.toString(),
        ...(total === null ? {} : { total: total.toString() }),
      })),
      change: change === null ? null : { index: change.index, amount: change.amount.toString() },
      ...(evm === null ? {} : { evm: wireOf(evm) }),
    },
    currency,
    evm,
    batchId,
    number,
    leaseEpoch: BigInt(leaseEpoch),
    inputs,
    outputs,
    change,
    previous: previous.map((raw) => textOf(raw, 'previous', RAW, 'raw transactions in hex')),
    total: sum(inputs.map((input) => input.amount)),
    paid: sum(outputs.map((output) => output.amount)),
  };
}

/** A transaction that is shown before the request that needs it. @throws RequestMalformed */
export function readShown(message: unknown): { readonly raw: string; readonly inputs: readonly Outpoint[] } {
  const fields = objectOf(message, 'the request');
  const inputs = listOf(fields.inputs, 'inputs', MOST_INPUTS).map((input) => outpointOf(objectOf(input, 'an input')));
  return { raw: textOf(fields.raw, 'raw', RAW, 'a raw transaction in hex'), inputs };
}

const wireOf = ({ purpose, payee, ...evm }: RequestedCall): NonNullable<TransactionToSign['evm']> => ({
  ...evm,
  maxFee: evm.maxFee.toString(),
  tip: evm.tip.toString(),
  fee: evm.fee.toString(),
  ...(purpose === null ? {} : { purpose }),
  ...(payee === null ? {} : { payee }),
});

function inputOf(given: unknown): RequestedInput {
  const fields = objectOf(given, 'an input');
  if (fields.chain !== 0 && fields.chain !== 1) throw new RequestMalformed('chain must be 0 or 1');
  return {
    ...outpointOf(fields),
    amount: amountOf(fields.amount),
    xpub: textOf(fields.xpub, 'xpub', /^[1-9A-HJ-NP-Za-km-z]{100,120}$/, "an account's extended public key"),
    chain: fields.chain,
    index: wholeOf(fields.index, 'index', 0, END_OF_INDEXES - 1),
  };
}

const outpointOf = (fields: Fields): Outpoint => ({
  txid: textOf(fields.txid, 'txid', TXID, '64 digits of hex'),
  vout: wholeOf(fields.vout, 'vout', 0, 0xffff_fffe),
});

function outputOf(given: unknown): RequestedOutput {
  const fields = objectOf(given, 'an output');
  return {
    payoutId: textOf(fields.payoutId, 'payoutId', ID, 'printable characters, at most 100'),
    script: textOf(fields.script, 'script', SCRIPT, 'an output script in hex'),
    amount: amountOf(fields.amount),
    total: fields.total === undefined ? null : amountOf(fields.total),
  };
}

function changeOf(given: unknown): { readonly index: number; readonly amount: bigint } {
  const fields = objectOf(given, 'change');
  return { index: wholeOf(fields.index, 'index of change', 0, END_OF_INDEXES - 1), amount: amountOf(fields.amount) };
}

function callOf(given: unknown): RequestedCall {
  const fields = objectOf(given, 'evm');
  const { purpose = null } = fields;
  if (purpose !== null && purpose !== 'sweep' && purpose !== 'top_up')
    throw new RequestMalformed('purpose must be sweep or top_up, or absent');
  if ((purpose === 'top_up') !== (fields.payee !== undefined))
    throw new RequestMalformed('a top-up names its payee, and nothing else does');
  return {
    purpose,
    payee: fields.payee === undefined ? null : payeeOf(fields.payee),
    contract:
      fields.contract === null ? null : textOf(fields.contract, 'contract', /^0x[0-9a-f]{40}$/, 'null, or 0x and 40 digits'),
    gas: wholeOf(fields.gas, 'gas', GAS.plain, GAS.most),
    maxFee: amountOf(fields.maxFee),
    tip: amountOf(fields.tip),
    fee: amountOf(fields.fee),
  };
}

function payeeOf(given: unknown): NonNullable<RequestedCall['payee']> {
  const fields = objectOf(given, 'payee');
  const currency = CURRENCY_CODES.find((code) => code === fields.currency);
  if (currency === undefined || isUtxo(currency))
    throw new RequestMalformed("the payee's currency must be one of Ethereum's chain");
  if (fields.chain !== undefined && fields.chain !== 1) throw new RequestMalformed('chain of the payee must be 1, or absent');
  const isHot = fields.chain === 1;
  const index = wholeOf(fields.index, 'index of the payee', 0, isHot ? 0 : END_OF_INDEXES - 1);
  return { currency, index, ...(isHot ? { chain: 1 } : {}) };
}

function objectOf(given: unknown, name: string): Fields {
  if (typeof given !== 'object' || given === null || Array.isArray(given))
    throw new RequestMalformed(`${name} must be an object`);
  return given as Fields;
}

function listOf(given: unknown, name: string, most: number): readonly unknown[] {
  if (Array.isArray(given) && given.length <= most) return given;
  throw new RequestMalformed(`${name} must be a list of at most ${most}`);
}

function textOf(given: unknown, name: string, form: RegExp, accepted: string): string {
  if (typeof given === 'string' && form.test(given)) return given;
  throw new RequestMalformed(`${name} must be ${accepted}`);
}

function wholeOf(given: unknown, name: string, low: number, high: number): number {
  if (typeof given === 'number' && Number.isInteger(given) && given >= low && given <= high) return given;
  throw new RequestMalformed(`${name} must be a whole number from ${low} to ${high}`);
}

function amountOf(given: unknown): bigint {
  return BigInt(textOf(given, 'amount', AMOUNT, 'whole minor units above zero as text'));
}
