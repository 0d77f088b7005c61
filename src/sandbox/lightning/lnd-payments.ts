// LND's REST calls about paying, as the simulated node answers them: two of them are streams, whose lines are payments.
import { type Asked, type LndMethod, LndRefused, whole } from './lnd-methods.ts';
import type { Payment } from './outgoing.ts';

const LIGHTNING = '/lnrpc.Lightning/';
const PAGE = 100;
const ZEROS = '00'.repeat(32);

/** A payment as `lnrpc.Payment` in JSON; preimage and fee are there once it has succeeded. */
export function paymentAnswer(payment: Payment): Record<string, unknown> {
  const { status, amountMsat, feeMsat } = payment;
  const isPaid = status === 'SUCCEEDED';
  return {
    payment_hash: payment.hash,
    value: String(amountMsat / 1000n),
    value_sat: String(amountMsat / 1000n),
    value_msat: String(amountMsat),
    payment_preimage: isPaid ? payment.preimage : ZEROS,
    payment_request: payment.request,
    status,
    fee_sat: String(isPaid ? feeMsat / 1000n : 0n),
    fee_msat: String(isPaid ? feeMsat : 0n),
    creation_time_ns: `${payment.atMs}000000`,
    htlcs: [{ status, route: { total_amt_msat: String(amountMsat + feeMsat) } }],
    payment_index: String(payment.index),
    failure_reason: status === 'FAILED' ? payment.reason : 'FAILURE_REASON_NONE',
  };
}

function list({ node, query }: Asked): unknown {
  const after = Number(query.get('index_offset') ?? 0);
  const most = Number(query.get('max_payments') ?? PAGE);
  const isReversed = query.get('reversed') === 'true';
  const all = node.outgoing.listed().filter(({ status }) => query.get('include_incomplete') === 'true' || status === 'SUCCEEDED');
  const page = isReversed ? all.slice(-most) : all.filter(({ index }) => index > after).slice(0, most);
  return {
    payments: page.map(paymentAnswer),
    first_index_offset: String(page[0]?.index ?? 0),
    last_index_offset: String(page.at(-1)?.index ?? 0),
  };
}

function decode({ node, parts: [request = ''] }: Asked): unknown {
  const text = decodeURIComponent(request).toLowerCase();
  const outside = node.outgoing.ofRequest(text);
  const own = node.all().find(({ paymentRequest }) => paymentRequest === text);
  if (outside === null && own === undefined) throw new LndRefused("invoice not for current active network 'regtest'");
  const msat = outside?.amountMsat ?? own?.valueMsat ?? 0n;
  return {
    destination: own === undefined ? '' : node.identity,
    payment_hash: outside?.hash ?? own?.hash,
    num_satoshis: String(msat / 1000n),
    num_msat: String(msat),
  };
}

export const PAYMENT_METHODS: readonly LndMethod[] = [
  { verb: 'GET', path: /^\/v1\/payments$/, permission: `${LIGHTNING}ListPayments`, changes: false, answer: list },
  { verb: 'GET', path: /^\/v1\/payreq\/([^/]+)$/, permission: `${LIGHTNING}DecodePayReq`, changes: false, answer: decode },
];

/** What a request to pay, or to track a payment, begins with: the payment, or LND's refusal. */
export type Begun = Payment | LndRefused;
export type PaymentStream = {
  readonly verb: 'GET' | 'POST';
  readonly path: RegExp;
  readonly permission: string;
  readonly changes: boolean;
  readonly begin: (asked: Asked) => Begun;
};

function send({ node, body }: Asked): Begun {
  const request = typeof body.payment_request === 'string' ? body.payment_request : '';
  // a missing fee limit means zero
  const said = node.outgoing.send(request, whole(body, 'amt_msat', 0n), whole(body, 'fee_limit_msat', 0n));
  if (!('refused' in said)) return said;
  return said.isKnown ? new LndRefused(said.refused, 409, 6) : new LndRefused(said.refused);
}

function track({ node, parts: [text = ''] }: Asked): Begun {
  const bytes = Buffer.from(decodeURIComponent(text), 'base64url');
  if (bytes.length !== 32) return new LndRefused('type mismatch, parameter: payment_hash', 400, 3);
  return node.outgoing.payment(bytes.toString('hex')) ?? new LndRefused("payment isn't initiated", 404, 5);
}

export const PAYMENT_STREAMS: readonly PaymentStream[] = [
  { verb: 'POST', path: /^\/v2\/router\/send$/, permission: '/routerrpc.Router/SendPaymentV2', changes: true, begin: send },
  {
    verb: 'GET',
    path: /^\/v2\/router\/track\/([^/]+)$/,
    permission: '/routerrpc.Router/TrackPaymentV2',
    changes: false,
    begin: track,
  },
];

/** What the payer's macaroon permits. */
export const PAYING: readonly string[] = [
  `${LIGHTNING}GetInfo`,
  `${LIGHTNING}ListChannels`,
  ...PAYMENT_METHODS.flatMap(({ permission }) => permission ?? []),
  ...PAYMENT_STREAMS.map(({ permission }) => permission),
];
