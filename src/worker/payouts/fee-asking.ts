// Asks a node now and then what a transaction costs, and saves what it says.
import { boundedRate } from '../../core/payouts/outgoing-fees.ts';
import type { PayingPort } from '../../core/ports.ts';
import type { Context } from '../../flow/context.ts';
import { saveFeeRate } from '../../store/payouts/fee-rates.ts';
import { troubleOf } from '../chain/pass-result.ts';

const FEE_RATE_EVERY_MS = 30_000;
const FEE_RATE_SAVED_EVERY_MS = 300_000;

/** A node that does not answer is asked again later: what it said last stays. */
export function createFeeAsking(ctx: Context, port: PayingPort): () => Promise<void> {
  const { currency } = port;
  const { clock } = ctx.ports;
  let feeAskedMs = Number.NEGATIVE_INFINITY;
  let feeSaved: { readonly rate: bigint; readonly atMs: number; readonly generation: number } | null = null;
  return async () => {
    if (performance.now() - feeAskedMs < FEE_RATE_EVERY_MS) return;
    feeAskedMs = performance.now();
    const said = await port.feeRate().catch((error: unknown) => {
      if (troubleOf(error) === null) throw error;
      return null;
    });
    if (said === null) return;
    const rate = boundedRate(currency, said);
    // a database transaction for nothing new is one too many for a service at rest
    const { generation } = ctx.db.identity;
    const isSame = feeSaved !== null && feeSaved.rate === rate && feeSaved.generation === generation;
    if (isSame && performance.now() - (feeSaved?.atMs ?? 0) < FEE_RATE_SAVED_EVERY_MS) return;
    await saveFeeRate(ctx.db, currency, rate, clock.now());
    feeSaved = { rate, atMs: performance.now(), generation };
  };
}
