// Lightning addresses (LUD-16) and LNURL-pay (LUD-01, LUD-06): asks what they name for an invoice. Who runs them may be anybody, so the calls go
// through the outbound guard, follow no redirect, are bounded in time and size, and the invoice must be what was asked for.
import { createHash } from 'node:crypto';
import { MSAT } from '../../core/currencies/lightning.ts';
import { mulDivDown } from '../../core/money.ts';
import { FAILED_HERE, type OutboundFailure } from '../../core/outbound.ts';
import { Refusal } from '../../core/refusal.ts';
import type { Context } from '../context.ts';

/** Both calls together. */
const WITHIN_MS = 10_000;
const MOST_BYTES = 64 * 1024;
/** An answer that is no JSON of a service, or a refusal of its own, is quoted as far as this. */
const QUOTED = 120;

/** What else is said for a failure that its reason says badly, or says too much of. */
const IN_WORDS: Partial<Record<OutboundFailure, string>> = {
  // which addresses the names of our own network have is nobody's business
  address_not_allowed: 'its host is not on the public internet',
  malformed_answer: 'its answer is cut off, or none of HTTP',
};

export type WantedInvoice = {
  /** Who pays, and chose whom. */
  readonly merchantId: bigint;
  /** A Lightning address or an LNURL; its form was checked before. */
  readonly destination: string;
  /** Satoshis. */
  readonly amount: bigint;
};

/**
 * An invoice for an amount.
 * @returns BOLT11
 * @throws Refusal invalid_destination for what is dishonest, out of its range, or must not be called; lightning_unavailable for what is silent
 */
export async function askForInvoice(ctx: Context, { merchantId, destination, amount }: WantedInvoice): Promise<string> {
  const began = performance.now();
  const left = (): number => Math.max(1, WITHIN_MS - Math.round(performance.now() - began));
  const place = ctx.ports.destinations.lnurl(destination);
  if (place === null) throw dishonest('it is no Lightning address and no LNURL');
  const service = await answerOf(ctx, place, { merchantId, withinMs: left() });
  const { callback, metadata } = service;
  if (service.tag !== 'payRequest' || typeof callback !== 'string' || typeof metadata !== 'string')
    throw dishonest('what it names does not take payments (LUD-06)');
  const amountMsat = mulDivDown(amount, MSAT, 1n);
  refuseOutside(amountMsat, service);
  const { pr } = await answerOf(ctx, withAmount(callback, amountMsat), { merchantId, withinMs: left() });
  const invoice = typeof pr === 'string' ? ctx.ports.destinations.invoice(pr) : null;
  if (invoice === null) throw dishonest('it gives no invoice that can be paid');
  if (invoice.amountMsat !== amountMsat) throw dishonest('it gives an invoice for another amount');
  if (invoice.descriptionHash !== createHash('sha256').update(metadata).digest('hex'))
    throw dishonest('it gives an invoice for something else than it describes');
  return pr as string;
}

const dishonest = (what: string): Refusal =>
  new Refusal('invalid_destination', { param: 'destination', message: `destination cannot be paid: ${what}.` });

function refuseOutside(amountMsat: bigint, { minSendable, maxSendable }: Answer): void {
  const [low, high] = [minSendable, maxSendable].map((one) =>
    typeof one === 'number' && Number.isSafeInteger(one) && one > 0 ? BigInt(one) : null,
  );
  if (low == null || high == null) throw dishonest('it does not say which amounts it takes');
  if (amountMsat < low || amountMsat > high)
    throw dishonest(`it takes from ${mulDivDown(low, 1n, MSAT)} to ${mulDivDown(high, 1n, MSAT)} satoshis`);
}

function withAmount(callback: string, amountMsat: bigint): string {
  const url = URL.parse(callback);
  if (url === null) throw dishonest('it names no URL to ask for an invoice');
  url.searchParams.set('amount', amountMsat.toString());
  return url.href;
}

type Answer = Readonly<Record<string, unknown>>;

async function answerOf(
  ctx: Context,
  url: string,
  bounds: { readonly merchantId: bigint; readonly withinMs: number },
): Promise<Answer> {
  const headers = { accept: 'application/json' };
  const said = await ctx.ports.outbound.call({
    url,
    method: 'GET',
    headers,
    connectionsOf: null,
    mostBytes: MOST_BYTES,
    ...bounds,
  });
  if (said.kind === 'failed') {
    if (said.failure === FAILED_HERE)
      throw new Refusal('lightning_unavailable', { message: `The destination could not be asked: ${said.reason}.` });
    // what was left for this call says nothing to somebody who does not know how long the one before it took
    const why = said.failure === 'timed_out' ? `not whole within ${WITHIN_MS / 1000} s` : said.reason;
    if (said.failure === 'timed_out' || said.failure === 'connection_failed')
      throw new Refusal('lightning_unavailable', { message: `The destination does not answer: ${why}.` });
    throw dishonest(IN_WORDS[said.failure] ?? said.reason);
  }
  if (said.status >= 300 && said.status < 400) throw dishonest('it answers with a redirect, which is not followed');
  if (said.isCut) throw dishonest(`its answer has more than ${MOST_BYTES} bytes`);
  const text = new TextDecoder().decode(said.body);
  const answer = parsed(text);
  if (answer === null) throw dishonest(`it answers with HTTP ${said.status} and no JSON`);
  if (said.status !== 200 || answer.status === 'ERROR') throw dishonest(`it refuses: ${reasonOf(answer, said.status)}`);
  return answer;
}

function parsed(text: string): Answer | null {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null ? (value as Answer) : null;
  } catch {
    return null;
  }
}

/** A stranger's words, without what could change a terminal or a log. */
function reasonOf({ reason }: Answer, status: number): string {
  if (typeof reason !== 'string') return `HTTP ${status}`;
  return reason.slice(0, QUOTED).replaceAll(/[^\x20-\x7e]/g, '?');
}
