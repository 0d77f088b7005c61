// What our Lightning node has in its channels and its wallet against the books: what has happened to it besides payments and payouts is booked as its
// operator's (what it earned by forwarding, what channels cost, what he put into the wallet or took out), and what is missing then is told.
import { MSAT } from '../../core/currencies/lightning.ts';
import type { Entry } from '../../core/judge/case.ts';
import type { Forwarded, LightningPort } from '../../core/lightning/port.ts';
import { closingEntry, operatorsOpeningEntry, routingEntry, walletEntry } from '../../core/lightning/postings.ts';
import { least, minus, mulDivDown, negated, plus, sum } from '../../core/money.ts';
import type { Context } from '../../flow/context.ts';
import { postEntries } from '../../store/ledger/ledger.ts';
import { isUnbooked, lockHoldings, readBookedThere, setHoldings } from '../../store/lightning/comparison.ts';
import { openHashes } from '../../store/lightning/invoices.ts';
import {
  type OperatorsPart,
  openOperatorsPart,
  readOperatorsPart,
  setClosedHeight,
  setForwarded,
  setWalletHeight,
} from '../../store/lightning/operators-part.ts';
import { isUndecided } from '../../store/lightning/sent-payments.ts';
import type { Sql } from '../../store/postgres/connect.ts';
import { withoutOpen } from './open-invoices.ts';
import { readSent, type SentPayments } from './sent-comparison.ts';
import { lookAtUnknown } from './unknown-invoices.ts';

type Node = { readonly identity: string; readonly height: number };
type Held = { readonly atMost: bigint; readonly atLeast: bigint };

/** Closing a channel, and getting everything back that was in it, costs less than this even when blocks are very dear. Satoshis. */
const MOST_FOR_A_CLOSE = 200_000n;
/** What was forwarded before this is in what the node had when it was first looked at. */
const FIRST_LOOK_BACK_MS = 86_400_000;
const NS_IN_MS = 1_000_000n;
/** Before everything that any node has forwarded; zero may have a meaning of its own. */
const EARLIEST_NS = 1_000_000_000n;
const ALL_OPEN = 1_000_000;

/** Books what has happened at the node, and keeps what it has and what the books have there, unless something is under way in either. */
export async function compareHoldings(
  ctx: Context,
  { port, sent }: { readonly port: LightningPort; readonly sent: SentPayments | null },
  node: Node,
): Promise<void> {
  const part = await readOperatorsPart(ctx.db, node.identity);
  // in the sandbox what is in its channels is booked as capital when it is made
  if (part === null || (ctx.network === 'sandbox' && !part.hasCapital)) return;
  await bookForwarded(ctx, port, node, part);
  const events = part.isOpen ? await bookWallet(ctx, port, node, part) : [];
  if (events === null) return;
  const before = await readBookedThere(ctx.db);
  const holdings = await port.holdings();
  if (before.onItsWay !== 0n || holdings.isMoving) return;
  const atMost = plus(holdings.inChannels, holdings.inWallet);
  const held = { atMost, atLeast: minus(atMost, BigInt(holdings.roundedUp)) };
  const isSame = async (): Promise<boolean> => isStill(ctx, port, node, before.whole);
  let booked = 0n;
  if (!part.isOpen) {
    // what the node has paid, or was paid, and an operator has yet to book would be in the opening too
    await lookAtUnknown(ctx, port, node.identity);
    if (!(await isDecided(ctx, sent, node))) return;
    if (await isSame()) booked = await openPart(ctx, node, minus(held.atLeast, before.whole));
  }
  if (events.length > 0) {
    // what was paid, and nobody has booked, would be taken for what closing has cost, and be booked once more later
    if (!(await isDecided(ctx, sent, node))) return;
    const cost = await bookClosing(ctx, { node, part, closed: events, held, booked: before.whole, isSame });
    // what closing has cost would be taken for what was missing before
    if (cost === null) return;
    booked = cost;
  }
  const after = await readBookedThere(ctx.db);
  if (after.onItsWay !== 0n) return;
  const bookedThere = plus(least(before.whole, minus(after.whole, booked)), booked);
  // a block that came meanwhile, or one payment in and another out, may be in what was read of one of the two alone
  const isOneMoment = after.whole === plus(before.whole, booked) && (await isAt(port, node));
  if (atMost < bookedThere && !isOneMoment) return;
  await ctx.db.transaction(async (sql) => {
    await lockHoldings(sql, node.identity);
    if ((await readBookedThere(sql)).whole !== after.whole) return;
    await setHoldings(sql, node.identity, { atNode: atMost, bookedThere, atMs: ctx.ports.clock.now() });
  });
  // what is missing can be booked by its operator once it is known not to be a payment
  if (atMost < bookedThere) await isDecided(ctx, sent, node);
}

/**
 * Whether nobody has to say whose something is that the node has paid or was paid. Its payments are listed by another job, so those until now are
 * read first: what the node has was read before.
 */
async function isDecided(ctx: Context, sent: SentPayments | null, { identity }: Node): Promise<boolean> {
  try {
    if (sent !== null && (await sent.node()).identity === identity) await readSent(ctx, sent, identity);
  } catch (error) {
    // the job that pays says what is wrong
    if ((error as { fault?: string }).fault === undefined) throw error;
    return false;
  }
  return !(await isUndecided(ctx.db, identity, 'this_look'));
}

/** Whether no block has come since, and it is the same node. */
async function isAt(port: LightningPort, { identity, height }: Node): Promise<boolean> {
  const condition = await port.condition();
  return condition.state === 'ready' && condition.height === height && condition.identity === identity;
}

/** Where what was forwarded is read from. */
const forwardedFrom = (ctx: Context, { forwardedNs }: Pick<OperatorsPart, 'forwardedNs'>): bigint =>
  forwardedNs ?? BigInt(ctx.ports.clock.now() - FIRST_LOOK_BACK_MS) * NS_IN_MS;

const forwardedSince = (ctx: Context, port: LightningPort, part: OperatorsPart): Promise<readonly Forwarded[]> =>
  port.forwarded(forwardedFrom(ctx, part));

/** Reads to the end what was forwarded, some at a time. */
async function bookForwarded(ctx: Context, port: LightningPort, node: Node, part: OperatorsPart): Promise<void> {
  for (let from: OperatorsPart | null = part; from !== null; ) from = await bookNextForwarded(ctx, port, node, from);
}

/**
 * Of a node that is not in the books yet it is only read how far it goes.
 * @returns how far it is read; null when that is the end, or another worker reads it
 */
async function bookNextForwarded(
  ctx: Context,
  port: LightningPort,
  { identity }: Node,
  part: OperatorsPart,
): Promise<OperatorsPart | null> {
  const found = await forwardedSince(ctx, port, part);
  const last = found.at(-1);
  if (last === undefined) {
    if (part.forwardedNs !== null) return null;
    // our clock may be days fast, and a day before it in the node's future: then its own times say how far it goes
    const ns = part.isOpen ? forwardedFrom(ctx, part) : ((await port.lastForwardedNs()) ?? EARLIEST_NS);
    // otherwise what is forwarded while nobody looks for longer than that would never be read
    await setForwarded(ctx.db, identity, part, { ns, msat: part.forwardedMsat });
    return null;
  }
  const earned = part.isOpen ? sum(found.map((one: Forwarded) => one.feeMsat)) : 0n;
  const msat = plus(part.forwardedMsat, earned);
  const [all, booked] = [msat, part.forwardedMsat].map((total) => mulDivDown(total, 1n, MSAT)) as [bigint, bigint];
  return ctx.db.transaction(async (sql) => {
    if (!(await setForwarded(sql, identity, part, { ns: last.atNs, msat }))) return null;
    if (all > booked) await post(ctx, sql, [routingEntry(identity, all, minus(all, booked))]);
    return { ...part, forwardedNs: last.atNs, forwardedMsat: msat };
  });
}

/** @returns the channels that were closed since, whose cost is not booked; null when another worker has booked meanwhile, or something is under way */
async function bookWallet(ctx: Context, port: LightningPort, { identity, height }: Node, part: OperatorsPart) {
  if (height <= part.walletHeight && height <= part.closedHeight) return [];
  // the transaction that opens a channel says nothing of it before the channel is there
  if ((await port.holdings()).isMoving) return null;
  const from = Math.min(part.walletHeight, part.closedHeight) + 1;
  const { transactions, closed } = await port.chainEvents(from, height);
  // older ones are booked, and are read again only for the channels that were closed since
  const unread = transactions.filter((one) => one.height > part.walletHeight);
  const entries = unread.map(walletEntry).filter((entry) => entry !== null);
  const isBooked = await ctx.db.transaction(async (sql) => {
    if (height <= part.walletHeight) return true;
    if (!(await setWalletHeight(sql, identity, part.walletHeight, height))) return false;
    if (entries.length > 0) await post(ctx, sql, entries);
    return true;
  });
  if (!isBooked) return null;
  const unbooked = closed.filter((one) => one.height > part.closedHeight);
  if (unbooked.length === 0) await setClosedHeight(ctx.db, identity, part.closedHeight, Math.max(part.closedHeight, height));
  return unbooked;
}

/** What the node has besides what is booked is its operator's. Where it has less, LN-7 says so. @returns what was booked */
function openPart(ctx: Context, { identity, height }: Node, amount: bigint): Promise<bigint> {
  return ctx.db.transaction(async (sql) => {
    if (!(await openOperatorsPart(sql, identity, height, ctx.ports.clock.now())) || amount <= 0n) return 0n;
    await post(ctx, sql, [operatorsOpeningEntry(identity, amount)]);
    return amount;
  });
}

type Closing = {
  readonly node: Node;
  readonly part: OperatorsPart;
  readonly closed: readonly { readonly channelPoint: string }[];
  readonly held: Held;
  readonly booked: bigint;
  readonly isSame: () => Promise<boolean>;
};

/**
 * What is missing once channels were closed, and everything that was in them is back or lost, is what that has cost; as far as it can have cost it.
 * More than that, and what was missing before, is told (LN-7), and not booked; nor is it when more channels close later.
 * @returns what was booked; null when that has to wait for the next look
 */
async function bookClosing(ctx: Context, { node, part, closed, held, booked, isSame }: Closing): Promise<bigint | null> {
  const since = minus(minus(booked, held.atMost), part.missing);
  const missing = since > 0n ? minus(minus(booked, held.atLeast), part.missing) : 0n;
  const isCost = missing > 0n && missing <= BigInt(closed.length) * MOST_FOR_A_CLOSE;
  if (!(await isSame())) return null;
  return ctx.db.transaction(async (sql) => {
    if (!(await setClosedHeight(sql, node.identity, part.closedHeight, node.height))) return null;
    if (!isCost) return 0n;
    await post(ctx, sql, [closingEntry(closed.at(-1)?.channelPoint ?? '', missing)]);
    return negated(missing);
  });
}

/**
 * Whether what was read of the node and the books belongs together: no invoice of ours was paid that is not booked, nothing was forwarded, no block
 * came, and the books have not changed.
 */
async function isStill(ctx: Context, port: LightningPort, node: Node, booked: bigint): Promise<boolean> {
  const ours = await withoutOpen(port, await openHashes(ctx.db, ALL_OPEN));
  const part = await readOperatorsPart(ctx.db, node.identity);
  if (part === null || ours.size > 0 || (await isUnbooked(ctx.db)) || (await forwardedSince(ctx, port, part)).length > 0)
    return false;
  const isSameBlock = await isAt(port, node);
  const { whole, onItsWay } = await readBookedThere(ctx.db);
  return isSameBlock && whole === booked && onItsWay === 0n;
}

async function post(ctx: Context, sql: Sql, entries: readonly Entry[]): Promise<void> {
  const atMs = ctx.ports.clock.now();
  await postEntries(
    sql,
    entries.map((entry) => ({ entry, transactionId: null, atMs })),
  );
}
