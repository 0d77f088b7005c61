// A block as large as Ethereum's usual ones: 300 transactions, 600 logs, 200 of them transfers of USDT, and the frames that callTracer shows of
// it. Its texts have places in them for what differs from block to block: its hash and number, and whom it pays.
import { createHash } from 'node:crypto';

export const TRANSACTIONS = 300;
export const LOGS = 600;
const TOKEN_LOGS = 200;
/** Far enough from the chain's beginning that something is final. */
export const FIRST_TIP = 1_000;
/** Of one transaction that calls contracts, as deep as four. */
const FRAMES = 12;
/** Half of the payments of a block are in ether, every second of these sent by a contract. */
export const MOST_PAID = 40;

export const TOKEN = `0x${'da'.repeat(20)}`;
const TRANSFER = '0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef';
const NO_BLOOM = `0x${'0'.repeat(512)}`;

const md5 = (text: string): string => createHash('md5').update(text).digest('hex');
const digits = (n: number, length: number): string => n.toString(16).padStart(length, '0');

/** The nth address that may be paid, 40 digits; `fillOpen` writes the same by SQL. */
export function payee(n: number): string {
  return md5(String(n)) + md5(`x${n}`).slice(0, 8);
}
/** The hash of a block. */
export const hashOf = (height: number): string => `0x${digits(height, 64)}`;

/** `@H@` is the block's hash, `@P@` its parent's, `@N@` its number, `@U@` 16 digits of it, `@A…@` the payees. */
const PLACE = /@([HPNU]|A\d+)@/g;
type Texts = { readonly block: string; readonly receipts: string; readonly traces: string };

/** The answers for one block. @param payees addresses, 40 digits each, as many as its texts were made for */
export function answersFor(texts: Texts, height: number, payees: readonly string[]) {
  const values: Record<string, string> = {
    H: hashOf(height),
    P: hashOf(height - 1),
    N: `0x${height.toString(16)}`,
    U: digits(height, 16),
  };
  const filled = (text: string): string =>
    text.replaceAll(PLACE, (_, name: string) => values[name] ?? (payees[Number(name.slice(1))] as string));
  return { block: () => filled(texts.block), receipts: () => filled(texts.receipts), traces: () => filled(texts.traces) };
}

const hash = (at: number): string => `0x@U@${digits(at, 48)}`;
const sender = (at: number): string => `0x@U@${digits(at, 24)}`;
const stranger = (at: number): string => `0x${md5(`stranger ${at}`)}${digits(at, 8)}`;
const word = (address: string): string => `0x${'0'.repeat(24)}${address.replace('0x', '')}`;
const someData = (bytes: number, seed: string): string =>
  `0x${md5(seed)
    .repeat(Math.ceil(bytes / 16))
    .slice(0, bytes * 2)}`;

/** @param paid how many payments it brings, half of them in ether */
export function blockTexts(paid: number): Texts {
  const ether = Math.ceil(paid / 2);
  const at = Array.from({ length: TRANSACTIONS }, (_, n) => n);
  const direct = (n: number): boolean => n < ether && n % 2 === 0;
  const inner = (n: number): boolean => n < ether && n % 2 === 1;
  const transactions = at.map((n) => ({
    type: '0x2',
    chainId: '0x7a69',
    hash: hash(n),
    from: sender(n),
    to: direct(n) ? `0x@A${n}@` : stranger(n),
    nonce: '0x7',
    value: n % 2 === 0 ? '0xde0b6b3a7640000' : '0x0',
    input: n % 3 === 0 && !inner(n) ? '0x' : someData(132, `input ${n}`),
    gas: '0x30d40',
    maxFeePerGas: '0x4a817c800',
    maxPriorityFeePerGas: '0x59682f00',
    gasPrice: '0x2cb417800',
    accessList: [],
    v: '0x1',
    yParity: '0x1',
    r: someData(32, `r ${n}`),
    s: someData(32, `s ${n}`),
    blockHash: '@H@',
    blockNumber: '@N@',
    transactionIndex: `0x${n.toString(16)}`,
  }));
  const header = {
    number: '@N@',
    hash: '@H@',
    parentHash: '@P@',
    timestamp: '0x6a000000',
    miner: stranger(9_999),
    baseFeePerGas: '0x2540be400',
    gasLimit: '0x2aea540',
    gasUsed: '0x1c9c380',
    logsBloom: NO_BLOOM,
    withdrawals: Array.from({ length: 16 }, (_, n) => ({
      index: `0x${n}`,
      validatorIndex: `0x${n}`,
      address: stranger(n),
      amount: '0x119ad3a',
    })),
  };
  return {
    block: JSON.stringify({ ...header, transactions }),
    receipts: JSON.stringify(at.map((n) => receipt(n, { paid: paid - ether, ether }))),
    traces: JSON.stringify(
      at.map((n) => ({
        txHash: hash(n),
        result: frame(n, n % 3 === 0 && !inner(n) ? 0 : FRAMES, inner(n) ? `0x@A${n}@` : null),
      })),
    ),
  };
}

/** Two logs a transaction; every third is a transfer of the token. */
function receipt(n: number, { paid, ether }: { readonly paid: number; readonly ether: number }): object {
  const each = LOGS / TRANSACTIONS;
  const logs = Array.from({ length: each }, (_, k) => {
    const index = n * each + k;
    const isToken = index < TOKEN_LOGS;
    const to = index < paid ? `0x@A${ether + index}@` : stranger(index);
    return {
      address: isToken ? TOKEN : stranger(500 + index),
      topics: isToken ? [TRANSFER, word(sender(n)), word(to)] : [someData(32, `topic ${index}`), someData(32, `second ${index}`)],
      data: isToken ? `0x${digits(5_000_000, 64)}` : someData(96, `log ${index}`),
      blockNumber: '@N@',
      transactionHash: hash(n),
      transactionIndex: `0x${n.toString(16)}`,
      blockHash: '@H@',
      logIndex: `0x${index.toString(16)}`,
      removed: false,
    };
  });
  return {
    type: '0x2',
    status: '0x1',
    transactionHash: hash(n),
    transactionIndex: `0x${n.toString(16)}`,
    blockHash: '@H@',
    blockNumber: '@N@',
    from: sender(n),
    to: stranger(n),
    contractAddress: null,
    gasUsed: '0x186a0',
    cumulativeGasUsed: '0x1c9c380',
    effectiveGasPrice: '0x2cb417800',
    logsBloom: NO_BLOOM,
    logs,
  };
}

/** A chain of calls, each with its data, that ends in a transfer of ether where one is wanted. */
function frame(n: number, left: number, pays: string | null): object {
  const isLast = left === 0;
  return {
    from: stranger(left),
    to: isLast && pays !== null ? pays : stranger(left + 1),
    type: 'CALL',
    value: isLast && pays !== null ? '0x38d7ea4c68000' : '0x0',
    gas: '0x30d40',
    gasUsed: '0x186a0',
    input: isLast ? '0x' : someData(132, `call ${left}`),
    output: isLast ? '0x' : someData(32, `output ${left}`),
    ...(isLast ? {} : { calls: [frame(n, left - 1, pays)] }),
  };
}
