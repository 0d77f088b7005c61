// What the simulated Lightning node pays, and the outside world that it pays to: invoices of a node that is not ours, honest, slow or refusing, and
// one payment at a time for each payment hash, as LND keeps them.
import { createHash, randomBytes } from 'node:crypto';
import { paymentRequest } from './bolt11.ts';

/** What becomes of a payment to an invoice outside; `hold` keeps it in flight until it is resolved. */
export const BEHAVIOURS = ['pay', 'hold', 'fail'] as const;
export type Behaviour = (typeof BEHAVIOURS)[number];

export type OutsideInvoice = {
  readonly hash: string;
  readonly preimage: string;
  /** 0: the payer chooses. */
  readonly amountMsat: bigint;
  readonly expiresAtMs: number;
  readonly behaviour: Behaviour;
  readonly request: string;
  readonly descriptionHash: string | null;
  /** What has arrived for good; 0 until then. */
  receivedMsat: bigint;
};

export type Payment = {
  readonly hash: string;
  readonly request: string;
  readonly amountMsat: bigint;
  readonly feeMsat: bigint;
  readonly index: number;
  readonly atMs: number;
  readonly preimage: string;
  status: 'IN_FLIGHT' | 'SUCCEEDED' | 'FAILED';
  reason: string;
  /** The node denies it: it was restored from an older state. */
  isForgotten: boolean;
};

export type OutgoingLine =
  | {
      readonly kind: 'outside';
      readonly preimage: string;
      readonly amountMsat: string;
      readonly expiresAtMs: number;
      readonly behaviour: Behaviour;
      readonly request: string;
      readonly descriptionHash?: string;
    }
  | {
      readonly kind: 'send';
      readonly hash: string;
      readonly request: string;
      readonly amountMsat: string;
      readonly feeMsat: string;
      readonly index: number;
      readonly atMs: number;
    }
  | { readonly kind: 'sent'; readonly hash: string; readonly status: 'SUCCEEDED' | 'FAILED'; readonly reason: string }
  | { readonly kind: 'forget'; readonly hash: string };

/** LND's refusal of a request to pay: its text, and 409 where it has the payment already. */
export type SendRefusal = { readonly refused: string; readonly isKnown: boolean };

const USUAL_EXPIRY_S = 86_400;
/** What the route takes: a satoshi and a thousandth. */
const feeOf = (msat: bigint): bigint => 1_000n + msat / 1_000n;
const NONE = '';

type Surroundings = {
  write(line: OutgoingLine): void;
  now(): number;
  /** What our side of the channel has, without what is on its way. */
  localMsat(): bigint;
  /** Whether the node itself has made an invoice of this text. */
  isOwn(request: string): boolean;
  readonly nodeKey: () => Uint8Array;
};

/**
 * What the simulated node pays to the outside world: invoices there, and payments of them with their HTLCs in flight. State is only what
 * its journal's lines say, so a restart finds it again.
 */
export function createOutgoing({ write, now, localMsat, isOwn, nodeKey }: Surroundings) {
  const invoices = new Map<string, OutsideInvoice>();
  const byRequest = new Map<string, OutsideInvoice>();
  const payments = new Map<string, Payment>();
  const listeners = new Set<(payment: Payment) => void>();
  /** What left the channel for good, by payments that the node may have forgotten or repeated since. */
  let leftMsat = 0n;

  function apply(line: OutgoingLine): void {
    if (line.kind === 'outside') {
      const hash = createHash('sha256').update(Buffer.from(line.preimage, 'hex')).digest('hex');
      const { preimage, expiresAtMs, behaviour, request, descriptionHash = null } = line;
      const amountMsat = BigInt(line.amountMsat);
      const made = { hash, preimage, amountMsat, expiresAtMs, behaviour, request, descriptionHash, receivedMsat: 0n };
      invoices.set(hash, made);
      byRequest.set(request.toLowerCase(), made);
    } else if (line.kind === 'send') {
      const { hash, request, index, atMs } = line;
      const [amountMsat, feeMsat] = [BigInt(line.amountMsat), BigInt(line.feeMsat)];
      const preimage = invoices.get(hash)?.preimage ?? '00'.repeat(32);
      const state = { status: 'IN_FLIGHT' as const, reason: NONE, isForgotten: false };
      payments.set(hash, { hash, request, amountMsat, feeMsat, index, atMs, preimage, ...state });
    } else if (line.kind === 'sent') {
      const payment = payments.get(line.hash) as Payment;
      Object.assign(payment, { status: line.status, reason: line.reason });
      if (line.status !== 'SUCCEEDED') return;
      leftMsat += payment.amountMsat + payment.feeMsat;
      (invoices.get(line.hash) as OutsideInvoice).receivedMsat += payment.amountMsat;
    } else (payments.get(line.hash) as Payment).isForgotten = true;
  }

  function end(payment: Payment, status: 'SUCCEEDED' | 'FAILED', reason = NONE): void {
    write({ kind: 'sent', hash: payment.hash, status, reason });
    for (const listener of [...listeners]) listener(payment);
  }
  /** Their HTLCs are in no channel, as after a crash between the two. */
  const unlisted = new Set<string>();
  const inFlight = (): readonly Payment[] => [...payments.values()].filter(({ status }) => status === 'IN_FLIGHT');
  const held = (): bigint => inFlight().reduce((total, { amountMsat, feeMsat }) => total + amountMsat + feeMsat, 0n);
  const listed = (): readonly Payment[] =>
    [...payments.values()].filter(({ isForgotten }) => !isForgotten).sort((a, b) => a.index - b.index);

  function whyRefused(request: string, found: OutsideInvoice | undefined, amountMsat: bigint): SendRefusal | null {
    const refusal = (refused: string, isKnown = false): SendRefusal => ({ refused, isKnown });
    if (isOwn(request)) return refusal('self-payments not allowed');
    if (found === undefined) return refusal('invalid payment request: no invoice of the outside world');
    if (found.amountMsat !== 0n && amountMsat !== 0n)
      return refusal('amount must not be specified when paying a non-zero amount invoice');
    if (found.amountMsat === 0n && amountMsat === 0n)
      return refusal('amount must be specified when paying a zero amount invoice');
    const before = payments.get(found.hash);
    const isThere = before !== undefined && !before.isForgotten;
    if (isThere && before.status === 'SUCCEEDED') return refusal('invoice is already paid', true);
    if (isThere && before.status === 'IN_FLIGHT') return refusal('payment is in transition', true);
    if (now() >= found.expiresAtMs) return refusal(`invoice expired. Valid until ${new Date(found.expiresAtMs).toISOString()}`);
    return null;
  }

  return {
    apply,
    /** Makes an invoice of the outside world. */
    invoice(asked: {
      readonly amountMsat: bigint;
      readonly expirySeconds: number | null;
      readonly behaviour: Behaviour;
      readonly descriptionHash?: string;
    }): OutsideInvoice {
      const preimage = randomBytes(32);
      const hash = createHash('sha256').update(preimage).digest();
      const expirySeconds = asked.expirySeconds ?? USUAL_EXPIRY_S;
      const atMs = now();
      const { amountMsat, behaviour, descriptionHash } = asked;
      const request = paymentRequest({
        // another node than ours, and the same one after every start
        key: createHash('sha256').update('outside').update(nodeKey()).digest(),
        amountMsat,
        atMs,
        paymentHash: hash,
        paymentSecret: randomBytes(32),
        description: 'the outside world',
        expirySeconds,
        ...(descriptionHash === undefined ? {} : { descriptionHash }),
      });
      const expiresAtMs = Math.floor(atMs / 1000) * 1000 + expirySeconds * 1000;
      const stored = { preimage: preimage.toString('hex'), amountMsat: String(amountMsat), expiresAtMs, behaviour, request };
      write({ kind: 'outside', ...stored, ...(descriptionHash === undefined ? {} : { descriptionHash }) });
      return invoices.get(hash.toString('hex')) as OutsideInvoice;
    },
    find: (hash: string): OutsideInvoice | null => invoices.get(hash) ?? null,
    ofRequest: (request: string): OutsideInvoice | null => byRequest.get(request.toLowerCase()) ?? null,
    /** What LND does with a request to pay. @param amountMsat 0: the invoice says it */
    send(request: string, amountMsat: bigint, feeLimitMsat: bigint): Payment | SendRefusal {
      const found = byRequest.get(request.toLowerCase());
      const refusal = whyRefused(request, found, amountMsat);
      if (refusal !== null || found === undefined) return refusal as SendRefusal;
      const amount = found.amountMsat === 0n ? amountMsat : found.amountMsat;
      const feeMsat = feeOf(amount);
      const spendable = localMsat() - held();
      const index = listed().reduce((most, one) => Math.max(most, one.index), 0) + 1;
      const { hash, behaviour } = found;
      write({ kind: 'send', hash, request, amountMsat: String(amount), feeMsat: String(feeMsat), index, atMs: now() });
      const payment = payments.get(hash) as Payment;
      if (amount + feeMsat > spendable) end(payment, 'FAILED', 'FAILURE_REASON_INSUFFICIENT_BALANCE');
      else if (feeMsat > feeLimitMsat) end(payment, 'FAILED', 'FAILURE_REASON_NO_ROUTE');
      // the recipient takes each of its invoices once, whatever our node remembers
      else if (behaviour === 'fail' || found.receivedMsat > 0n)
        end(payment, 'FAILED', 'FAILURE_REASON_INCORRECT_PAYMENT_DETAILS');
      else if (behaviour === 'pay') end(payment, 'SUCCEEDED');
      return payment;
    },
    /** The outside world takes a held payment, or gives it back; false when none is held. */
    resolve(hash: string, settle: boolean): boolean {
      const payment = payments.get(hash);
      if (payment?.status !== 'IN_FLIGHT') return false;
      end(payment, settle ? 'SUCCEEDED' : 'FAILED', settle ? NONE : 'FAILURE_REASON_INCORRECT_PAYMENT_DETAILS');
      return true;
    },
    forget: (hash: string): void => write({ kind: 'forget', hash }),
    payment(hash: string): Payment | null {
      const found = payments.get(hash);
      return found === undefined || found.isForgotten ? null : found;
    },
    listed,
    inFlight,
    /** What the channel lists. */
    inChannel: (): readonly Payment[] => inFlight().filter(({ hash }) => !unlisted.has(hash)),
    /** No channel lists the HTLC of a payment from now on, until this process ends. */
    leaveChannel: (hash: string): void => void unlisted.add(hash),
    /** What left our side of the channel, or is on its way. */
    outMsat: (): bigint => leftMsat + held(),
    leftMsat: (): bigint => leftMsat,
    /** Calls back for each payment that ends from now on; returns what ends that. */
    onEnd(listener: (payment: Payment) => void): () => void {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
  };
}
