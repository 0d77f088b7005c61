// Sending a transaction to a node, and what the node says a transaction costs. A refusal is sorted by what it proves: only the chain itself
// proves that a transaction can never be mined, so nothing here ends a payout.
import { greatest } from '../../../core/money.ts';
import type { SendAnswer } from '../../../core/ports.ts';
import { FEW_BYTES, orRefusal, type Rpc } from './rpc.ts';
import { NodeTrouble, RpcRefusal } from './trouble.ts';

/** Codes of Bitcoin Core's rpc/protocol.h. */
const VERIFY_ERROR = -25;
const REJECTED = -26;
const ALREADY_IN_CHAIN = -27;
const WARMING_UP = -28;

/** Another transaction in the node's mempool spends an input of it. */
const IN_CONFLICT =
  /txn-mempool-conflict|insufficient fee, rejecting replacement|tx-txlock-conflict|bad-txns-spends-conflicting-tx/i;
const KNOWN = /txn-already-(in-mempool|known)|already in block chain|already have transaction/i;
const MISSING = /missingorspent|missing inputs|missing-inputs|orphan transaction/i;
/** Our own mistake: no node will ever take these bytes. */
const INVALID =
  /bad-txns(?!-inputs-missingorspent|-spends-conflicting)|script-verify|TX decode failed|^dust|scriptpubkey|non-BIP68|version/i;

/**
 * Sends these bytes (sendrawtransaction).
 * @throws NodeTrouble when it is not known whether the node has them
 */
export async function sendTransaction(rpc: Rpc, raw: Uint8Array): Promise<SendAnswer> {
  const answer = await orRefusal(rpc.call('sendrawtransaction', [Buffer.from(raw).toString('hex')], FEW_BYTES));
  if (!(answer instanceof RpcRefusal)) return { state: 'accepted' };
  const { code, message } = answer;
  const reason = `${rpc.name}: ${message}`;
  if (code === WARMING_UP) throw new NodeTrouble('warming_up', reason, { cause: answer });
  if (code === ALREADY_IN_CHAIN || /already in utxo set/i.test(message)) return { state: 'mined' };
  if (KNOWN.test(message)) return { state: 'accepted' };
  if (IN_CONFLICT.test(message)) return { state: 'conflict', reason };
  if (code === VERIFY_ERROR || MISSING.test(message)) return { state: 'inputs_missing', reason };
  if (INVALID.test(message)) return { state: 'invalid', reason };
  if (code === REJECTED) return { state: 'policy', reason };
  throw new NodeTrouble('bad_answer', reason, { cause: answer });
}

/** Minor units of an amount in whole units as a node writes it (`0.00001`, `1e-05`), rounded up; null for anything else, and for zero. */
function minorOf(value: unknown): bigint | null {
  const whole = typeof value === 'number' || typeof value === 'string' ? Number(value) : Number.NaN;
  return Number.isFinite(whole) && whole > 0 && whole < 1_000 ? BigInt(Math.ceil(whole * 1e8 - 1e-6)) : null;
}

/** Minor units per 1,000 virtual bytes. `isEstimate`: from what blocks have taken; else what its mempool asks for at least. */
export type FeeWord = { readonly rate: bigint; readonly isEstimate: boolean };
/** As `feeRate` of the port, with what it comes from. */
export type SaysFees = { feeWord(): Promise<FeeWord | null> };

const WITHIN_BLOCKS = 6;

/**
 * What a transaction must pay to be mined within about six blocks, in minor units per 1,000 virtual bytes (estimatesmartfee, on nodes
 * without it estimatefee); where the node has no estimate, twice what its mempool asks for at least, or else what it relays. Null when it
 * says nothing of these.
 */
export async function readFeeWord(rpc: Rpc): Promise<FeeWord | null> {
  const estimated = await readEstimate(rpc);
  if (estimated !== null) return { rate: estimated, isEstimate: true };
  const asked = await readLeast(rpc);
  return asked === null ? null : { rate: asked * 2n, isEstimate: false };
}

async function readLeast(rpc: Rpc): Promise<bigint | null> {
  const pool = await orRefusal(rpc.call('getmempoolinfo', []));
  const { mempoolminfee, minrelaytxfee } = (pool instanceof RpcRefusal ? {} : (pool ?? {})) as Record<string, unknown>;
  const least = [minorOf(mempoolminfee), minorOf(minrelaytxfee)].filter((rate) => rate !== null);
  if (least.length > 0) return least.reduce(greatest);
  const network = await orRefusal(rpc.call('getnetworkinfo', []));
  return network instanceof RpcRefusal ? null : minorOf((network as { relayfee?: unknown } | null)?.relayfee);
}

async function readEstimate(rpc: Rpc): Promise<bigint | null> {
  const smart = await orRefusal(rpc.call('estimatesmartfee', [WITHIN_BLOCKS]));
  if (!(smart instanceof RpcRefusal)) return minorOf((smart as { feerate?: unknown } | null)?.feerate);
  const plain = await orRefusal(rpc.call('estimatefee', [WITHIN_BLOCKS]));
  return plain instanceof RpcRefusal ? null : minorOf(plain);
}
