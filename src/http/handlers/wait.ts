// The long poll of check_transaction (behaviour §8): waits for another status, until the time is up, the client has gone or the server closes.
import type { Socket } from 'node:net';
import { type TransactionView, waitForStatus } from '../../flow/transactions/reads.ts';
import type { SignedInCall } from '../operation.ts';

/**
 * What `wait_seconds` does: the transaction once its status differs from `statusWas` (null: from that at arrival), or as it is when the
 * time is up, the client has gone or the server closes. The seconds are of real time: the sandbox's clock does not shorten them.
 */
export async function waitForAnswer(
  { ctx, context, request }: SignedInCall,
  of: { readonly merchantId: bigint; readonly transactionId: string },
  wait: { readonly seconds: number; readonly statusWas: string | null },
): Promise<TransactionView> {
  const answered = new AbortController();
  const times = [AbortSignal.timeout(wait.seconds * 1000), goneSignal(request.raw.socket), context.closing];
  try {
    const signal = AbortSignal.any([...times, answered.signal]);
    return await waitForStatus(ctx, context.statusNotifier, { ...of, statusWas: wait.statusWas, signal });
  } finally {
    answered.abort(); // removes the waiting call from the notifier
  }
}

const goneSignals = new WeakMap<Socket, AbortSignal>();

/** Aborts when a client has gone. One that has closed only its own side looks the same, and is answered at once. */
export function goneSignal(socket: Socket): AbortSignal {
  const known = goneSignals.get(socket);
  if (known !== undefined) return known;
  const gone = new AbortController();
  const leave = (): void => gone.abort();
  if (socket.readableEnded || socket.destroyed) leave();
  else socket.once('end', leave).once('close', leave);
  goneSignals.set(socket, gone.signal);
  return gone.signal;
}
