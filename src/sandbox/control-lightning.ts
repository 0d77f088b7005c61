// The controls about Lightning: paying the invoice of a transaction, invoices of the outside world, and trouble with the node.
import { LIGHTNING, MSAT } from '../core/currencies/lightning.ts';
import { paymentMethod } from '../core/currency.ts';
import { formatAmount, mulDivDown, sum } from '../core/money.ts';
import {
  type Body,
  bad,
  ControlRefusal,
  impossible,
  oneOf,
  optionalAmount,
  optionalFlag,
  optionalText,
  optionalWhole,
  requiredText,
} from './control-fields.ts';
import { LNURL_BEHAVIOURS } from './lightning/lnurl.ts';
import { lnurlNamed, namesOf } from './lightning/lnurl-server.ts';
import type { LightningNode } from './lightning/node.ts';
import { BEHAVIOURS, type OutsideInvoice } from './lightning/outgoing.ts';
import type { ControlContext } from './service-side.ts';
import type { Fault } from './trouble.ts';

/** The most parts that LND splits a payment into. */
const MOST_PARTS = 16;
const LONGEST_EXPIRY_S = 31_536_000;
/** What an LNURL takes at most, in satoshis, where nothing else is asked for. */
const USUAL_MOST = 100_000_000n;

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
    throw impossible('currency: an invoice has no address that another currency could be sent to');
  if (body.kind !== undefined && body.kind !== null) throw bad('kind', 'is for payments on a chain');
  if (body.replace !== undefined && body.replace !== null)
    throw bad('replace', 'is for payments on a chain: Lightning replaces nothing');
  const parts = optionalWhole(body, 'split', 1, MOST_PARTS) ?? 1;
  const amount = optionalAmount(body, 'amount', LIGHTNING.decimals) ?? asked.amountDue;
  const said = context.lightning.pay(asked.script, mulDivDown(amount, MSAT, 1n), parts);
  if (!said.paid) throw new ControlRefusal(409, 'not_possible', `transaction_id: ${said.reason}`, 'transaction_id');
  if (isReachable(context.lightning)) await context.nudge(LIGHTNING.code, true, asked.script);
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

/** POST /sandbox/invoice */
export function outsideInvoice({ lightning }: ControlContext, body: Body): unknown {
  const amount = optionalAmount(body, 'amount', LIGHTNING.decimals);
  const expirySeconds = optionalWhole(body, 'expires_in', 1, LONGEST_EXPIRY_S);
  const behaviour = oneOf(body, 'behaviour', BEHAVIOURS) ?? 'pay';
  const amountMsat = amount === null ? 0n : mulDivDown(amount, MSAT, 1n);
  const { request, hash } = lightning.outgoing.invoice({ amountMsat, expirySeconds, behaviour });
  return { payment_request: request, payment_hash: hash };
}

/** POST /sandbox/invoice_resolve */
export function resolveInvoice({ lightning }: ControlContext, body: Body): unknown {
  const hash = requiredText(body, 'payment_hash').toLowerCase();
  const settle = optionalFlag(body, 'settle');
  if (settle === null) throw new ControlRefusal(400, 'missing_field', 'settle is required: true or false', 'settle');
  if (lightning.outgoing.find(hash) === null)
    throw new ControlRefusal(404, 'not_found', 'payment_hash is of no invoice of the outside world', 'payment_hash');
  if (!lightning.outgoing.resolve(hash, settle)) throw impossible('payment_hash: no payment of it is held');
  return { payment_hash: hash, settled: settle };
}

/** POST /sandbox/receive of Lightning. */
export function receivedOverLightning({ lightning }: ControlContext, body: Body): unknown {
  const address = requiredText(body, 'address');
  const text = address.replace(/^lightning:/i, '');
  const invoice = lightning.outgoing.ofRequest(text);
  if (invoice !== null) return arrived([invoice]);
  const lnurl = lnurlNamed(lightning, text);
  if (lnurl !== null) return arrived(lnurl.given.flatMap((hash) => lightning.outgoing.find(hash) ?? []));
  const known = 'an invoice of /sandbox/invoice, or an LNURL or address of /sandbox/lnurl';
  throw new ControlRefusal(404, 'not_found', `address is not ${known}`, 'address');
}

/** POST /sandbox/lnurl */
export function outsideLnurl({ lightning, url }: ControlContext, body: Body): unknown {
  const min = optionalAmount(body, 'min', LIGHTNING.decimals) ?? 1n;
  const max = optionalAmount(body, 'max', LIGHTNING.decimals) ?? USUAL_MOST;
  if (min > max) throw bad('min', 'must not be above max');
  const behaviour = oneOf(body, 'behaviour', LNURL_BEHAVIOURS) ?? 'pay';
  const made = lightning.lnurls.make({ minMsat: mulDivDown(min, MSAT, 1n), maxMsat: mulDivDown(max, MSAT, 1n), behaviour });
  return namesOf(made, url);
}

function arrived(invoices: readonly OutsideInvoice[]): unknown {
  const paid = invoices.filter(({ receivedMsat }) => receivedMsat > 0n);
  const inWhole = (msat: bigint): string => formatAmount(mulDivDown(msat, 1n, MSAT), LIGHTNING.code);
  return {
    received: inWhole(sum(paid.map(({ receivedMsat }) => receivedMsat))),
    payments: paid.map(({ hash, receivedMsat }) => ({ txid: hash, amount: inWhole(receivedMsat), confirmations: 1 })),
  };
}
