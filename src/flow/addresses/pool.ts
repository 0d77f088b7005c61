// Hands out receiving addresses, each only once: ranges of indexes come from the signer and are kept ready, keys come by public derivation.
// One pool per currency and process.
import { UnderivableIndex } from '../../core/account-key.ts';
import type { CurrencyCode } from '../../core/currency.ts';
import type { AddressDeriver, DerivedAddress, Ports } from '../../core/ports.ts';
import { Refusal } from '../../core/refusal.ts';
import { usableKey } from '../../store/chain/address-ranges.ts';
import type { Database } from '../../store/postgres/connect.ts';
import { type RangeRequest, requestRange } from './range-request.ts';

/** What addresses are made from: a part of Context. */
export type AddressContext = { readonly db: Database; readonly ports: Pick<Ports, 'clock' | 'addresses' | 'rng'> };

export type AddressPool = {
  /**
   * An address that was never given out before. Refuses with currency_unavailable when the currency has no key to receive with, or when
   * none is left and the signer does not answer.
   */
  next(): DerivedAddress | Promise<DerivedAddress>;
  /** Gets addresses ready in advance. */
  prepare(): Promise<void>;
};

type Range = {
  readonly keyId: bigint;
  readonly xpub: string;
  readonly deriver: AddressDeriver;
  nextIndex: number;
  readonly end: number;
};

/** How often a pool looks whether the operator has put another key in use. */
const KEY_FRESH_MS = 2_000;
/** How long a caller without an address waits for the signer; while it stays silent all other callers are refused at once. */
const SIGNER_WITHIN_MS = 2_000;

/** @param options.ready how many indexes are kept ready, so that nobody notices a restart of the signer; a range has as many */
export function createAddressPool(ctx: AddressContext, currency: CurrencyCode, options: { readonly ready: number }): AddressPool {
  let ranges: Range[] = [];
  let checkedAtMs = Number.NEGATIVE_INFINITY;
  let checking: Promise<void> | null = null;
  let asked: RangeRequest | null = null;

  /** Asks for one more range, one at a time; its addresses are then ready. */
  function ask(): RangeRequest {
    if (asked !== null) {
      asked.renew();
      return asked;
    }
    const request = requestRange(ctx, currency, options.ready);
    const answer = request.answer
      .then((range) => {
        const deriver = ctx.ports.addresses.of(currency, range.xpub);
        ranges.push({
          keyId: range.keyId,
          xpub: range.xpub,
          deriver,
          nextIndex: range.firstIndex,
          end: range.firstIndex + range.size,
        });
        return range;
      })
      .finally(() => {
        asked = null;
      });
    answer.catch(() => undefined); // a caller that waits for it gets the error; a refill in advance is asked for again with the next address
    asked = { ...request, answer };
    return asked;
  }

  /** Drops ranges of a key that is no longer in use, and indexes below the key's counter when that was raised. */
  function check(): Promise<void> {
    checking ??= (async () => {
      const startedMs = ctx.ports.clock.now();
      const key = await usableKey(ctx.db, currency);
      for (const range of ranges) range.nextIndex = Math.max(range.nextIndex, key?.startIndex ?? 0);
      // a database that was put back may have given the same id to another key
      ranges = ranges.filter(({ keyId, xpub, nextIndex, end }) => keyId === key?.id && xpub === key.xpub && nextIndex < end);
      checkedAtMs = startedMs;
    })().finally(() => {
      checking = null;
    });
    return checking;
  }

  function isFresh(): boolean {
    const age = ctx.ports.clock.now() - checkedAtMs;
    return age >= 0 && age < KEY_FRESH_MS;
  }

  /** The next address of the ranges at hand; null when none is left. */
  function take(): DerivedAddress | null {
    for (;;) {
      const [range] = ranges;
      if (range === undefined) return null;
      const index = range.nextIndex++;
      if (range.nextIndex >= range.end) ranges.shift();
      const left = ranges.reduce((sum, one) => sum + one.end - one.nextIndex, 0);
      if (left < options.ready) ask();
      try {
        return range.deriver.derive(index);
      } catch (error) {
        if (!(error instanceof UnderivableIndex)) throw error;
      }
    }
  }

  async function wait(): Promise<DerivedAddress> {
    for (;;) {
      if (!isFresh()) await check();
      const taken = take();
      if (taken !== null) return taken;
      const { answer, askedMs } = ask();
      await within(answer, SIGNER_WITHIN_MS - (performance.now() - askedMs), currency);
    }
  }

  return {
    next() {
      return (isFresh() ? take() : null) ?? wait();
    },
    async prepare() {
      await check();
      if (ranges.length === 0) await ask().answer;
    },
  };
}

/** The answer, if it comes within this time. */
async function within(answer: Promise<unknown>, ms: number, currency: CurrencyCode): Promise<void> {
  const message = `${currency} is not available right now: no address is left, and the signer gives out no new ones.`;
  const noAnswer = new Refusal('currency_unavailable', { message, retryAfterSeconds: 5 });
  if (ms <= 0) throw noAnswer;
  const timeUp = AbortSignal.timeout(Math.ceil(ms));
  let giveUp = (): void => undefined;
  const tooLate = new Promise<never>((_resolve, reject) => {
    giveUp = () => reject(noAnswer);
    timeUp.addEventListener('abort', giveUp);
  });
  try {
    await Promise.race([answer, tooLate]);
  } finally {
    timeUp.removeEventListener('abort', giveUp);
  }
}
