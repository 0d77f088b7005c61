// Reads what an Ethereum node answers: blocks, receipts and traces, as the Execution API specification writes them. Every field is checked
// before it is used, so that a wrong answer is an error and never a payment.
import { Malformed } from '../utxo/bytes.ts';

export type EvmTransaction = {
  /** 0x and 64 digits, lower case. */
  readonly hash: string;
  readonly from: string;
  /** Null: it creates a contract. */
  readonly to: string | null;
  readonly value: bigint;
  readonly nonce: number;
  /** The call data, 0x and digits. */
  readonly input: string;
};

export type EvmHeader = {
  readonly hash: string;
  readonly previousHash: string;
  readonly height: number;
  readonly timeMs: number;
};
export type EvmBlock = EvmHeader & {
  readonly transactions: readonly EvmTransaction[];
  /** Who gets what the transactions offer for their place (`miner`); null where the node does not say. */
  readonly feeRecipient: string | null;
  /** Wei for each unit of gas that nobody gets; 0 before there was such a fee (EIP-1559). */
  readonly baseFee: bigint;
  /** What validators take out of their stake (EIP-4895), in their order, in wei. */
  readonly withdrawals: readonly InternalTransfer[];
};

export type EvmLog = { readonly address: string; readonly topics: readonly string[]; readonly data: string };
export type EvmReceipt = {
  readonly succeeded: boolean;
  readonly logs: readonly EvmLog[];
  /** Units; null where the node does not say. */
  readonly gasUsed: bigint | null;
  /** Wei; null where the node does not say. */
  readonly gasPaid: bigint | null;
};

/** Asks a node, and reads what it answers. @throws NodeTrouble, RpcRefusal */
export type Asked = <T>(
  method: string,
  params: readonly unknown[],
  read: (answer: unknown) => T,
  mostBytes?: number,
) => Promise<T>;

/** Ether that code moved inside a transaction, in the order of execution; only where everything around it succeeded. */
export type InternalTransfer = { readonly to: string; readonly value: bigint };

const HASH = /^0x[0-9a-fA-F]{64}$/;
const ADDRESS = /^0x[0-9a-fA-F]{40}$/;
const QUANTITY = /^0x(?:0|[1-9a-fA-F][0-9a-fA-F]{0,63})$/;
const DATA = /^0x(?:[0-9a-fA-F]{2})*$/;
/** Far above every height and nonce, within the 32 bits of the database. */
const MOST = 2_000_000_000;
/** The time of a header that the database can hold. */
const LATEST_SECONDS = 0xffffffff;

type Fields = Readonly<Record<string, unknown>>;

/**
 * The fields of an object.
 * @param what names it in the error; each reader of this file throws Malformed.
 */
export function asFields(value: unknown, what: string): Fields {
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as Fields;
  throw new Malformed(`${what} is no object`);
}
/** An array, its items unread. */
export function asList(value: unknown, what: string): readonly unknown[] {
  if (Array.isArray(value)) return value;
  throw new Malformed(`${what} is no list`);
}
/** 32 bytes as `0x` and 64 hexadecimal digits, in lower case. */
export function asHash(value: unknown, what: string): string {
  if (typeof value === 'string' && HASH.test(value)) return value.toLowerCase();
  throw new Malformed(`${what} is no hash`);
}
/** 20 bytes as `0x` and 40 hexadecimal digits, in lower case; the EIP-55 checksum is not looked at, nodes do not write it. */
export function asAddress(value: unknown, what: string): string {
  if (typeof value === 'string' && ADDRESS.test(value)) return value.toLowerCase();
  throw new Malformed(`${what} is no address`);
}
/** A number as Ethereum's JSON-RPC writes it (`0x`, hexadecimal, no leading zero). */
export function asQuantity(value: unknown, what: string): bigint {
  if (typeof value === 'string' && QUANTITY.test(value)) return BigInt(value);
  throw new Malformed(`${what} is no quantity`);
}
/**
 * A quantity that fits a number.
 * @param most the largest that is believed
 */
export function asNumber(value: unknown, what: string, most = MOST): number {
  const number = asQuantity(value, what);
  if (number <= BigInt(most)) return Number(number);
  throw new Malformed(`${what} is too large`);
}

/** The header in an answer of `eth_getBlockByHash` or `eth_getBlockByNumber`; time in milliseconds. */
export function readHeader(value: unknown): EvmHeader {
  const { hash, parentHash, number, timestamp } = asFields(value, 'the block');
  return {
    hash: asHash(hash, 'hash'),
    previousHash: asHash(parentHash, 'parentHash'),
    height: asNumber(number, 'number'),
    timeMs: asNumber(timestamp, 'timestamp', LATEST_SECONDS) * 1000,
  };
}

/** A block with its whole transactions, and what it pays without one. */
export function readBlock(value: unknown): EvmBlock {
  const header = readHeader(value);
  const { transactions: all, miner, baseFeePerGas, withdrawals } = asFields(value, 'the block');
  const listed = asList(all, 'transactions');
  const transactions = listed.map((one, at) => {
    const { blockHash, transactionIndex } = asFields(one, 'a transaction');
    if (asHash(blockHash, 'blockHash') !== header.hash) throw new Malformed('a transaction names another block');
    if (asNumber(transactionIndex, 'transactionIndex') !== at) throw new Malformed('its transactions are out of order');
    return readTransaction(one);
  });
  return {
    ...header,
    transactions,
    feeRecipient: isAbsent(miner) ? null : asAddress(miner, 'miner'),
    baseFee: isAbsent(baseFeePerGas) ? 0n : asQuantity(baseFeePerGas, 'baseFeePerGas'),
    withdrawals: isAbsent(withdrawals) ? [] : asList(withdrawals, 'withdrawals').map(readWithdrawal),
  };
}

const isAbsent = (value: unknown): value is null | undefined => value === null || value === undefined;
const WEI_PER_GWEI = 1_000_000_000n;

function readWithdrawal(value: unknown): InternalTransfer {
  const { address, amount } = asFields(value, 'a withdrawal');
  return {
    to: asAddress(address, 'the address of a withdrawal'),
    value: asQuantity(amount, 'the amount of a withdrawal') * WEI_PER_GWEI,
  };
}

/** The kinds that there are (EIP-2718, up to EIP-7702's), whose fields are known; very old nodes do not name them. */
const KNOWN_KINDS: readonly unknown[] = [undefined, '0x0', '0x1', '0x2', '0x3', '0x4'];

/**
 * A transaction in an answer of `eth_getBlockBy…` or `eth_getTransactionByHash`: value in wei, `to` null where it makes a contract. Nodes
 * call its data `input` or `data`. One of a kind to come may lack some of these, and must not stop the chain: it pays nothing by itself then.
 */
export function readTransaction(value: unknown): EvmTransaction {
  const { hash, from, to, value: amount, nonce, input, data, type } = asFields(value, 'a transaction');
  const isKnown = KNOWN_KINDS.includes(type);
  const called = input ?? data ?? (isKnown ? undefined : '0x');
  const wei = amount ?? (isKnown ? undefined : '0x0');
  if (typeof called !== 'string' || !called.startsWith('0x')) throw new Malformed('input is no data');
  return {
    hash: asHash(hash, 'a transaction hash'),
    from: asAddress(from, 'from'),
    to: to === null || to === undefined ? null : asAddress(to, 'to'),
    value: asQuantity(wei, 'value'),
    nonce: asNumber(nonce, 'nonce'),
    input: called,
  };
}

/** The receipts of a block, one for each transaction in its order. */
export function readReceipts(value: unknown, block: EvmBlock): readonly EvmReceipt[] {
  const listed = asList(value, 'the list of receipts');
  if (listed.length !== block.transactions.length)
    throw new Malformed(`${listed.length} receipts for ${block.transactions.length} transactions`);
  return listed.map((one, at) => readReceipt(one, { txid: (block.transactions[at] as EvmTransaction).hash, hash: block.hash }));
}

/** The receipt of one transaction. @param of the transaction, and the block that has it */
export function readReceipt(value: unknown, { txid, hash }: { readonly txid: string; readonly hash: string }): EvmReceipt {
  if (value === null) throw new Malformed(`a mined transaction, ${txid}, has no receipt`);
  const { transactionHash, blockHash, status, logs, gasUsed, effectiveGasPrice } = asFields(value, 'a receipt');
  if (asHash(transactionHash, 'transactionHash') !== txid) throw new Malformed('a receipt is of another transaction');
  if (asHash(blockHash, 'blockHash') !== hash) throw new Malformed('a receipt is of another block');
  const succeeded = asNumber(status, 'status', 1) === 1;
  const all = asList(logs, 'logs').map((log) => readLog(log, hash));
  if (!succeeded && all.length > 0) throw new Malformed('a failed transaction has logs');
  const isTold = gasUsed !== undefined && effectiveGasPrice !== undefined;
  const used = isTold ? asQuantity(gasUsed, 'gasUsed') : null;
  const gasPaid = used === null ? null : used * asQuantity(effectiveGasPrice, 'effectiveGasPrice');
  return { succeeded, logs: all, gasUsed: used, gasPaid };
}

function readLog(value: unknown, hash: string): EvmLog {
  const { address, topics, data, blockHash, removed } = asFields(value, 'a log');
  if (removed === true || asHash(blockHash, 'blockHash') !== hash) throw new Malformed('a log is not of this block');
  if (typeof data !== 'string' || !DATA.test(data)) throw new Malformed('the data of a log is no data');
  const all = asList(topics, 'topics');
  if (all.length > 4) throw new Malformed('a log has more than four topics');
  return { address: asAddress(address, 'the address of a log'), topics: all.map((topic) => asHash(topic, 'a topic')), data };
}

/**
 * What geth's callTracer shows of a block (debug_traceBlockByHash): for each transaction the ether that calls, creations and self-destructions
 * moved, without the transaction's own value. A frame that failed moved nothing, nor did anything below it.
 */
export function readCallTraces(value: unknown, block: EvmBlock): readonly (readonly InternalTransfer[])[] {
  const listed = asList(value, 'the list of traces');
  if (listed.length !== block.transactions.length)
    throw new Malformed(`${listed.length} traces for ${block.transactions.length} transactions`);
  return listed.map((one, at) => {
    const { txHash, result, error } = asFields(one, 'a trace');
    if (txHash !== undefined && asHash(txHash, 'txHash') !== block.transactions[at]?.hash)
      throw new Malformed('a trace is of another transaction');
    if (result === undefined)
      throw new Malformed(`a transaction was not traced (${typeof error === 'string' ? error : 'no reason'})`);
    const found: InternalTransfer[] = [];
    const root = asFields(result, 'a trace');
    if (root.error === undefined) collectFrames(root, found);
    return found;
  });
}

/** Frames that move their value; a delegated call repeats that of its caller, and moves nothing. */
const MOVING = new Set(['CALL', 'CREATE', 'CREATE2', 'SELFDESTRUCT']);

/** In the order of execution, without recursion: strangers choose how deep their calls are. */
function collectFrames(root: Fields, found: InternalTransfer[]): void {
  const waiting: unknown[] = callsOf(root);
  while (waiting.length > 0) {
    const frame = asFields(waiting.pop(), 'a frame');
    if (frame.error !== undefined) continue;
    const { type, to, value } = frame;
    if (typeof type === 'string' && MOVING.has(type) && value !== undefined && to !== undefined) {
      const wei = asQuantity(value, 'the value of a frame');
      if (wei > 0n) found.push({ to: asAddress(to, 'the address of a frame'), value: wei });
    }
    for (const call of callsOf(frame)) waiting.push(call);
  }
}
/** The last first: they are taken from the end. */
function callsOf({ calls }: Fields): unknown[] {
  return calls === undefined || calls === null ? [] : [...asList(calls, 'calls')].reverse();
}

/** The same from trace_block of Erigon, Nethermind and Reth: a flat list of all frames of a block, each with its place in the tree. */
export function readFlatTraces(value: unknown, block: EvmBlock): readonly (readonly InternalTransfer[])[] {
  const places = new Map(block.transactions.map(({ hash }, at) => [hash, at]));
  const found: InternalTransfer[][] = block.transactions.map(() => []);
  const seen = block.transactions.map(() => false);
  const failed = block.transactions.map((): Failed => ({ below: new Map(), isFailed: false }));
  for (const one of asList(value, 'the list of traces')) {
    const { type, action, error, blockHash, transactionHash, traceAddress } = asFields(one, 'a trace');
    if (asHash(blockHash, 'blockHash') !== block.hash) throw new Malformed('a trace is of another block');
    if (type === 'reward') continue;
    const at = places.get(asHash(transactionHash, 'transactionHash'));
    if (at === undefined) throw new Malformed('a trace is of a transaction that is not in this block');
    seen[at] = true;
    const path = asList(traceAddress, 'traceAddress');
    if (error !== undefined && error !== null) markFailed(failed[at] as Failed, path);
    if (path.length === 0 || isInFailed(failed[at] as Failed, path)) continue;
    const moved = movedByAction(type, asFields(action, 'action'), asFields(one, 'a trace'));
    if (moved !== null && moved.value > 0n) (found[at] as InternalTransfer[]).push(moved);
  }
  if (seen.includes(false)) throw new Malformed('a transaction was not traced');
  return found;
}

/** The frames of a transaction that failed, by their places in its tree; what lies below one of them failed with it. */
type Failed = { readonly below: Map<unknown, Failed>; isFailed: boolean };

function markFailed(root: Failed, path: readonly unknown[]): void {
  let frame = root;
  for (const place of path) {
    const next: Failed = frame.below.get(place) ?? { below: new Map(), isFailed: false };
    frame.below.set(place, next);
    frame = next;
  }
  frame.isFailed = true;
}

function isInFailed(root: Failed, path: readonly unknown[]): boolean {
  let frame: Failed | undefined = root;
  for (const place of path) {
    if (frame.isFailed) return true;
    frame = frame.below.get(place);
    if (frame === undefined) return false;
  }
  return frame.isFailed;
}

function movedByAction(type: unknown, action: Fields, trace: Fields): InternalTransfer | null {
  if (type === 'call' && action.callType === 'call')
    return { to: asAddress(action.to, 'to'), value: asQuantity(action.value, 'value') };
  if (type === 'suicide')
    return { to: asAddress(action.refundAddress, 'refundAddress'), value: asQuantity(action.balance, 'balance') };
  if (type === 'create') {
    const { address } = asFields(trace.result, 'result');
    return { to: asAddress(address, 'address'), value: asQuantity(action.value, 'value') };
  }
  return null;
}
