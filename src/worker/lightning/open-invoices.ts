// Which invoices the node lists as open.
import type { LightningPort } from '../../core/lightning/port.ts';

/** Those of these payment hashes whose invoice the node does not list as open. */
export async function withoutOpen(port: LightningPort, paymentHashes: readonly string[]): Promise<ReadonlySet<string>> {
  const left = new Set(paymentHashes);
  for (let from = 0n; left.size > 0; ) {
    const page = await port.invoices(from, { openOnly: true });
    for (const { paymentHash } of page) left.delete(paymentHash);
    const last = page.at(-1)?.addIndex ?? 0n;
    if (last <= from) break;
    from = last;
  }
  return left;
}
