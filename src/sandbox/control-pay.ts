// The controls about payments: pay and double-spend a transaction of the service, give out an address of the outside world, report what
// arrived there.
import { type CurrencyRow, utxoRow } from '../core/currency.ts';
import { formatAmount, minus, mulDivDown, plus, sum } from '../core/money.ts';
import {
  type Body,
  bad,
  ControlRefusal,
  impossible,
  nodeOf,
  nodeOr,
  oneOf,
  optionalAmount,
  optionalText,
  optionalWhole,
  requiredNode,
  requiredText,
} from './control-fields.ts';
import type { ControlContext, PayableTransaction } from './service-side.ts';
import { outsideKeyHash } from './utxo/faucet-key.ts';
import { regtestParameters } from './utxo/rpc-answers.ts';
import { addressOf, keyHashScript, scriptOf, witnessScript } from './utxo/scripts.ts';
import type { SimulatedNode } from './utxo/simulated-node.ts';
import type { Output, Transaction } from './utxo/transaction.ts';

const MOST_OUTPUTS = 500;
const KINDS = ['coinbase', 'token_fake', 'token_failed', 'internal', 'internal_reverted'] as const;

async function transactionAsked(context: ControlContext, body: Body): Promise<PayableTransaction> {
  const id = requiredText(body, 'transaction_id');
  const found = await context.service.findTransaction(id);
  if (found === null) {
    throw new ControlRefusal(404, 'transaction_not_found', 'transaction_id names no transaction', 'transaction_id');
  }
  return found;
}

const rowOf = (node: SimulatedNode): CurrencyRow => utxoRow(node.dialect.code);
const receivedMinor = (node: SimulatedNode, script: string): bigint => sum(node.received(script).map((line) => line.minor));

/** What is still due according to the chain, or the whole amount where nothing is due. */
function usualAmount(context: ControlContext, asked: PayableTransaction): bigint {
  const due = minus(asked.amountDue, receivedMinor(nodeOf(context.nodes, asked.currency), asked.script));
  return due > 0n ? due : asked.amountDue;
}

/** `total` in n outputs to one script; the first also gets the remainder. */
function inParts(total: bigint, n: number, script: Buffer): readonly Output[] {
  const each = mulDivDown(total, 1n, BigInt(n));
  if (each === 0n) throw bad('split', 'would make empty outputs: the amount has fewer units');
  const outputs = Array.from({ length: n }, () => ({ minor: each, script }));
  const rest = minus(total, sum(outputs.map((output) => output.minor)));
  return [{ minor: plus(each, rest), script }, ...outputs.slice(1)];
}

/** POST /sandbox/pay */
export async function payTransaction(
  context: ControlContext,
  body: Body,
): Promise<{ readonly answer: unknown; readonly node: SimulatedNode }> {
  requiredText(body, 'transaction_id');
  const kind = oneOf(body, 'kind', KINDS) ?? null;
  const parts = optionalWhole(body, 'split', 1, MOST_OUTPUTS) ?? 1;
  const replaced = optionalText(body, 'replace');
  if (replaced !== null && !/^[0-9a-f]{64}$/.test(replaced))
    throw bad('replace', 'must be a transaction id: 64 lower-case hex digits');
  if (replaced !== null && kind !== null) throw bad('kind', 'cannot be given together with replace');
  const asked = await transactionAsked(context, body);
  const node = nodeOr(context.nodes, body, asked.currency);
  const code = node.dialect.code;
  if (kind !== null && kind !== 'coinbase') throw bad('kind', `must be coinbase for ${code}`);
  const amount = optionalAmount(body, 'amount', rowOf(node).decimals);
  const script = Buffer.from(asked.script, 'hex');
  const original = replaced === null ? null : replaceable(node, replaced, script);
  const outputs = inParts(amount ?? (original === null ? usualAmount(context, asked) : paidTo(original, script)), parts, script);
  const paid = made(node, outputs, { original, coinbase: kind === 'coinbase' });
  if (paid !== null) return { answer: { txid: paid.txid }, node };
  throw new ControlRefusal(409, 'faucet_empty', `the faucet does not have that much ${code}: amount is too large`, 'amount');
}

function made(
  node: SimulatedNode,
  outputs: readonly Output[],
  how: { readonly original: Transaction | null; readonly coinbase: boolean },
): Transaction | null {
  if (how.coinbase) return node.mine(1, { outputs }).transactions[0] as Transaction;
  return how.original === null ? node.pay(outputs) : node.replace(how.original, outputs);
}

const paidTo = (transaction: Transaction, script: Buffer): bigint =>
  sum(transaction.outputs.filter((output) => output.script.equals(script)).map((output) => output.minor));

/** The mempool transaction that a fee replacement replaces; 409 for one that is mined, unknown, or pays another address. */
function replaceable(node: SimulatedNode, txid: string, script: Buffer): Transaction {
  const known = node.state.alive.get(txid);
  if (known === undefined) throw impossible(`replace: ${node.dialect.code} has no such transaction in its mempool`);
  if (known.block !== null) throw impossible('replace: this transaction is mined and can no longer be replaced');
  if (paidTo(known.transaction, script) === 0n)
    throw impossible('replace: this transaction does not pay the address of transaction_id');
  return known.transaction;
}

type Moved = { readonly answer: unknown; readonly node: SimulatedNode };

/** Applies something to a transaction of the service on each chain; 409 with this message when no chain had anything to do. */
async function onEachChain(
  context: ControlContext,
  body: Body,
  move: (node: SimulatedNode, script: string) => readonly Transaction[],
  otherwise: string,
): Promise<Moved> {
  const asked = await transactionAsked(context, body);
  const moved: Transaction[] = [];
  let concerned: SimulatedNode = nodeOf(context.nodes, asked.currency);
  for (const node of context.nodes.values()) {
    const made = move(node, asked.script);
    if (made.length > 0) concerned = node;
    moved.push(...made);
  }
  if (moved.length === 0) throw impossible(`transaction_id has ${otherwise}`);
  return { answer: { txids: moved.map((transaction) => transaction.txid) }, node: concerned };
}

/** The transactions in a chain's mempool that pay this script. */
function unconfirmed(node: SimulatedNode, script: string): readonly Transaction[] {
  const open = node.received(script).filter((line) => line.confirmations === 0);
  return open.map((line) => (node.state.alive.get(line.txid) as { transaction: Transaction }).transaction);
}

/** POST /sandbox/double_spend */
export const doubleSpendTransaction = (context: ControlContext, body: Body): Promise<Moved> =>
  onEachChain(
    context,
    body,
    (node, script) => {
      const originals = unconfirmed(node, script);
      return originals.length === 0 ? [] : node.doubleSpend(originals);
    },
    'no unconfirmed payment that could be double-spent',
  );

/** POST /sandbox/evict */
export const evictTransaction = (context: ControlContext, body: Body): Promise<Moved> =>
  onEachChain(
    context,
    body,
    (node, script) => {
      const originals = unconfirmed(node, script);
      if (originals.length > 0) node.evict(originals);
      return originals;
    },
    'no unconfirmed payment that could be evicted',
  );

/** POST /sandbox/return */
export const returnTransaction = (context: ControlContext, body: Body): Promise<Moved> =>
  onEachChain(
    context,
    body,
    (node, script) => {
      const evicted = [...node.state.evicted.values()];
      const ours = (transaction: Transaction) => paidTo(transaction, Buffer.from(script, 'hex')) > 0n;
      return evicted.some(ours) ? node.sendAgain(evicted.filter(ours)) : [];
    },
    'no evicted payment that could come back',
  );

/** POST /sandbox/address */
export function outsideAddress(context: ControlContext, body: Body): { readonly address: string } {
  const node = requiredNode(context.nodes, body);
  const { code } = node.dialect;
  const hash = outsideKeyHash(code, node.nextOutsideIndex());
  const script = utxoRow(code).utxo.addressKind === 'p2wpkh' ? witnessScript(0, hash) : keyHashScript(hash);
  return { address: addressOf(script, regtestParameters(node.state)) as string };
}

/** POST /sandbox/receive */
export function receivedOutside(context: ControlContext, body: Body): unknown {
  const node = requiredNode(context.nodes, body);
  const { code } = node.dialect;
  const script = scriptOf(requiredText(body, 'address'), regtestParameters(node.state));
  if (script === null) throw bad('address', `must be an address of the ${code} regtest network`);
  const lines = node.received(script.toString('hex'));
  return {
    received: formatAmount(sum(lines.map((line) => line.minor)), code),
    payments: lines.map(({ txid, minor, confirmations }) => ({ txid, amount: formatAmount(minor, code), confirmations })),
  };
}
