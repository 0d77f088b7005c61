// The rules of the currency that the bitcoind below does not have, and the words in which the currency's node refuses. Dogecoin Core puts the reject
// code of Bitcoin Core 0.14 before the reason; Dash Core gives the reason alone.
import type { CurrencyFacts } from './currencies.ts';
import type { Locks } from './locks.ts';
import { minorOf, numberOf } from './lossless.ts';

export type RpcFailure = { readonly code: number; readonly message: string };
/** Calls the bitcoind below: its result, or undefined when it refuses. */
export type AskBelow = (method: string, ...params: unknown[]) => Promise<unknown>;

type Script = { readonly type: string };
type Decoded = {
  readonly txid: string;
  readonly vin: readonly { readonly txid: string; readonly vout: unknown }[];
  readonly vout: readonly { readonly value: unknown; readonly scriptPubKey: Script }[];
};
type Output = { readonly value: unknown; readonly coinbase?: boolean; readonly confirmations?: unknown };

const INVALID = 16;
const CONFLICT = 18;
const NONSTANDARD = 64;
const FEE = 66;
const SEGWIT_MARKER = '0001';

const NOT_A_TRANSACTION: RpcFailure = { code: -22, message: 'TX decode failed' };

function rejected(facts: CurrencyFacts, reason: string, rejectCode: number): RpcFailure {
  return { code: -26, message: facts.currency === 'DOGE' ? `${rejectCode}: ${reason}` : reason };
}

/** Why the currency's node would not take a raw transaction although the bitcoind below might; null = ask that one. */
export async function objection(facts: CurrencyFacts, locks: Locks, below: AskBelow, hex: unknown): Promise<RpcFailure | null> {
  if (typeof hex !== 'string' || !/^(?:[0-9a-fA-F]{2})+$/.test(hex)) return NOT_A_TRANSACTION;
  if (hex.slice(8, 12) === SEGWIT_MARKER) return NOT_A_TRANSACTION;
  const decoded = (await below('decoderawtransaction', hex, false)) as Decoded | undefined;
  if (decoded === undefined) return NOT_A_TRANSACTION;
  // a member of the mempool is answered with its txid, whatever has changed meanwhile
  if ((await below('getmempoolentry', decoded.txid)) !== undefined) return null;
  for (const { value, scriptPubKey } of decoded.vout) {
    if (/^witness|anchor|nonstandard/.test(scriptPubKey.type)) return rejected(facts, 'scriptpubkey', NONSTANDARD);
    if (scriptPubKey.type !== 'nulldata' && minorOf(value) < facts.hardDust) return rejected(facts, 'dust', NONSTANDARD);
  }
  if (locks.refuses(decoded.txid, decoded.vin)) return { code: -26, message: 'tx-txlock-conflict' };
  const spent = await Promise.all(decoded.vin.map((input) => outputOf(below, input)));
  for (const output of spent)
    if (output?.coinbase && numberOf(output.confirmations) < facts.coinbaseMaturity)
      return rejected(facts, 'bad-txns-premature-spend-of-coinbase', INVALID);
  return feeObjection(facts, decoded, spent, BigInt(hex.length / 2));
}

async function outputOf(below: AskBelow, input: Decoded['vin'][number]): Promise<Output | undefined> {
  const unspent = (await below('gettxout', input.txid, numberOf(input.vout), false)) as Output | null | undefined;
  if (unspent !== null && unspent !== undefined) return unspent;
  const source = (await below('getrawtransaction', input.txid, true)) as { vout?: readonly Output[] } | undefined;
  return source?.vout?.[numberOf(input.vout)];
}

/** Dogecoin: each output below the soft limit adds that limit to the least fee. */
function feeObjection(
  facts: CurrencyFacts,
  decoded: Decoded,
  spent: readonly (Output | undefined)[],
  bytes: bigint,
): RpcFailure | null {
  if (facts.softDust === 0n || spent.includes(undefined)) return null;
  const total = (values: readonly unknown[]): bigint => values.reduce<bigint>((sum, value) => sum + minorOf(value), 0n);
  const fee = total(spent.map((output) => (output as Output).value)) - total(decoded.vout.map((output) => output.value));
  const small = decoded.vout.filter(
    (output) => output.scriptPubKey.type !== 'nulldata' && minorOf(output.value) < facts.softDust,
  ).length;
  const least = (facts.relayFeePerKb * bytes) / 1000n + BigInt(small) * facts.softDust;
  return fee >= 0n && fee < least ? rejected(facts, 'min relay fee not met', FEE) : null;
}

/** The refusal of the bitcoind below in the words of the currency's node. */
export function reworded(facts: CurrencyFacts, { code, message }: RpcFailure): RpcFailure {
  const doge = facts.currency === 'DOGE';
  if (code === -25 && message.includes('missingorspent'))
    return { code, message: doge ? 'Missing inputs' : 'bad-txns-inputs-missingorspent' };
  if (code === -27) return { code, message: doge ? 'transaction already in block chain' : 'Transaction already in block chain' };
  if (code !== -26) return { code, message };
  if (message.includes('script-verify-flag'))
    return rejected(facts, message.replace(/^\S*script-verify-flag/, 'mandatory-script-verify-flag'), INVALID);
  if (message.includes('mempool-conflict')) return rejected(facts, 'txn-mempool-conflict', CONFLICT);
  if (message.includes('min relay fee')) return rejected(facts, 'min relay fee not met', FEE);
  if (message.includes('insufficient fee')) return rejected(facts, 'insufficient fee', FEE);
  return rejected(facts, message.split(',')[0] as string, message.includes('dust') ? NONSTANDARD : INVALID);
}
