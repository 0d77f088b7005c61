// The controls about payments: pay and double-spend a transaction of the service, give out an address of the outside world, report what
// arrived there.
import { CURRENCIES } from '../core/currency.ts';
import { formatAmount, minus, sum } from '../core/money.ts';
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
import { type ControlledNode, PAY_KINDS } from './controlled-node.ts';
import type { ControlContext, PayableTransaction } from './service-side.ts';

const MOST_OUTPUTS = 500;

async function transactionAsked(context: ControlContext, body: Body): Promise<PayableTransaction> {
  const id = requiredText(body, 'transaction_id');
  const found = await context.service.findTransaction(id);
  if (found === null) {
    throw new ControlRefusal(404, 'transaction_not_found', 'transaction_id names no transaction', 'transaction_id');
  }
  return found;
}

const receivedMinor = (node: ControlledNode, script: string): bigint => sum(node.received(script).map((line) => line.minor));

/** What is still due according to the chain, or the whole amount where nothing is due. */
function usualAmount(context: ControlContext, asked: PayableTransaction): bigint {
  const due = minus(asked.amountDue, receivedMinor(nodeOf(context.nodes, asked.currency), asked.script));
  return due > 0n ? due : asked.amountDue;
}

type Moved = { readonly answer: unknown; readonly node: ControlledNode };

/** POST /sandbox/pay */
export async function payTransaction(context: ControlContext, body: Body): Promise<Moved> {
  requiredText(body, 'transaction_id');
  const kind = oneOf(body, 'kind', PAY_KINDS) ?? null;
  const parts = optionalWhole(body, 'split', 1, MOST_OUTPUTS) ?? 1;
  const replaced = optionalText(body, 'replace');
  if (replaced !== null && !/^(?:0x)?[0-9a-f]{64}$/.test(replaced))
    throw bad('replace', 'must be a transaction id: 64 lower-case hex digits, on Ethereum after 0x');
  if (replaced !== null && kind !== null) throw bad('kind', 'cannot be given together with replace');
  const asked = await transactionAsked(context, body);
  const node = nodeOr(context.nodes, body, asked.currency);
  const { code } = node;
  if (kind !== null && !node.kinds.includes(kind)) throw bad('kind', `must be ${node.kinds.join(' or ')} for ${code}`);
  const amount = optionalAmount(body, 'amount', CURRENCIES[code].decimals);
  if (!node.knows(asked.script))
    throw impossible(`currency: the address of transaction_id does not exist on the chain of ${code}`);
  const script = Buffer.from(asked.script, 'hex');
  const before = replaced === null ? null : node.replaceable(replaced, script);
  const wanted = { script, total: amount ?? before ?? usualAmount(context, asked), parts };
  const txid = replaced === null ? node.pay(wanted, kind) : node.replace(replaced, wanted);
  if (txid !== null) return { answer: { txid }, node };
  throw new ControlRefusal(409, 'faucet_empty', `the faucet does not have that much ${code}: amount is too large`, 'amount');
}

/** Applies something to a transaction of the service on each chain; 409 with this message when no chain had anything to do. */
async function onEachChain(
  context: ControlContext,
  body: Body,
  move: (node: ControlledNode, script: string) => readonly string[],
  otherwise: string,
): Promise<Moved> {
  const asked = await transactionAsked(context, body);
  const moved: string[] = [];
  let concerned = nodeOf(context.nodes, asked.currency);
  for (const node of context.nodes.values()) {
    const txids = move(node, asked.script);
    if (txids.length > 0) concerned = node;
    moved.push(...txids);
  }
  if (moved.length === 0) throw impossible(`transaction_id has ${otherwise}`);
  return { answer: { txids: moved }, node: concerned };
}

/** POST /sandbox/double_spend */
export const doubleSpendTransaction = (context: ControlContext, body: Body): Promise<Moved> =>
  onEachChain(context, body, (node, script) => node.doubleSpend(script), 'no unconfirmed payment that could be double-spent');

/** POST /sandbox/evict */
export const evictTransaction = (context: ControlContext, body: Body): Promise<Moved> =>
  onEachChain(context, body, (node, script) => node.evict(script), 'no unconfirmed payment that could be evicted');

/** POST /sandbox/return */
export const returnTransaction = (context: ControlContext, body: Body): Promise<Moved> =>
  onEachChain(context, body, (node, script) => node.sendAgain(script), 'no evicted payment that could come back');

/** POST /sandbox/address */
export function outsideAddress(context: ControlContext, body: Body): { readonly address: string } {
  return { address: requiredNode(context.nodes, body).outsideAddress() };
}

/** POST /sandbox/receive */
export function receivedOutside(context: ControlContext, body: Body): unknown {
  const node = requiredNode(context.nodes, body);
  const { code } = node;
  const script = node.scriptOf(requiredText(body, 'address'));
  if (script === null) throw bad('address', `must be an address of the ${code} regtest network`);
  const lines = node.received(script);
  return {
    received: formatAmount(sum(lines.map((line) => line.minor)), code),
    payments: lines.map(({ txid, minor, confirmations }) => ({ txid, amount: formatAmount(minor, code), confirmations })),
  };
}
