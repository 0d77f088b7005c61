// Compares the node's own list of payments with what payouts have asked for: what the node has paid and nobody here knows of turns the audit red.
import type { PayingNode, PaymentFacts } from '../../core/lightning/payer.ts';
import type { Context } from '../../flow/context.ts';
import { restoreListed } from '../../flow/lightning/restored-payments.ts';
import { tripBreaker } from '../../store/ledger/breakers.ts';
import { readPaymentsCompared, recordSent, setListedFor, unaskedHashes } from '../../store/lightning/sent-payments.ts';

/** Asks the signer; throws with a `fault` when it, or the node, cannot be asked. */
export type SentPayments = {
  node(): Promise<PayingNode>;
  payments(after: bigint): Promise<readonly PaymentFacts[]>;
};

const PAGES_AT_ONCE = 20;

/** How far a reading of the list has come: up to `compared` everything has ended, and is in the books as such. */
type Reading = {
  readonly identity: string;
  /** When what the node has was looked at last, as it began. */
  readonly heldAt: Date | null;
  /** Where it began. */
  readonly after: bigint;
  compared: bigint;
  from: bigint;
  isEnded: boolean;
};

async function begin(ctx: Context, identity: string): Promise<Reading | null> {
  const { compared, heldAt } = await readPaymentsCompared(ctx.db, identity);
  return compared === null ? null : { identity, heldAt, after: compared, compared, from: compared, isEnded: true };
}

/** Reads some pages on. @returns whether the list goes on */
async function readOn(ctx: Context, sent: Pick<SentPayments, 'payments'>, now: Reading, pages: number): Promise<boolean> {
  for (let read = 0; read < pages; read++) {
    const afterIndex = now.from;
    const page = await sent.payments(afterIndex);
    if (page.length === 0) {
      await restoreListed(ctx);
      if (now.heldAt !== null) await setListedFor(ctx.db, now.identity, now.heldAt);
      return false;
    }
    for (const { paymentIndex, status } of page) {
      now.isEnded &&= status !== 'in_flight';
      if (now.isEnded) now.compared = BigInt(paymentIndex);
      now.from = BigInt(paymentIndex);
    }
    await recordSent(ctx.db, now.identity, { afterIndex, payments: page }, now.compared, ctx.ports.clock.now());
  }
  return true;
}

/** Reads the list to its end. Throws with a `fault` when the signer, or the node, cannot be asked. */
export async function readSent(ctx: Context, sent: Pick<SentPayments, 'payments'>, identity: string): Promise<void> {
  const reading = await begin(ctx, identity);
  if (reading !== null) await readOn(ctx, sent, reading, Number.POSITIVE_INFINITY);
}

/**
 * Stops payouts where the node has paid what nobody here has asked for, as a stolen macaroon has it do.
 * @param of those of one node above a number; absent: all that are known
 * @returns whether there are any
 */
export async function stopOnUnasked(
  ctx: Context,
  onTrouble: (what: string) => void,
  of?: { readonly node: string; readonly afterIndex: bigint },
): Promise<boolean> {
  const unasked = await unaskedHashes(ctx.db, of);
  if (unasked.length === 0) return false;
  const findings = unasked.map(
    (hash) => `the Lightning node has paid ${hash}, or is paying it, and no payout here has asked for it`,
  );
  await tripBreaker(ctx.db, { name: 'payouts', by: ['LN-5'], findings, atMs: ctx.ports.clock.now() });
  onTrouble(`the Lightning node has paid what is not known here (bursar payout recover): payouts are stopped`);
  return true;
}

/**
 * Reads the list from the first payment that may still change, some pages at a time: one that hangs for days is followed by many. What nobody here has asked for
 * stops payouts, of all that is known at first, and then of what was read since, by whomever: others read the same list, and a reading may not come to its end.
 * @returns what reads on where it ended, and says whether there is more to read at once
 */
export function createPaymentComparison(
  ctx: Context,
  sent: SentPayments,
  onTrouble: (what: string) => void = () => undefined,
): () => Promise<boolean> {
  let reading: Reading | null = null;
  /** Up to there everything had ended, and was looked at. */
  let looked: { readonly node: string; readonly upTo: bigint } | null = null;
  async function look({ identity, after, compared }: Reading): Promise<void> {
    // a node that was restored gives its numbers again
    const of = looked?.node === identity ? { node: identity, afterIndex: looked.upTo < after ? looked.upTo : after } : undefined;
    await stopOnUnasked(ctx, onTrouble, of);
    looked = { node: identity, upTo: compared };
  }
  return async () => {
    try {
      const { identity } = await sent.node();
      const stored = await begin(ctx, identity);
      // it was put back meanwhile, or another worker has read on
      if (reading?.identity !== identity || reading.compared !== stored?.compared) reading = stored;
      const goesOn = reading !== null && (await readOn(ctx, sent, reading, PAGES_AT_ONCE));
      if (reading !== null && !goesOn) await look(reading);
      if (!goesOn) reading = null;
      return goesOn;
    } catch (error) {
      reading = null;
      // the job that pays says what is wrong
      if ((error as { fault?: string }).fault === undefined) throw error;
      return false;
    }
  };
}
