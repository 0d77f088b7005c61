// Hands out receiving addresses, each once in the life of the house: indexes come in ranges from the database, keys by public derivation.
// One pool per currency and process, called by the creation of a transaction.
import { UnderivableIndex } from '../core/account-key.ts';
import type { UtxoCode } from '../core/currency.ts';
import type { AddressDeriver, DerivedAddress, Ports } from '../core/ports.ts';
import { Refusal } from '../core/refusal.ts';
import { reserveRange, usableKey } from '../store/address-ranges.ts';
import type { Database } from '../store/connect.ts';

/** What addresses are made from: a part of Context. */
export type AddressContext = { readonly db: Database; readonly ports: Pick<Ports, 'clock' | 'addresses'> };

export type AddressPool = {
  /** An address that was never given out before; refuses with currency_unavailable when the currency has no key to receive with. */
  next(): DerivedAddress | Promise<DerivedAddress>;
};

type Range = { readonly keyId: bigint; readonly deriver: AddressDeriver; nextIndex: number; readonly end: number };

/** After this long a pool looks whether the operator has put another key in use. */
const KEY_FRESH_MS = 2_000;

/** @param options.rangeSize indexes reserved at once: what a crash can lose */
export function createAddressPool(ctx: AddressContext, currency: UtxoCode, options: { readonly rangeSize: number }): AddressPool {
  let current: Range | null = null;
  let spare: Range | null = null;
  let checkedAtMs = Number.NEGATIVE_INFINITY;
  let checking: Promise<void> | null = null;
  let reserving: Promise<Range> | null = null;

  function reserve(): Promise<Range> {
    reserving ??= reserveFresh().finally(() => {
      reserving = null;
    });
    return reserving;
  }

  async function reserveFresh(): Promise<Range> {
    const range = await reserveRange(ctx.db, currency, options.rangeSize);
    if (range === null) throw new Refusal('currency_unavailable');
    const deriver = ctx.ports.addresses.of(currency, range.xpub);
    const fresh = { keyId: range.keyId, deriver, nextIndex: range.firstIndex, end: range.firstIndex + options.rangeSize };
    spare = fresh;
    return fresh;
  }

  /** Forgets ranges of a key that is not in use any more. */
  function check(): Promise<void> {
    checking ??= (async () => {
      const startedMs = ctx.ports.clock.now();
      const key = await usableKey(ctx.db, currency);
      if (current !== null && current.keyId !== key) current = null;
      if (spare !== null && spare.keyId !== key) spare = null;
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

  /** The next address of the range at hand; null when none is left. */
  function take(): DerivedAddress | null {
    for (;;) {
      if (current === null || current.nextIndex >= current.end) {
        current = spare;
        spare = null;
        if (current === null) return null;
      }
      const range = current;
      const index = range.nextIndex++;
      if (spare === null && range.end - range.nextIndex < options.rangeSize / 4) reserve().catch(() => undefined); // the caller who needs it asks again
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
      await reserve();
    }
  }

  return {
    next() {
      return (isFresh() ? take() : null) ?? wait();
    },
  };
}
