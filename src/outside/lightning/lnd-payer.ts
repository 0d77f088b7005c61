// The paying port on LND (REST): what its answers to SendPaymentV2 and TrackPaymentV2 mean. Closing our connection does not stop a payment, a
// missing fee limit would mean zero, and an answer other than a payment or 409 proves nothing about an earlier request.
import type { Invoice, LightningPayer, PaymentFacts, PaymentOrder, SendAnswer } from '../../core/lightning/payer.ts';
import { NodeTrouble } from '../utxo/node/trouble.ts';
import { isNone, objects, text, whole } from './lnd-answers.ts';
import { type Answer, createLndRest, LndRefusal, type LndTarget } from './lnd-rest.ts';
import { validUntil } from './macaroon-caveats.ts';

const CALL_MS = 5_000;
/** How long the first words of a payment may take, and how long we wait for its end after them. */
const SEND_MS = 6_000;
const END_MS = 2_000;
/** How long LND looks for routes; a payment that is on its way goes on. */
const ROUTE_SECONDS = 30;
/** How long what the node has just said of its key holds: it was asked for it a moment before it is asked to pay. */
const IDENTITY_MS = 1_000;
const PAGE = 200;
const MOST_DECODED = 1_000;
/** Also what failed; of the routes that were tried only how they ended, as far as LND can leave that out (0.21; older ones do not look at it). */
const ALL = 'include_incomplete=true&omit_hops=true';
const MSAT = 1_000n;
/** LND knows a block before it has closed what must be closed in it, and may be told to wait with that after a start (`payments-expiration-grace-period`): an hour of blocks. */
const CLOSES_WITHIN = 6n;

/** The methods that paying needs, as a macaroon's `uri` permissions name them. */
export const PAYING: readonly string[] = [
  '/lnrpc.Lightning/GetInfo',
  '/lnrpc.Lightning/DecodePayReq',
  '/lnrpc.Lightning/ListChannels',
  '/lnrpc.Lightning/ListPayments',
  '/routerrpc.Router/SendPaymentV2',
  '/routerrpc.Router/TrackPaymentV2',
];

const STATUSES: Readonly<Record<string, PaymentFacts['status']>> = {
  INITIATED: 'in_flight',
  IN_FLIGHT: 'in_flight',
  UNKNOWN: 'in_flight',
  SUCCEEDED: 'succeeded',
  FAILED: 'failed',
};

function paymentFacts(answer: Answer): PaymentFacts {
  const said = text(answer, 'status');
  const status = STATUSES[said];
  if (status === undefined) throw new NodeTrouble('bad_answer', `LND: a payment is ${said}`);
  const taken = objects(answer, 'htlcs').flatMap((part) => (part.status === 'SUCCEEDED' ? [takenBy(part)] : []));
  const preimage = typeof answer.payment_preimage === 'string' ? answer.payment_preimage.toLowerCase() : '';
  const isTaken = status === 'succeeded' || (status === 'in_flight' && taken.length > 0);
  return {
    paymentHash: text(answer, 'payment_hash').toLowerCase(),
    status,
    amountMsat: String(whole(answer, 'value_msat')),
    feeMsat: String(whole(answer, 'fee_msat')),
    preimage: isTaken ? preimage : null,
    ...broughtBy(taken),
    failure: status === 'failed' ? text(answer, 'failure_reason') : null,
    paymentIndex: String(whole(answer, 'payment_index')),
    isPartOpen: openParts(answer).length > 0,
  };
}

/** Null where LND does not say it. */
function takenBy({ route }: Answer): bigint | null {
  const { total_amt_msat: all, total_fees_msat: fees } = (route ?? {}) as Answer;
  return all === undefined || fees === undefined ? null : whole({ all }, 'all') - whole({ fees }, 'fees');
}
/** What parts have brought together; nothing where LND does not say it of each. */
function broughtBy(taken: readonly (bigint | null)[]): { readonly takenMsat?: string } {
  const known = taken.filter((one) => one !== null);
  if (known.length === 0 || known.length < taken.length) return {};
  return { takenMsat: String(known.reduce((total, one) => total + one, 0n)) };
}
const openParts = (payment: Answer): readonly Answer[] => objects(payment, 'htlcs').filter((part) => part.status === 'IN_FLIGHT');
/** By which of our channels a part has left; undefined where LND leaves its hops out. */
const channelOf = (route: Answer): unknown => objects(route, 'hops')[0]?.chan_id;

/** Every number that a channel may be called by in a route: one that was used before it was in a block keeps the number of then in lists, and has another in routes. */
const numbersOf = ({ chan_id: listed, zero_conf_confirmed_scid: confirmed, alias_scids: aliases }: Answer): readonly unknown[] =>
  [listed, confirmed, ...(Array.isArray(aliases) ? aliases : [])].filter((one) => typeof one === 'string' && one !== '0');

/** What our side of an active channel can send: what it has, less what it must keep and, where we pay them, the fees. */
function spendableOf(channel: Answer): bigint {
  const constraints = (channel.local_constraints ?? {}) as Answer;
  const fee = channel.initiator === true ? 2n * whole(channel, 'commit_fee') : 0n;
  const rest = whole(channel, 'local_balance') - whole(constraints, 'chan_reserve_sat') - fee;
  return rest > 0n ? rest : 0n;
}

/** How many HTLCs a channel takes besides those that it holds: each side has its own limit, and both must take one. */
function freeSlotsOf(channel: Answer): number {
  const most = (side: string): number => Number(whole((channel[side] ?? {}) as Answer, 'max_accepted_htlcs'));
  const held = objects(channel, 'pending_htlcs').length;
  return Math.max(0, Math.min(most('local_constraints'), most('remote_constraints')) - held);
}

const inPath = (hex: string): string =>
  encodeURIComponent(Buffer.from(hex, 'hex').toString('base64').replaceAll('+', '-').replaceAll('/', '_'));

/**
 * @param target with the macaroon that may pay
 * @param options.callMs how long an answer may take
 */
export function createLndPayer(
  target: () => Promise<LndTarget>,
  { callMs: deadlineMs = CALL_MS }: { readonly callMs?: number } = {},
): LightningPayer {
  const rest = createLndRest(target);
  const get = (path: string): Promise<Answer> => rest.call('GET', path, { deadlineMs });

  /** What the node has read in invoices: the same each time, and each is read twice, before it is authorized and before it is paid. */
  const decoded = new Map<string, Pick<Invoice, 'paymentHash' | 'amountMsat'>>();
  /** How many payments are asked for at once. */
  let listed = PAGE;
  let identified: { readonly identity: string; readonly atMs: number } | null = null;
  function identityOf(info: Answer): string {
    const identity = text(info, 'identity_pubkey');
    identified = { identity, atMs: performance.now() };
    return identity;
  }

  async function send({ paymentRequest, amount, feeLimit, notAfterMs }: PaymentOrder): Promise<SendAnswer> {
    const body = {
      payment_request: paymentRequest,
      ...(amount === null ? {} : { amt_msat: String(amount * MSAT) }),
      fee_limit_msat: String(feeLimit * MSAT),
      timeout_seconds: ROUTE_SECONDS,
    };
    const ending = new AbortController();
    let timer = setTimeout(() => ending.abort(), SEND_MS);
    let payment: PaymentFacts | null = null;
    try {
      const narrowed = (macaroon: string): string => validUntil(macaroon, notAfterMs);
      for await (const line of rest.lines('/v2/router/send', ending.signal, { body, narrowed })) {
        if (payment === null) {
          clearTimeout(timer);
          timer = setTimeout(() => ending.abort(), END_MS);
        }
        payment = paymentFacts(line);
        if (payment.status !== 'in_flight') break;
      }
    } catch (error) {
      if (payment === null) return notTaken(error);
    } finally {
      clearTimeout(timer);
      endUnlessLast(payment, ending);
    }
    return payment === null
      ? { state: 'unanswered', reason: 'LND ended its answer without a word' }
      : { state: 'taken', payment };
  }

  /**
   * Up to which block a part may arrive that no channel lists; null where none may. LND lists an HTLC only once the other side has said that it has it. Until then
   * it sends it again with each connection, also to somebody who is there and does not say so. In the block in which its time lock ends LND closes the channel.
   */
  async function arrivesUntil(parts: readonly Answer[], channels: readonly Answer[]): Promise<number | null> {
    const open = new Set(channels.flatMap(numbersOf));
    const routes = parts.map(({ route }) => (route ?? {}) as Answer).filter((route) => open.has(channelOf(route)));
    if (routes.length === 0) return null;
    const until = routes.reduce((most, route) => maxOf(most, whole(route, 'total_time_lock')), 0n) + CLOSES_WITHIN;
    return whole(await get('/v1/getinfo'), 'block_height') < until ? Number(until) : null;
  }

  return {
    async node() {
      const [info, newest, open] = await Promise.all([
        get('/v1/getinfo'),
        get(`/v1/payments?${ALL}&reversed=true&max_payments=1`),
        get('/v1/channels'),
      ]);
      if (info.synced_to_chain !== true) throw new NodeTrouble('syncing', 'LND has not read its chain to the end');
      const all = objects(open, 'channels');
      const channels = all.filter(({ active }) => active === true);
      return {
        identity: identityOf(info),
        paymentIndex: String(objects(newest, 'payments').reduce((most, one) => maxOf(most, whole(one, 'payment_index')), 0n)),
        spendable: String(channels.reduce((total, channel) => total + spendableOf(channel), 0n)),
        freeSlots: channels.reduce((total, channel) => total + freeSlotsOf(channel), 0),
        // in seconds
        channels: all.map((one) => ({ point: text(one, 'channel_point'), countedMs: 1_000 * Number(whole(one, 'lifetime')) })),
      };
    },
    async identity() {
      const isKept = identified !== null && performance.now() - identified.atMs < IDENTITY_MS;
      return isKept && identified !== null ? identified.identity : identityOf(await get('/v1/getinfo'));
    },
    async decode(paymentRequest) {
      const known = decoded.get(paymentRequest);
      if (known !== undefined) return known;
      try {
        const read = await get(`/v1/payreq/${encodeURIComponent(paymentRequest)}`);
        const amountMsat = whole(read, 'num_msat');
        const said = { paymentHash: text(read, 'payment_hash').toLowerCase(), amountMsat: amountMsat === 0n ? null : amountMsat };
        if (decoded.size >= MOST_DECODED) decoded.clear();
        decoded.set(paymentRequest, said);
        return said;
      } catch (error) {
        if (error instanceof LndRefusal && !OPEN_CODES.includes(error.code)) return { refused: error.said };
        throw asTrouble(error);
      }
    },
    send,
    async track(paymentHash) {
      const ending = new AbortController();
      const timer = setTimeout(() => ending.abort(), CALL_MS);
      let payment: PaymentFacts | null = null;
      let open: readonly Answer[] = [];
      let clock: { readonly saidAtMs?: number } = {};
      const onClock = (saidAtMs: number): void => {
        clock = { saidAtMs };
      };
      try {
        // the first line is the present state
        for await (const line of rest.lines(`/v2/router/track/${inPath(paymentHash)}`, ending.signal, { onClock })) {
          payment = paymentFacts(line);
          open = openParts(line);
          break;
        }
      } catch (error) {
        if (!isNone(error)) throw asTrouble(error);
      } finally {
        clearTimeout(timer);
        endUnlessLast(payment, ending);
      }
      const lock = Buffer.from(paymentHash, 'hex').toString('base64');
      const channels = objects(await get('/v1/channels'), 'channels');
      const isHeld = channels.some((channel) => objects(channel, 'pending_htlcs').some((one) => one.hash_lock === lock));
      if (isHeld) return { payment, isPending: true, ...clock };
      const until = await arrivesUntil(open, channels);
      return { payment, isPending: until !== null, ...(until === null ? {} : { arrivesUntil: until }), ...clock };
    },
    async payments(afterIndex) {
      for (;;) {
        try {
          const page = await get(`/v1/payments?${ALL}&index_offset=${afterIndex}&max_payments=${listed}`);
          listed = Math.min(PAGE, listed * 2);
          return objects(page, 'payments').map(paymentFacts);
        } catch (error) {
          // each is listed with every route that was tried for it, and how many those are its recipient has a part in
          if (listed === 1 || !(await rest.isTooMuch(error))) throw error;
          listed = Math.ceil(listed / 8);
        }
      }
    },
    close: () => rest.close(),
  };
}

/** After the last word about a payment LND ends its answer by itself, and the connection can be used again. */
function endUnlessLast(payment: PaymentFacts | null, ending: AbortController): void {
  if (payment === null || payment.status === 'in_flight') ending.abort();
}

const maxOf = (a: bigint, b: bigint): bigint => (a > b ? a : b);

/** gRPC's cancelled, deadline exceeded and unavailable: a request was cut off, and may have been taken before. */
const OPEN_CODES: readonly number[] = [1, 4, 14];

/** What LND says while it is stopped, also of a payment that it has begun. */
const STOPPING = /shutting down/;

/** What LND says of an invoice that it can never pay, before it begins a payment: its texts are all that tells them from other refusals. */
const NEVER =
  /^invoice expired|^invoice not for current active network|^self-payments not allowed|must contain either a payment address|^the AMP flag|feature|^cltv limit|^amount must (?:not )?be specified|^invalid (?:payment request|invoice signature)/;

const CLOCKS = "is the node's clock ahead of this server's, or has BURSAR_LND_PAY_MACAROON itself expired?";

function notTaken(error: unknown): SendAnswer {
  if (error instanceof LndRefusal) {
    if (error.code === 6 || error.httpStatus === 409) return { state: 'known' };
    if (OPEN_CODES.includes(error.code) || STOPPING.test(error.said)) return { state: 'unanswered', reason: error.message };
    return NEVER.test(error.said) ? { state: 'never', reason: error.said } : { state: 'refused', reason: error.message };
  }
  if (error instanceof NodeTrouble) {
    const isAnswered = (error.state === 'unauthorized' || error.state === 'warming_up') && !isBrokenTls(error);
    // each request is good for the seconds of a lease
    const why = /macaroon has expired/.test(error.message) ? `${error.message}: ${CLOCKS}` : error.message;
    return { state: isAnswered ? 'refused' : 'unanswered', reason: why };
  }
  throw error;
}

/** Bytes that TLS cannot read: they may have been those of the answer. Another certificate than ours is refused before anything is asked. */
const isBrokenTls = ({ cause }: NodeTrouble): boolean =>
  /^ERR_(?:OSSL|SSL)/.test((cause as NodeJS.ErrnoException | undefined)?.code ?? '');

/** A refusal to say anything of a payment is no answer about it. */
function asTrouble(error: unknown): unknown {
  return error instanceof LndRefusal ? new NodeTrouble('bad_answer', error.message) : error;
}
