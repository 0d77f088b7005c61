// Ether or the token of the simulated Ethereum chain as the controls use them.
import { EVM_SCRIPT, evmScript } from '../../core/currencies/evm.ts';
import { EVM_CODES } from '../../core/currency.ts';
import { minus, mulDivDown, plus, sum } from '../../core/money.ts';
import { bad, impossible } from '../control-fields.ts';
import type { ControlledNode, PayKind, WantedPayment } from '../controlled-node.ts';
import { tip } from './chain-state.ts';
import { paidBy, type Share } from './contracts.ts';
import type { EvmCurrency, PayKind as EvmPayKind, SimulatedEvm } from './simulated-evm.ts';
import { type EvmTransaction, keccak } from './transaction.ts';

const KINDS: Readonly<Record<EvmCurrency, readonly PayKind[]>> = {
  ETH: ['internal', 'internal_reverted'],
  USDT: ['token_fake', 'token_failed'],
};

/** The address of an output script. */
const addressOf = (script: string): string => `0x${script.slice(EVM_SCRIPT.head.length)}`;
const isAddress = (script: string): boolean => script.length === EVM_SCRIPT.bytes * 2 && script.startsWith(EVM_SCRIPT.head);

/** EIP-55. */
function checksummed(address: string): string {
  const sums = keccak(address.slice(2)).slice(2);
  return `0x${Array.from(address.slice(2), (digit, at) => (Number.parseInt(sums[at] as string, 16) >= 8 ? digit.toUpperCase() : digit)).join('')}`;
}

function sharesOf({ script, total, parts }: WantedPayment): readonly Share[] {
  const to = addressOf(script.toString('hex'));
  const each = mulDivDown(total, 1n, BigInt(parts));
  if (each === 0n) throw bad('split', 'would make empty outputs: the amount has fewer units');
  const shares = Array.from({ length: parts }, () => ({ to, minor: each }));
  const rest = minus(total, sum(shares.map(({ minor }) => minor)));
  return [{ to, minor: plus(each, rest) }, ...shares.slice(1)];
}

/** What the controls do with one currency of the simulated Ethereum chain: ether, or the token. Amounts in its minor units. */
export function controlledEvm(chain: SimulatedEvm, code: EvmCurrency): ControlledNode {
  const { state } = chain;

  function paidTo(transaction: EvmTransaction, script: string): bigint {
    const to = addressOf(script);
    return sum(
      paidBy(transaction)
        .filter((paid) => paid.currency === code && paid.to === to)
        .map(({ minor }) => minor),
    );
  }
  const waiting = (script: string): readonly EvmTransaction[] =>
    [...state.pool.values()].filter((one) => paidTo(one, script) > 0n);
  const hashes = (transactions: readonly EvmTransaction[]): readonly string[] => transactions.map(({ hash }) => hash);

  return {
    code,
    currencies: EVM_CODES,
    kinds: KINDS[code],
    hasQuorums: false,
    trouble: () => state.trouble,
    setTrouble: chain.setTrouble,
    knows: isAddress,
    received: (script) => (isAddress(script) ? chain.received(code, addressOf(script)) : []),
    scriptOf(address) {
      if (!/^0x[0-9a-fA-F]{40}$/.test(address)) return null;
      const digits = address.slice(2);
      const lower = address.toLowerCase();
      const isPlain = digits === digits.toLowerCase() || digits === digits.toUpperCase();
      return isPlain || checksummed(lower) === address ? evmScript(lower) : null;
    },
    outsideAddress: () => checksummed(chain.nextOutsideAddress()),
    pay: (wanted, kind) => chain.pay(code, sharesOf(wanted), kind as EvmPayKind)?.hash ?? null,
    replaceable(txid, script) {
      const known = state.pool.get(txid);
      if (state.places.has(txid)) throw impossible('replace: this transaction is mined and can no longer be replaced');
      if (known === undefined) throw impossible(`replace: ${code} has no such transaction in its mempool`);
      const paid = paidTo(known, script.toString('hex'));
      if (paid === 0n) throw impossible('replace: this transaction does not pay the address of transaction_id');
      return paid;
    },
    replace: (txid, wanted) => chain.replace(state.pool.get(txid) as EvmTransaction, code, sharesOf(wanted))?.hash ?? null,
    mine(blocks) {
      const { number, hash } = chain.mine(blocks);
      return { height: number, hash };
    },
    deepestReorg: () => tip(state).number - 1,
    reorg(depth, drop) {
      const { number, hash } = chain.reorg(depth, drop);
      return { height: number, hash };
    },
    doubleSpend(script) {
      const originals = isAddress(script) ? waiting(script) : [];
      return originals.length === 0 ? [] : hashes(chain.doubleSpend(originals));
    },
    evict(script) {
      const originals = isAddress(script) ? waiting(script) : [];
      if (originals.length > 0) chain.evict(originals);
      return hashes(originals);
    },
    sendAgain(script) {
      const ours = isAddress(script) ? [...state.evicted.values()].filter((one) => paidTo(one, script) > 0n) : [];
      return ours.length === 0 ? [] : hashes(chain.sendAgain(ours));
    },
  };
}
