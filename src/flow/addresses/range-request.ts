// A request for one range of address indexes, and its answer. It goes through the database, since the signer may run on another machine.
import type { CurrencyCode } from '../../core/currency.ts';
import type { Rng } from '../../core/ports.ts';
import { Refusal } from '../../core/refusal.ts';
import { type AddressRange, askForRange, GIVEN, renewRequest, takeRange } from '../../store/chain/range-requests.ts';
import type { Database } from '../../store/postgres/connect.ts';

export type RangeRequest = {
  /** Settles when the signer has answered, however long that takes; rejects when the database fails or there is no key to derive from. */
  readonly answer: Promise<AddressRange>;
  /** When it was asked, on the process's own steady clock. */
  readonly askedMs: number;
  /** Marks the request as still wanted. */
  renew(): void;
};

const RENEWED_EVERY_MS = 30_000;

/** Requests a range of the currency's key in use. */
export function requestRange(
  ctx: { readonly db: Database; readonly ports: { readonly rng: Rng } },
  currency: CurrencyCode,
  size: number,
): RangeRequest {
  const askedMs = performance.now();
  let renewedMs = askedMs;
  let id = '';
  let wake = (): void => undefined;

  async function ask(): Promise<void> {
    id = Buffer.from(ctx.ports.rng.bytes(16)).toString('hex');
    if (await askForRange(ctx.db, { id, currency, size })) return;
    throw new Refusal('currency_unavailable', { message: `No account key of ${currency} is known; see "bursar keys".` });
  }
  async function run(): Promise<AddressRange> {
    const stop = await ctx.db.listen(
      [GIVEN],
      (_channel, answered) => {
        if (answered === id) wake();
      },
      () => wake(),
    );
    try {
      await ask();
      for (;;) {
        const notified = new Promise<void>((resolve) => {
          wake = resolve;
        });
        const taken = await takeRange(ctx.db, id);
        if (typeof taken === 'object') return taken;
        // the database was set back, or the signer has forgotten the request: an answer to the old id would do too, but a caller waits for
        // one id only
        if (taken === 'unknown') await ask();
        else await notified;
      }
    } finally {
      await stop();
    }
  }
  return {
    answer: run(),
    askedMs,
    renew() {
      if (performance.now() - renewedMs < RENEWED_EVERY_MS) return;
      renewedMs = performance.now();
      renewRequest(ctx.db, id).then(
        () => wake(),
        () => wake(),
      );
    },
  };
}
