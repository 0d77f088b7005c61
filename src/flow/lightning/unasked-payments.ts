// Where our Lightning node and the books differ for good, an operator says so: what the node has paid and no payout here has asked for is booked, and
// what a payout had paid, or a customer, and the node has forgotten is let be; what the operator has paid himself, or taken, is booked as his.
import { LIGHTNING, MSAT } from '../../core/currencies/lightning.ts';
import {
  goneBy,
  lightningOutflowEntry,
  missingEntry,
  ownPaymentEntry,
  unknownReceiptEntry,
} from '../../core/lightning/postings.ts';
import { formatAmount, minus, mulDivDown, mulDivUp, plus } from '../../core/money.ts';
import { Refusal } from '../../core/refusal.ts';
import { postEntries } from '../../store/ledger/ledger.ts';
import { ourInvoices, setReceiptForgotten } from '../../store/lightning/comparison.ts';
import { lockMissing, lockOperatorsPart, readOperatorsBalance, setGoneBooked } from '../../store/lightning/operators-part.ts';
import { lockPaymentHash } from '../../store/lightning/payment-hashes.ts';
import {
  isUndecided,
  lockUnasked,
  mayHaveGoneBack,
  setAcknowledged,
  setForgotten,
  setOperators,
  type UnaskedPayment,
  waitingRefunds,
} from '../../store/lightning/sent-payments.ts';
import { acknowledgeUnknown, recordUnknown } from '../../store/lightning/unknown-invoices.ts';
import type { Sql } from '../../store/postgres/connect.ts';
import type { Context } from '../context.ts';
import { holdUnknown } from '../payouts/after-restore/unknown-movements.ts';

const refused = (paymentHash: string, what: string): Refusal =>
  new Refusal('not_resolvable', { message: `Payment ${paymentHash} ${what}.` });

/** @throws Refusal not_resolvable while it is under way */
async function lockEnded(sql: Sql, paymentHash: string): Promise<UnaskedPayment | null> {
  // who asks for a payout of its hash meanwhile would have what has left counted twice
  await lockPaymentHash(sql, paymentHash);
  const found = await lockUnasked(sql, paymentHash);
  if (found?.isUnderWay === true)
    throw refused(
      paymentHash,
      'is under way: it can be booked once the node has ended it (until then --own says that it is yours, and that it stops nothing)',
    );
  return found;
}

/**
 * Books one as lost.
 * @returns satoshis, fee included; null when there is no such payment
 * @throws Refusal not_resolvable while it is under way, or when the loss is not accepted
 */
export function bookUnasked(
  ctx: Context,
  { paymentHash, acceptsLoss }: { readonly paymentHash: string; readonly acceptsLoss: boolean },
): Promise<bigint | null> {
  return ctx.db.transaction(async (sql) => {
    const found = await lockEnded(sql, paymentHash);
    if (found === null) return null;
    const lost = mulDivUp(plus(found.amountMsat, found.feeMsat), 1n, MSAT);
    if (!acceptsLoss)
      throw refused(
        paymentHash,
        `has taken ${formatAmount(lost, LIGHTNING.code)} ${LIGHTNING.balance} for nobody here (--own books it as yours, if you have paid it yourself; --accept-loss books it as lost)`,
      );
    const atMs = ctx.ports.clock.now();
    await postEntries(sql, [{ entry: lightningOutflowEntry(paymentHash, lost), transactionId: null, atMs }]);
    await setAcknowledged(sql, paymentHash, false, atMs);
    await setGoneBooked(sql, found.node, lost);
    await holdSentBack(sql, atMs);
    return lost;
  });
}

/** What is to go back over Lightning may have gone back so: a person decides it. What is asked for from now on waits for his approval. */
async function holdSentBack(sql: Sql, atMs: number): Promise<void> {
  for (const { id, transactionId, paymentHash } of await waitingRefunds(sql))
    if (await mayHaveGoneBack(sql, transactionId, paymentHash)) await holdUnknown(sql, [id], atMs);
}

const OF_FAILED = 'was asked for by a payout that has failed here: it is no payment of your own';

/**
 * Keeps that a payment under way is the operator's: it stops nothing while it is, which may be for days, and is told again once it has succeeded, until
 * he has it booked. What a payout that has failed here had asked for is lost when it succeeds, and is never taken from what is his: until then he may let
 * others' payouts go on, however much it is.
 * @returns what it takes, in satoshis, without the fee that the node names at its end; null when there is no such payment, or it has ended
 * @throws Refusal not_resolvable when it is more than is his
 */
export function claimUnderWay(ctx: Context, paymentHash: string): Promise<bigint | null> {
  return ctx.db.transaction(async (sql) => {
    const found = await lockUnasked(sql, paymentHash);
    if (found === null || !found.isUnderWay) return null;
    const takes = goneBy({ ...found, cameBackMsat: 0n });
    if (found.isOperators) return takes;
    if (!found.isOfFailed) {
      await lockOperatorsPart(sql);
      await checkOperators(sql, takes, `Payment ${paymentHash}`);
    }
    await setOperators(sql, paymentHash);
    return takes;
  });
}

/**
 * Books one that the operator has paid himself, with what is his at the node: to somebody else, or to the node itself, over others, to move what its
 * channels can send. Then only the fee is gone.
 * @returns what is gone, in satoshis; null when there is no such payment
 * @throws Refusal not_resolvable while it is under way, when a payout here had asked for it, or when it is more than is his. NodeTrouble when the
 *   node cannot be asked whether it was paid itself
 */
export async function bookOwnPayment(ctx: Context, paymentHash: string): Promise<bigint | null> {
  const ours = await ourInvoices(ctx.db, [paymentHash]);
  // what a customer's invoice was paid is booked for him
  const invoice = ours.has(paymentHash) ? null : ((await ctx.ports.lightning?.invoice(paymentHash)) ?? null);
  return ctx.db.transaction(async (sql) => {
    const found = await lockEnded(sql, paymentHash);
    if (found === null) return null;
    if (found.isOfFailed) throw refused(paymentHash, OF_FAILED);
    const atMs = ctx.ports.clock.now();
    // what it brought is booked with it, and as no receipt besides (LN-9), unless it was booked as one before
    if (invoice?.state === 'settled') await recordUnknown(sql, found.node, [invoice]);
    const cameBackMsat = (await acknowledgeUnknown(sql, paymentHash, atMs)) ?? 0n;
    const payment = { ...found, cameBackMsat };
    const gone = goneBy(payment);
    // after the payment's row, as whoever reads the node's list takes them
    await lockOperatorsPart(sql);
    await checkOperators(sql, gone, `Payment ${paymentHash}`);
    const entry = ownPaymentEntry(paymentHash, payment);
    if (entry !== null) await postEntries(sql, [{ entry, transactionId: null, atMs }]);
    await setAcknowledged(sql, paymentHash, true, atMs);
    await setGoneBooked(sql, found.node, gone);
    return gone;
  });
}

/**
 * Books what a node has less than the books (LN-7) as its operator says: he has taken it (a channel was closed to an address elsewhere, what was at
 * another node is counted twice), or it is lost.
 * @returns satoshis; null when nothing is missing there
 * @throws Refusal not_resolvable when he says neither, when it is more than is his, while a payment (LN-5, LN-9) waits to be booked, or what the node
 *   has paid until then is not listed
 */
export function bookMissing(ctx: Context, identity: string, as: 'own' | 'lost' | null): Promise<bigint | null> {
  return ctx.db.transaction(async (sql) => {
    await lockOperatorsPart(sql);
    const missing = await lockMissing(sql, identity);
    if (missing === null) return null;
    const { amount } = missing;
    if (!missing.isListed)
      throw new Refusal('not_resolvable', {
        message: `What node ${identity} has paid since is not listed yet, and may be what is missing: say it again in a minute, with the signer running and its BURSAR_LND_PAY_MACAROON set.`,
      });
    if (await isUndecided(sql, identity))
      throw new Refusal('not_resolvable', {
        message: `Node ${identity} has paid, or was paid, what nobody has booked, and that may be what is missing: book it first (bursar audit, LN-5, LN-9), or let the payout go on, or cancel it, that waits with its hash.`,
      });
    if (as === null)
      throw new Refusal('not_resolvable', {
        message: `Node ${identity} has ${formatAmount(amount, LIGHTNING.code)} ${LIGHTNING.balance} less than the books (--own books it as taken out by you, --accept-loss as lost).`,
      });
    await checkOperators(sql, amount, `What is missing at node ${identity}`);
    const entry = missingEntry(identity, { amount, isOwn: as === 'own', atMs: missing.atMs });
    await postEntries(sql, [{ entry, transactionId: null, atMs: ctx.ports.clock.now() }]);
    await setGoneBooked(sql, identity, amount);
    return amount;
  });
}

/** @throws Refusal not_resolvable: only what is the operator's is taken from him; what customers are owed has to be there before */
async function checkOperators(sql: Sql, amount: bigint, what: string): Promise<void> {
  const there = await readOperatorsBalance(sql);
  if (there === null || amount <= there) return;
  const [taken, his, more] = [amount, there, minus(amount, there)].map((one) => formatAmount(one, LIGHTNING.code));
  throw new Refusal('not_resolvable', {
    message: `${what} is ${taken} ${LIGHTNING.balance}, and only ${his} there are yours: put ${more} into the node's wallet, and say it again once that is booked.`,
  });
}

/**
 * Lets a payment be that a payout had paid and that the node, restored from an older state, does not list: its preimage is here, so it was made,
 * and nothing is booked.
 * @returns the payout; null when there is no such payment
 */
export function acceptForgotten(ctx: Context, paymentHash: string): Promise<string | null> {
  return setForgotten(ctx.db, paymentHash, ctx.ports.clock.now());
}

/**
 * Lets a customer's payment be that the node announced and, restored from an older state or replaced before its list was compared, does not list: the
 * node had given the preimage for it, so it was made, and nothing is booked.
 * @returns its transaction; null when there is no such payment
 */
export function acceptForgottenReceipt(ctx: Context, paymentHash: string): Promise<string | null> {
  return setReceiptForgotten(ctx.db, paymentHash);
}

/**
 * Books what the node was paid for an invoice that this database does not know, made while it was away, as its operator's: he says whose it is, and
 * gives it back or makes it good himself.
 * @returns satoshis; null when there is no such payment
 */
export function bookUnknownReceipt(ctx: Context, paymentHash: string): Promise<bigint | null> {
  return ctx.db.transaction(async (sql) => {
    const atMs = ctx.ports.clock.now();
    const paidMsat = await acknowledgeUnknown(sql, paymentHash, atMs);
    if (paidMsat === null) return null;
    const amount = mulDivDown(paidMsat, 1n, MSAT);
    if (amount > 0n) await postEntries(sql, [{ entry: unknownReceiptEntry(paymentHash, amount), transactionId: null, atMs }]);
    return amount;
  });
}
