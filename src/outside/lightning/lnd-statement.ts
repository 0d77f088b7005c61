// What an LND has of its own, and what has happened to that besides invoices and payments: its channels and its wallet, what it has forwarded for
// others, and its transactions on the chain. It is only read.
import type {
  Forwarded,
  KnownChannels,
  NodeChainEvents,
  NodeHoldings,
  RunWithin,
  WalletTransaction,
} from '../../core/lightning/port.ts';
import { bad, isNone, objects, text, whole } from './lnd-answers.ts';
import type { Answer } from './lnd-rest.ts';

type Call = (verb: 'GET' | 'POST', path: string, body?: unknown) => Promise<Answer>;

/** The methods that this needs besides listing channels, as a macaroon's `uri` permissions name them. */
export const STATEMENT: readonly string[] = [
  '/lnrpc.Lightning/WalletBalance',
  '/lnrpc.Lightning/PendingChannels',
  '/lnrpc.Lightning/ClosedChannels',
  '/lnrpc.Lightning/GetTransactions',
  '/lnrpc.Lightning/ForwardingHistory',
];

const FORWARDS_AT_ONCE = 1_000;
const NS = 1_000_000_000n;

const textOr = (answer: Answer, name: string): string => (typeof answer[name] === 'string' ? answer[name] : '');

/** What of a channel is ours. Whoever has opened it pays its fees, out of what is not the other side's. */
function oursOf(channel: Answer): bigint {
  const htlcs = objects(channel, 'pending_htlcs');
  const sum = (isIncoming: boolean): bigint =>
    htlcs.filter(({ incoming = false }) => incoming === isIncoming).reduce((total, one) => total + whole(one, 'amount'), 0n);
  if (channel.initiator === true) return whole(channel, 'capacity') - whole(channel, 'remote_balance') - sum(true);
  return (
    whole(channel, 'local_balance') + sum(false) + 1n + BigInt(htlcs.filter(({ incoming = false }) => incoming === false).length)
  );
}

/** By its channel, whose number may be an alias of more than 63 bits, and its number there. */
const placeOf = (htlc: Answer, channel: string): string =>
  [htlc.incoming === true ? 'in' : 'out', channel, whole(htlc, 'htlc_index')].join(':');
/** Where its other half is, in the channel that it came by or goes on by; null of one that begins or ends here, or of which that is not decided. */
function otherHalfOf(htlc: Answer): string | null {
  const channel = textOr(htlc, 'forwarding_channel');
  if (channel === '' || channel === '0') return null;
  return [htlc.incoming === true ? 'out' : 'in', channel, whole(htlc, 'forwarding_htlc_index')].join(':');
}

/** Whether it came for an invoice of the node that is not settled: the other parts of the payment are missing, and it goes back. */
async function isForUnpaid(call: Call, htlc: Answer): Promise<boolean> {
  if (htlc.incoming !== true || otherHalfOf(htlc) !== null) return false;
  try {
    const hash = Buffer.from(text(htlc, 'hash_lock'), 'base64').toString('hex');
    return text(await call('GET', `/v1/invoice/${hash}`), 'state') !== 'SETTLED';
  } catch (error) {
    if (isNone(error)) return false;
    throw error;
  }
}

/**
 * Whether an HTLC may be in one place and no more, or not yet, in the other. Of one that goes through the node both halves are there until it has arrived or
 * come back, and then ours is as if it had not come; whoever it is for may hold it for weeks.
 */
async function isPaymentMoving(call: Call, channels: readonly Answer[]): Promise<boolean> {
  const all = channels.flatMap((channel) =>
    objects(channel, 'pending_htlcs').map((htlc) => ({ htlc, at: placeOf(htlc, textOr(channel, 'chan_id')) })),
  );
  const places = new Set(all.map(({ at }) => at));
  for (const { htlc } of all) {
    const other = otherHalfOf(htlc);
    if ((other === null || !places.has(other)) && !(await isForUnpaid(call, htlc))) return true;
  }
  return false;
}

const OPENING = 'pending_open_channels';
const CLOSING = ['pending_closing_channels', 'pending_force_closing_channels', 'waiting_close_channels'];

/** Whether the node has to do with a transaction that is in no block: it spends what is in the wallet, or is LND's own. Anybody may send something that is never mined. */
const isOfNode = (transaction: Answer): boolean =>
  whole(transaction, 'amount') < 0n ||
  textOr(transaction, 'label') !== '' ||
  objects(transaction, 'previous_outpoints').some((one) => one.is_our_output === true);

async function isWalletMoving(call: Call, wallet: Answer): Promise<boolean> {
  if (whole(wallet, 'locked_balance') !== 0n) return true;
  if (whole(wallet, 'unconfirmed_balance') === 0n) return false;
  const waiting = objects(await call('GET', '/v1/transactions?start_height=-1&end_height=-1'), 'transactions');
  // they were mined meanwhile
  return waiting.length === 0 || waiting.some(isOfNode);
}

/** Of a channel that somebody else opens nothing is ours yet, and he may never publish what opens it: LND lists it for two weeks. */
const isOpenedByOthers = (one: Answer): boolean => ((one.channel ?? {}) as Answer).initiator === 'INITIATOR_REMOTE';

/** What the node has in its channels and its wallet now, in satoshis, and whether anything of its own is between two of them. */
export async function readHoldings(call: Call): Promise<NodeHoldings> {
  // in this order: what leaves the wallet or a channel after it was read is among the channels that open or close
  const wallet = await call('GET', '/v1/balance/blockchain');
  const channels = objects(await call('GET', '/v1/channels'), 'channels');
  const pending = await call('GET', '/v1/channels/pending');
  const opening = objects(pending, OPENING).filter((one) => !isOpenedByOthers(one));
  return {
    inChannels: channels.reduce((total, channel) => total + oursOf(channel), 0n),
    roundedUp: channels.length + channels.reduce((total, one) => total + objects(one, 'pending_htlcs').length, 0),
    inWallet: whole(wallet, 'confirmed_balance'),
    isMoving:
      opening.length > 0 ||
      CLOSING.some((list) => objects(pending, list).length > 0) ||
      (await isWalletMoving(call, wallet)) ||
      (await isPaymentMoving(call, channels)),
  };
}

/** In the second list are also those whose closing by agreement is in no block yet: LND does not tell them apart. */
const HOLD_ON_CHAIN = ['pending_force_closing_channels', 'waiting_close_channels'];

/** Whether a channel is being closed that may hold HTLCs which no list of channels shows. */
export async function readIsClosing(call: Call): Promise<boolean> {
  const pending = await call('GET', '/v1/channels/pending');
  return HOLD_ON_CHAIN.some((list) => objects(pending, list).length > 0);
}

/** Whether a channel holds an HTLC of a payment of our own; what goes through the node with the same hash is somebody else's. */
export async function readHolds(call: Call, paymentHash: string): Promise<boolean> {
  const lock = Buffer.from(paymentHash, 'hex').toString('base64');
  const htlcs = objects(await call('GET', '/v1/channels'), 'channels').flatMap((channel) => objects(channel, 'pending_htlcs'));
  return htlcs.some((htlc) => htlc.hash_lock === lock && htlc.incoming !== true && otherHalfOf(htlc) === null);
}

/** LND's word for a channel of which the other side has shown a later state than it has itself. */
const DATA_LOSS = 'ChanStatusLocalDataLoss';
/** And for one that it is closing by force itself, whether the other side was met or not, of which no block knows yet. */
const CLOSES_BY_FORCE = 'ChanStatusCommitBroadcasted';
const BY_FORCE = ['LOCAL_FORCE_CLOSE', 'REMOTE_FORCE_CLOSE', 'BREACH_CLOSE'];
const BY_AGREEMENT = ['COOPERATIVE_CLOSE'];
/** Blocks come three times as fast as they should at most, but for an hour of them. */
const LEAST_BLOCK_MS = 200_000;
const HOUR_OF_BLOCKS = 6;

const NOTHING_KNOWN: KnownChannels = { had: [], closedBefore: [] };
const CHANNEL = 'channel_point';
const pendingIn = (pending: Answer, list: string): readonly Answer[] =>
  objects(pending, list).map((one) => (one.channel ?? {}) as Answer);

/** Whether a channel shows that the node may have been put back to an older state within a time: the other side closes a channel then, or has. */
export async function readMayBeOlder(
  call: Call,
  withinMs: number,
  { had, closedBefore } = NOTHING_KNOWN,
  { hasRunOn, areMet }: RunWithin = { hasRunOn: false, areMet: true },
): Promise<'no' | 'yes' | 'not_met'> {
  // in this order: one whose other side comes meanwhile is away in this list, or is being closed in the next
  const open = objects(await call('GET', '/v1/channels'), 'channels');
  const pending = await call('GET', '/v1/channels/pending');
  const closed = objects(await call('GET', '/v1/channels/closed'), 'channels');
  const waiting = pendingIn(pending, 'waiting_close_channels');
  const isCalled = (flag: string) => (channel: Answer) => textOr(channel, 'chan_status_flags').includes(flag);
  if (waiting.some(isCalled(DATA_LOSS))) return 'yes';
  const saysNothing = new Set(closedBefore);
  const counts = (channel: Answer): boolean => !saysNothing.has(textOr(channel, CHANNEL));
  const closing = [...waiting.filter(isCalled(CLOSES_BY_FORCE)), ...pendingIn(pending, 'pending_force_closing_channels')];
  if (closing.some(counts)) return 'yes';
  if (await isOneSince(call, withinMs, closed.filter(counts), BY_FORCE)) return 'yes';
  const opening = pendingIn(pending, OPENING);
  const listed = [...open, ...opening, ...CLOSING.flatMap((list) => pendingIn(pending, list)), ...closed];
  const points = (channels: readonly Answer[]) => new Set(channels.map((channel) => textOr(channel, CHANNEL)));
  const [all, again] = [points(listed), points(opening)];
  // what it had open it has forgotten
  if (had.some((point) => !all.has(point))) return 'yes';
  // only a start follows another state
  if (hasRunOn) return 'no';
  // one that it closed after that state it finds closed, and nobody shows it a later one
  if (await isOneSince(call, withinMs, closed.filter(counts), BY_AGREEMENT)) return 'yes';
  return areMet && open.every((channel) => channel.active === true) && !had.some((point) => again.has(point)) ? 'no' : 'not_met';
}

/** Whether one of them was closed in one of these ways within a time. */
async function isOneSince(call: Call, withinMs: number, channels: readonly Answer[], ways: readonly string[]): Promise<boolean> {
  const closed = channels.filter((one) => ways.includes(text(one, 'close_type')));
  if (closed.length === 0) return false;
  const height = Number(whole(await call('GET', '/v1/getinfo'), 'block_height'));
  const from = height - HOUR_OF_BLOCKS - Math.ceil(withinMs / LEAST_BLOCK_MS);
  return closed.some((one) => Number(whole(one, 'close_height')) >= from);
}

type Page = { readonly events: readonly Forwarded[]; readonly next: bigint };

/** A page of what was forwarded from a second on, oldest first; LND writes down what it has not yet before it answers. */
async function forwardsFrom(call: Call, second: bigint, { offset, most }: { offset: bigint; most: number }): Promise<Page> {
  const asked = { start_time: String(second), index_offset: Number(offset), num_max_events: most };
  const said = await call('POST', '/v1/switch', asked);
  const events = objects(said, 'forwarding_events').map((event) => ({
    atNs: whole(event, 'timestamp_ns'),
    feeMsat: whole(event, 'fee_msat'),
  }));
  return { events, next: whole(said, 'last_offset_index') };
}

/** The next ones after a time, oldest first; none when there are no more. */
export async function readForwarded(call: Call, afterNs: bigint): Promise<readonly Forwarded[]> {
  for (let offset = 0n; ; ) {
    const { events, next } = await forwardsFrom(call, afterNs / NS, { offset, most: FORWARDS_AT_ONCE });
    const found = events.filter(({ atNs }) => atNs > afterNs);
    if (found.length > 0 || events.length < FORWARDS_AT_ONCE) return found;
    if (next <= offset) throw bad(`forwarding events after number ${offset} end at number ${next}`);
    offset = next;
  }
}

/** Beyond every clock: the year 2242. */
const NEVER_S = 2n ** 33n;

/**
 * When the last one was. LND lists them from the oldest only, and a node may have forwarded millions, so the second of the last one is looked for by halves.
 */
export async function readLastForwarded(call: Call): Promise<bigint | null> {
  const isAnyFrom = async (second: bigint): Promise<boolean> =>
    (await forwardsFrom(call, second, { offset: 0n, most: 1 })).events.length > 0;
  // zero would mean a day ago
  let [from, to] = [1n, NEVER_S];
  if (!(await isAnyFrom(from))) return null;
  while (to - from > 1n) {
    const middle = (from + to) / 2n;
    if (await isAnyFrom(middle)) from = middle;
    else to = middle;
  }
  let last = from * NS - 1n;
  for (let page = await readForwarded(call, last); page.length > 0; page = await readForwarded(call, last))
    last = page.at(-1)?.atNs ?? last;
  return last;
}

/** LND's labels of the transactions that it makes for channels, but those that open one. */
const OF_CLOSING = /^\d+:(?:closechannel|justicetx)(?::|$)/;
/** What it makes to get the outputs of a close; also one that spends outputs of the wallet alone, so that another is mined sooner. */
const SWEEP = /^\d+:sweep(?::|$)/;

const txidOf = (outpoint: string): string => outpoint.split(':')[0] ?? '';

/**
 * What the blocks have done to the wallet and the channels, as LND lists it; what comes back of closed channels is left out.
 * @param fromHeight the first block, `toHeight` the last
 */
export async function readChainEvents(call: Call, fromHeight: number, toHeight: number): Promise<NodeChainEvents> {
  const transactions = await call('GET', `/v1/transactions?start_height=${fromHeight}&end_height=${toHeight}`);
  const open = objects(await call('GET', '/v1/channels'), 'channels');
  const closed = objects(await call('GET', '/v1/channels/closed'), 'channels');
  /** What we have put into the channels that a transaction opens. */
  const put = new Map<string, bigint>();
  const add = (channel: Answer, satoshis: bigint): void => {
    const txid = txidOf(text(channel, 'channel_point'));
    put.set(txid, (put.get(txid) ?? 0n) + satoshis);
  };
  for (const channel of open)
    if (channel.initiator === true) add(channel, whole(channel, 'capacity') - whole(channel, 'push_amount_sat'));
  for (const channel of closed) if (channel.open_initiator === 'INITIATOR_LOCAL') add(channel, whole(channel, 'capacity'));
  const closing = new Set(
    closed.flatMap((channel) => [
      text(channel, 'closing_tx_hash'),
      ...objects(channel, 'resolutions').map((one) => textOr(one, 'sweep_txid')),
    ]),
  );
  function isOfClosing(transaction: Answer): boolean {
    // the wallet spends an output of a close that it owns as any other; by any other output of a close, money comes back
    const spends = objects(transaction, 'previous_outpoints');
    const spent = spends.filter((one) => one.is_our_output !== true).map((one) => txidOf(textOr(one, 'outpoint')));
    const isSweep = SWEEP.test(textOr(transaction, 'label')) && (spent.length > 0 || spends.length === 0);
    return (
      isSweep ||
      OF_CLOSING.test(textOr(transaction, 'label')) ||
      [text(transaction, 'tx_hash'), ...spent].some((id) => closing.has(id))
    );
  }
  const walletTransaction = (transaction: Answer): WalletTransaction => ({
    txid: text(transaction, 'tx_hash'),
    height: Number(whole(transaction, 'block_height')),
    amount: whole(transaction, 'amount'),
    fee: whole(transaction, 'total_fees'),
    intoChannels: put.get(text(transaction, 'tx_hash')) ?? 0n,
  });
  return {
    transactions: objects(transactions, 'transactions')
      .filter((one) => !isOfClosing(one))
      .map(walletTransaction),
    closed: closed
      .map((channel) => ({ channelPoint: text(channel, 'channel_point'), height: Number(whole(channel, 'close_height')) }))
      .filter(({ height }) => height >= fromHeight),
  };
}
