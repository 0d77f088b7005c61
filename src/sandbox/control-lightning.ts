// The controls about Lightning: paying the invoice of a transaction, and trouble with the node.
import { LIGHTNING, MSAT } from '../core/currencies/lightning.ts';
import { paymentMethod } from '../core/currency.ts';
import { mulDivDown } from '../core/money.ts';
import {
  type Body,
  bad,
  ControlRefusal,
  impossible,
  optionalAmount,
  optionalText,
  optionalWhole,
  requiredText,
} from './control-fields.ts';
import type { LightningNode } from './lightning/lightning-node.ts';
import type { ControlContext } from './service-side.ts';
import type { Fault } from './utxo/chain-state.ts';

/** LND splits a payment into at most so many parts. */
const MOST_PARTS = 16;

/** Whether a body names Lightning as its currency. */
export const isLightning = ({ currency }: Body): boolean =>
  typeof currency === 'string' && paymentMethod(currency) === LIGHTNING.code;

/** Whether our service can ask the node. */
export const isReachable = (node: LightningNode): boolean => !node.trouble().down && node.trouble().fault !== 'hang';

/** POST /sandbox/pay of a transaction over Lightning; null for any other. */
export async function payInvoice(context: ControlContext, body: Body): Promise<unknown> {
  const id = requiredText(body, 'transaction_id');
  const asked = await context.service.findTransaction(id);
  if (asked?.currency !== LIGHTNING.code) {
    if (asked === null || !isLightning(body)) return null;
    const message = `currency: this transaction has no invoice, it is paid in ${asked.currency}`;
    throw new ControlRefusal(409, 'currency_unavailable', message, 'currency');
  }
  if (optionalText(body, 'currency') !== null && !isLightning(body))
    throw impossible('currency: an invoice has no address that other coins could be sent to');
  if (body.kind !== undefined && body.kind !== null) throw bad('kind', 'is for coins on a chain');
  if (body.replace !== undefined && body.replace !== null)
    throw bad('replace', 'is for coins on a chain: Lightning replaces nothing');
  const parts = optionalWhole(body, 'split', 1, MOST_PARTS) ?? 1;
  const amount = optionalAmount(body, 'amount', LIGHTNING.decimals) ?? asked.amountDue;
  const said = context.lightning.pay(asked.script, mulDivDown(amount, MSAT, 1n), parts);
  if (!said.paid) throw new ControlRefusal(409, 'not_possible', `transaction_id: ${said.reason}`, 'transaction_id');
  if (isReachable(context.lightning)) await context.nudge(LIGHTNING.code, true);
  return { txid: asked.script };
}

type TroubleAsked = { readonly down: boolean | null; readonly fault: Fault | null | undefined; readonly count: number | null };

/** POST /sandbox/node of Lightning. */
export async function lightningTrouble(context: ControlContext, { down, fault, count }: TroubleAsked): Promise<unknown> {
  const node = context.lightning;
  if (fault === 'no_locks') throw bad('fault', 'no_locks is for DASH only');
  if (count !== null && !fault) throw bad('for', 'needs a fault: it says for how many calls');
  const before = node.trouble();
  const left = count ?? (fault === 'reject' ? 1 : null);
  const after = { ...before, down: down ?? before.down, ...(fault === undefined ? {} : { fault, left }) };
  node.setTrouble(after);
  if (before.down !== after.down) await context.nudge(LIGHTNING.code);
  return { currency: LIGHTNING.code, down: after.down, fault: after.fault, for: after.left };
}
