// A chain of Bitcoin's family as the controls use it.
import { EVM_SCRIPT } from '../core/currencies/evm.ts';
import { utxoRow } from '../core/currency.ts';
import { minus, mulDivDown, plus, sum } from '../core/money.ts';
import { bad, impossible } from './control-fields.ts';
import type { ControlledNode, WantedPayment } from './controlled-node.ts';
import { outsideKeyHash } from './utxo/faucet-key.ts';
import { regtestParameters } from './utxo/rpc/answers.ts';
import { addressOf, keyHashScript, scriptOf, witnessScript } from './utxo/scripts.ts';
import type { SimulatedNode } from './utxo/simulated-node.ts';
import type { Output, Transaction } from './utxo/transaction.ts';

/** `total` in n outputs to one script; the first also gets the remainder. */
function inParts({ total, parts, script }: WantedPayment): readonly Output[] {
  const each = mulDivDown(total, 1n, BigInt(parts));
  if (each === 0n) throw bad('split', 'would make empty outputs: the amount has fewer units');
  const outputs = Array.from({ length: parts }, () => ({ minor: each, script }));
  const rest = minus(total, sum(outputs.map((output) => output.minor)));
  return [{ minor: plus(each, rest), script }, ...outputs.slice(1)];
}

const paidTo = (transaction: Transaction, script: Buffer): bigint =>
  sum(transaction.outputs.filter((output) => output.script.equals(script)).map((output) => output.minor));

/**
 * What the controls do on a simulated node of Bitcoin's family. Scripts are hexadecimal, amounts minor units; what the chain's state does
 * not allow is a ControlRefusal.
 */
export function controlledUtxo(node: SimulatedNode): ControlledNode {
  const { state, dialect } = node;
  const { code } = dialect;

  /** The transactions in the mempool that pay this script. */
  function unconfirmed(script: string): readonly Transaction[] {
    const open = node.received(script).filter((line) => line.confirmations === 0);
    return open.map((line) => (state.alive.get(line.txid) as { transaction: Transaction }).transaction);
  }
  const txids = (transactions: readonly Transaction[]): readonly string[] => transactions.map(({ txid }) => txid);

  function outsideScript(hash: Buffer): Buffer {
    switch (utxoRow(code).utxo.addressKind) {
      case 'p2wpkh':
        return witnessScript(0, hash);
      case 'p2pkh':
      case 'cashaddr-p2pkh':
        return keyHashScript(hash);
    }
  }

  return {
    code,
    currencies: [code],
    kinds: ['coinbase'],
    hasQuorums: dialect.quorums,
    trouble: () => state.trouble,
    setTrouble: node.setTrouble,
    // also a script that no key can spend on this chain: the service must not believe it either
    knows: (script) => !script.startsWith(EVM_SCRIPT.head),
    received: node.received,
    scriptOf: (address) => scriptOf(address, regtestParameters(state))?.toString('hex') ?? null,
    outsideAddress() {
      const hash = outsideKeyHash(code, node.nextOutsideIndex());
      return addressOf(outsideScript(hash), regtestParameters(state)) as string;
    },
    pay(wanted, kind) {
      const outputs = inParts(wanted);
      if (kind === 'coinbase') return (node.mine(1, { outputs }).transactions[0] as Transaction).txid;
      return node.pay(outputs)?.txid ?? null;
    },
    replaceable(txid, script) {
      const known = state.alive.get(txid);
      if (known === undefined) throw impossible(`replace: ${code} has no such transaction in its mempool`);
      if (known.block !== null) throw impossible('replace: this transaction is mined and can no longer be replaced');
      const paid = paidTo(known.transaction, script);
      if (paid === 0n) throw impossible('replace: this transaction does not pay the address of transaction_id');
      return paid;
    },
    replace(txid, wanted) {
      const original = (state.alive.get(txid) as { transaction: Transaction }).transaction;
      return node.replace(original, inParts(wanted))?.txid ?? null;
    },
    mine(blocks) {
      const { height, hash } = node.mine(blocks);
      return { height, hash };
    },
    deepestReorg: () => state.active.length - 2,
    reorg(depth, drop) {
      const { height, hash } = node.reorg(depth, { drop });
      return { height, hash };
    },
    doubleSpend(script) {
      const originals = unconfirmed(script);
      return originals.length === 0 ? [] : txids(node.doubleSpend(originals));
    },
    evict(script) {
      const originals = unconfirmed(script);
      if (originals.length > 0) node.evict(originals);
      return txids(originals);
    },
    sendAgain(script) {
      const evicted = [...state.evicted.values()];
      const ours = (transaction: Transaction) => paidTo(transaction, Buffer.from(script, 'hex')) > 0n;
      return evicted.some(ours) ? txids(node.sendAgain(evicted.filter(ours))) : [];
    },
  };
}
