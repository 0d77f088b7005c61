// Ether that contracts sent inside a block, by what addresses of ours hold before and after it, of a node that does not show the calls: what
// neither the transactions themselves, nor the block's fees and withdrawals, nor the calls that it does show explain. It is there, so it is
// credited; which of the transactions brought it nobody can say, so it is named after the block.
import { BALANCE_PLACE, EVM_SCRIPT, evmScript } from '../../core/currencies/evm.ts';
import { MOST_ADDRESSES } from '../../core/evm/port.ts';
import type { TransactionFacts, WatchList } from '../../core/ports.ts';
import { Malformed } from '../utxo/bytes.ts';
import type { EvmBlock, EvmReceipt } from './answers.ts';
import type { Balances } from './balances.ts';
import { feesOf } from './payments.ts';
import type { EvmSource } from './source.ts';
import type { Shown } from './traces.ts';

const HEAD = Buffer.from(EVM_SCRIPT.head, 'hex');
const isAddress = (script: Uint8Array): boolean =>
  script.length === EVM_SCRIPT.bytes && HEAD.every((byte, at) => script[at] === byte);

/** The newest addresses of Ethereum's chain that a list names, 0x and 40 digits, and how many it names; null where it names none. */
function newestOf({
  scripts,
}: Pick<WatchList, 'scripts'>): { readonly addresses: readonly string[]; readonly total: number } | null {
  if (scripts === undefined) return null;
  let total = 0;
  for (const script of scripts()) if (isAddress(script)) total++;
  const found = new Set<string>();
  let passed = 0;
  for (const script of scripts())
    if (isAddress(script) && ++passed > total - MOST_ADDRESSES)
      found.add(`0x${Buffer.from(script.buffer, script.byteOffset + HEAD.length, script.length - HEAD.length).toString('hex')}`);
  return { addresses: [...found], total };
}

/**
 * What contracts sent in a block to the addresses of a list, as far as the calls that were shown do not say it; null = nothing. What cannot be
 * had is `unseen`, and told.
 * @throws NodeTrouble
 */
export async function restByBalance(
  source: Pick<EvmSource, 'gains' | 'receipts' | 'missed'>,
  block: EvmBlock,
  watch: Pick<WatchList, 'scripts'>,
  shown: Shown,
): Promise<TransactionFacts | 'unseen' | null> {
  const newest = block.transactions.length === 0 ? null : newestOf(watch);
  if (newest === null) return null;
  const gains = await source.gains(block, newest.addresses, newest.total);
  if (gains === null) {
    source.missed(block, shown);
    return 'unseen';
  }
  const isTouched = [...gains.values()].some((wei) => wei !== 0n) || block.transactions.some(({ from }) => gains.has(from));
  if (!isTouched) return null;
  const rest = unexplained(block, gains, shown, await source.receipts(block));
  // a node that contradicts itself is believed in nothing of this
  if ([...rest.values()].some((wei) => wei < 0n)) {
    source.missed(block, shown);
    return 'unseen';
  }
  const outputs = [...rest].flatMap(([address, wei]) =>
    wei > 0n ? [{ vout: placeOf(address), script: evmScript(address), amountMinor: wei, byBalance: true as const }] : [],
  );
  return outputs.length === 0 ? null : { txid: block.hash, coinbase: false, inputs: [], outputs, spends: [] };
}

/**
 * What of the gains of addresses nothing explains, in wei; below zero where one holds less than the block says.
 * @param gains what the block has brought to them, or taken from them, by their balances
 */
function unexplained(
  block: EvmBlock,
  gains: Balances,
  shown: Shown,
  receipts: readonly EvmReceipt[],
): ReadonlyMap<string, bigint> {
  const rest = new Map(gains);
  const explain = (address: string, wei: bigint): void => {
    const left = rest.get(address);
    if (left !== undefined) rest.set(address, left - wei);
  };
  for (const [at, { from, to, value }] of block.transactions.entries()) {
    const { succeeded, gasPaid } = receipts[at] as EvmReceipt;
    if (rest.has(from)) {
      if (gasPaid === null) throw new Malformed('a receipt does not say what its gas has cost');
      explain(from, -gasPaid);
    }
    if (!succeeded) continue;
    explain(from, -value);
    if (to !== null) explain(to, value);
    for (const inner of shown?.[at] ?? []) explain(inner.to, inner.value);
  }
  if (block.feeRecipient !== null && rest.has(block.feeRecipient)) explain(block.feeRecipient, feesOf(block, receipts));
  for (const { to, value } of block.withdrawals) explain(to, value);
  return rest;
}

/** The same in every reading of a block, whatever else is looked for: 30 bits of the address. */
const placeOf = (address: string): number => BALANCE_PLACE + (Number.parseInt(address.slice(-8), 16) & (BALANCE_PLACE - 1));
