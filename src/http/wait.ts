// The long poll of check_transaction (behaviour §8): waits for another status, until the time is up, the client has gone or the server closes.
import { type TransactionView, waitForStatus } from '../flow/transaction-reads.ts';
import type { SignedInCall } from './mount.ts';

export async function waitForAnswer(
  { ctx, house, request }: SignedInCall,
  of: { readonly merchantId: bigint; readonly transactionId: string },
  wait: { readonly seconds: number; readonly statusWas: string | null },
): Promise<TransactionView> {
  const gone = new AbortController();
  const leave = (): void => gone.abort();
  request.raw.socket.once('close', leave);
  try {
    const signal = AbortSignal.any([AbortSignal.timeout(wait.seconds * 1000), gone.signal, house.closing]);
    return await waitForStatus(ctx, house.bell, { ...of, statusWas: wait.statusWas, signal });
  } finally {
    request.raw.socket.off('close', leave);
    gone.abort(); // nobody waits at the bell any more
  }
}
