// LND's REST calls as the simulated node answers them: paths, the method that a macaroon must permit, shapes and refusals of LND 0.21. Numbers of
// 64 bits are text, bytes are base64.
import type { Invoice, LightningNode } from './node.ts';

/** LND refuses nearly everything with HTTP 500 and code 2. */
export class LndRefused extends Error {
  readonly httpStatus: number;
  readonly code: number;
  constructor(message: string, httpStatus = 500, code = 2) {
    super(message);
    this.httpStatus = httpStatus;
    this.code = code;
  }
}

export type Asked = {
  readonly node: LightningNode;
  readonly nowMs: number;
  /** The groups of the path's pattern. */
  readonly parts: readonly string[];
  readonly query: URLSearchParams;
  readonly body: Readonly<Record<string, unknown>>;
};
export type LndMethod = {
  readonly verb: 'GET' | 'POST';
  readonly path: RegExp;
  /** What the macaroon must permit; null = none is needed. */
  readonly permission: string | null;
  readonly changes: boolean;
  /** The JSON of the answer. */
  readonly answer: (asked: Asked) => unknown;
};

const MOST_MEMO_BYTES = 639;
const MOST_MSAT = 100_000n * 100_000_000_000n;
const USUAL_EXPIRY = 86_400;
const PAGE = 100;
const CHANNEL_POINT = `${'11'.repeat(32)}:0`;
/** The most that either side of a channel accepts on its way at once. */
const MOST_HTLCS = 483;

/** Hexadecimal as the base64 in which LND's REST writes bytes. */
export const base64 = (hex: string): string => Buffer.from(hex, 'hex').toString('base64');
const seconds = (ms: number): string => String(Math.floor(ms / 1000));
const amounts = (msat: bigint): { readonly sat: string; readonly msat: string } => ({
  sat: String(msat / 1000n),
  msat: String(msat),
});

/** An invoice as `lnrpc.Invoice` in JSON: numbers of 64 bits are strings, bytes base64. */
export function invoiceAnswer(invoice: Invoice): Record<string, unknown> {
  const isSettled = invoice.status === 'SETTLED';
  const each = isSettled ? invoice.paidMsat / BigInt(invoice.parts) : 0n;
  return {
    memo: invoice.memo,
    r_preimage: base64(invoice.preimage),
    r_hash: base64(invoice.hash),
    value: String(invoice.valueMsat / 1000n),
    value_msat: String(invoice.valueMsat),
    settled: isSettled,
    creation_date: seconds(invoice.createdAtMs),
    settle_date: isSettled ? seconds(invoice.settledAtMs) : '0',
    payment_request: invoice.paymentRequest,
    expiry: String(invoice.expirySeconds),
    cltv_expiry: '80',
    private: false,
    add_index: String(invoice.addIndex),
    settle_index: String(invoice.settleIndex),
    amt_paid_sat: String(invoice.paidMsat / 1000n),
    amt_paid_msat: String(invoice.paidMsat),
    state: invoice.status,
    htlcs: Array.from({ length: invoice.parts }, () => ({ state: 'SETTLED', amt_msat: String(each) })),
    is_keysend: false,
  };
}

/**
 * A number of 64 bits in a request.
 * @param usual what counts when it was not sent
 */
export function whole(body: Asked['body'], name: string, usual: bigint): bigint {
  const value = body[name] ?? String(usual);
  if ((typeof value === 'string' || typeof value === 'number') && /^-?\d{1,19}$/.test(String(value))) return BigInt(value);
  throw new LndRefused(`proto: invalid value for int64 field ${name}: ${JSON.stringify(value)}`, 400, 3);
}

const bytesOf = (body: Asked['body'], name: string): Buffer =>
  Buffer.from(typeof body[name] === 'string' ? body[name] : '', 'base64');

function addInvoice({ node, body }: Asked): unknown {
  const known = ['memo', 'value', 'value_msat', 'expiry', 'private', 'r_preimage'];
  const unknown = Object.keys(body).find((name) => !known.includes(name));
  if (unknown !== undefined) throw new LndRefused(`proto: (line 1:2): unknown field "${unknown}"`, 400, 3);
  const [sat, msat] = [whole(body, 'value', 0n), whole(body, 'value_msat', 0n)];
  if (sat !== 0n && msat !== 0n) throw new LndRefused('sat and msat arguments are mutually exclusive');
  const valueMsat = sat !== 0n ? sat * 1000n : msat;
  if (valueMsat < 0n) throw new LndRefused('amount cannot be negative');
  if (valueMsat > MOST_MSAT) throw new LndRefused(`invoice amount ${valueMsat} mSAT is too large, max is 100000 BTC`);
  const memo = typeof body.memo === 'string' ? body.memo : '';
  if (Buffer.byteLength(memo) > MOST_MEMO_BYTES)
    throw new LndRefused(`memo too large: ${Buffer.byteLength(memo)} bytes (maximum ${MOST_MEMO_BYTES})`);
  const preimage = bytesOf(body, 'r_preimage');
  if (preimage.length !== 32) throw new LndRefused(`payment preimage must be exactly 32 bytes, is instead ${preimage.length}`);
  const expirySeconds = Number(whole(body, 'expiry', BigInt(USUAL_EXPIRY)));
  const made = node.add({ preimage: preimage.toString('hex'), valueMsat, memo, expirySeconds });
  if (made === null) throw new LndRefused('invoice with payment hash already exists');
  const { r_hash, payment_request, add_index } = invoiceAnswer(made);
  return { r_hash, payment_request, add_index, payment_addr: base64('00'.repeat(32)) };
}

function lookUp({ node, parts: [hash = ''] }: Asked): unknown {
  const found = node.find(hash.toLowerCase());
  if (found === null) throw new LndRefused('unable to locate invoice', 404, 5);
  return invoiceAnswer(found);
}

function cancel({ node, body }: Asked): unknown {
  const status = node.cancel(bytesOf(body, 'payment_hash').toString('hex'));
  if (status === null) throw new LndRefused('unable to locate invoice');
  if (status === 'SETTLED') throw new LndRefused('invoice already settled');
  return {};
}

function list({ node, query }: Asked): unknown {
  const after = Number(query.get('index_offset') ?? 0);
  const most = Number(query.get('num_max_invoices') ?? PAGE);
  const isOpenOnly = query.get('pending_only') === 'true';
  const page = node
    .all()
    .slice(after)
    .filter((invoice) => !isOpenOnly || invoice.status === 'OPEN')
    .slice(0, most);
  return {
    invoices: page.map(invoiceAnswer),
    first_index_offset: String(page[0]?.addIndex ?? 0),
    last_index_offset: String(page.at(-1)?.addIndex ?? 0),
  };
}

const info = ({ node, nowMs }: Asked): unknown => ({
  version: '0.21.2-beta (simulated)',
  identity_pubkey: node.identity,
  alias: 'sandbox',
  num_active_channels: 1,
  block_height: node.own.height(),
  best_header_timestamp: seconds(nowMs),
  synced_to_chain: true,
  synced_to_graph: true,
  chains: [{ chain: 'bitcoin', network: 'regtest' }],
});

const CONSTRAINTS = { chan_reserve_sat: '0', max_accepted_htlcs: MOST_HTLCS };

const channels = ({ node, query }: Asked): unknown => {
  const state = { active: !node.isPeerAway(), lifetime: seconds(node.runsMs()) };
  if (!state.active && query.get('active_only') === 'true') return { channels: [] };
  const all = [
    {
      ...state,
      channel_point: CHANNEL_POINT,
      chan_id: '1',
      capacity: String(node.capacityMsat / 1000n),
      local_balance: String(node.localMsat() / 1000n),
      remote_balance: String(node.remoteMsat() / 1000n),
      unsettled_balance: '0',
      remote_constraints: CONSTRAINTS,
      local_constraints: CONSTRAINTS,
      initiator: true,
      private: false,
      push_amount_sat: '0',
      pending_htlcs: node.outgoing.inChannel().map(({ hash, amountMsat }) => ({
        incoming: false,
        amount: String(amountMsat / 1000n),
        hash_lock: base64(hash),
      })),
    },
    ...node.own.channels().map(({ channelPoint, capacity, pushed }) => ({
      ...state,
      channel_point: channelPoint,
      capacity: String(capacity),
      local_balance: String(capacity - pushed),
      remote_balance: String(pushed),
      remote_constraints: CONSTRAINTS,
      local_constraints: CONSTRAINTS,
      initiator: true,
      push_amount_sat: String(pushed),
      pending_htlcs: [],
    })),
  ];
  return { channels: all };
};

const pending = ({ node }: Asked): unknown => ({
  total_limbo_balance: '0',
  pending_open_channels: node.own.isBetween() && !node.own.isForced() ? [{}] : [],
  pending_force_closing_channels: node.own.isForced() ? [{}] : [],
  waiting_close_channels: [],
});

const closed = ({ node }: Asked): unknown => ({
  channels: node.own.closed().map(({ channelPoint, capacity, txid, height, settled }) => ({
    channel_point: channelPoint,
    capacity: String(capacity),
    closing_tx_hash: txid,
    close_height: height,
    settled_balance: String(settled),
    close_type: 'COOPERATIVE_CLOSE',
    open_initiator: 'INITIATOR_LOCAL',
    resolutions: [],
  })),
});

const transactions = ({ node, query }: Asked): unknown => ({
  transactions: node.own
    .transactions()
    .filter(({ height }) => height >= Number(query.get('start_height')) && height <= Number(query.get('end_height')))
    .map(({ txid, height, amount, fee, label, spends }) => ({
      tx_hash: txid,
      amount: String(amount),
      block_height: height,
      total_fees: String(fee),
      label,
      previous_outpoints: spends.map(({ outpoint, isOurs }) => ({ outpoint, is_our_output: isOurs })),
    })),
});

const walletBalance = ({ node }: Asked): unknown => ({
  total_balance: String(node.own.inWallet()),
  confirmed_balance: String(node.own.inWallet()),
  unconfirmed_balance: '0',
  locked_balance: '0',
});

function forwardingHistory({ node, body }: Asked): unknown {
  const from = whole(body, 'start_time', 0n) * 1_000_000_000n;
  const offset = Number(whole(body, 'index_offset', 0n));
  const page = node.own
    .forwarded()
    .filter(({ atNs }) => atNs >= from)
    .slice(offset, offset + Number(whole(body, 'num_max_events', 100n)));
  return {
    forwarding_events: page.map(({ atNs, feeMsat }) => ({
      timestamp_ns: String(atNs),
      timestamp: String(atNs / 1_000_000_000n),
      fee: String(feeMsat / 1000n),
      fee_msat: String(feeMsat),
    })),
    last_offset_index: offset + page.length,
  };
}

const balance = ({ node }: Asked): unknown => ({
  balance: String(node.localMsat() / 1000n),
  local_balance: amounts(node.localMsat()),
  remote_balance: amounts(node.remoteMsat()),
  unsettled_local_balance: amounts(0n),
  unsettled_remote_balance: amounts(0n),
});

const LIGHTNING = '/lnrpc.Lightning/';
/** A call that reads; one of LND's is a POST. */
const reading = (path: RegExp, method: string, answer: LndMethod['answer']): LndMethod => ({
  verb: 'GET',
  path,
  permission: `${LIGHTNING}${method}`,
  changes: false,
  answer,
});

/** Every call that is answered once; the stream of settlements is the server's. */
export const METHODS: readonly LndMethod[] = [
  { verb: 'GET', path: /^\/v1\/state$/, permission: null, changes: false, answer: () => ({ state: 'SERVER_ACTIVE' }) },
  reading(/^\/v1\/getinfo$/, 'GetInfo', info),
  { verb: 'POST', path: /^\/v1\/invoices$/, permission: `${LIGHTNING}AddInvoice`, changes: true, answer: addInvoice },
  reading(/^\/v1\/invoices$/, 'ListInvoices', list),
  reading(/^\/v1\/invoice\/([0-9a-fA-F]{64})$/, 'LookupInvoice', lookUp),
  {
    verb: 'POST',
    path: /^\/v2\/invoices\/cancel$/,
    permission: '/invoicesrpc.Invoices/CancelInvoice',
    changes: true,
    answer: cancel,
  },
  reading(/^\/v1\/channels$/, 'ListChannels', channels),
  reading(/^\/v1\/channels\/pending$/, 'PendingChannels', pending),
  reading(/^\/v1\/channels\/closed$/, 'ClosedChannels', closed),
  reading(/^\/v1\/transactions$/, 'GetTransactions', transactions),
  reading(/^\/v1\/balance\/blockchain$/, 'WalletBalance', walletBalance),
  { ...reading(/^\/v1\/switch$/, 'ForwardingHistory', forwardingHistory), verb: 'POST' },
  reading(/^\/v1\/balance\/channels$/, 'ChannelBalance', balance),
];
export const SUBSCRIBE = { path: '/v1/invoices/subscribe', permission: `${LIGHTNING}SubscribeInvoices` } as const;
