// The client of the signer's unix socket: signatures, payments over Lightning, accounts, and which APIs it trusts.
import { createConnection, type Socket } from 'node:net';
import {
  createFrameReader,
  encodeFrame,
  MOST_PREVIOUS,
  type SignedTransaction,
  type SignerError,
  type SignerReplies,
  type SignerReplyFrame,
  type SignerRequest,
  type TransactionToSign,
} from '../core/signer-wire.ts';

/** The signer did not answer, or refused. */
export class SignerTrouble extends Error {
  readonly fault: 'unreachable' | SignerError;
  constructor(fault: SignerTrouble['fault'], message: string) {
    super(message);
    this.name = 'SignerTrouble';
    this.fault = fault;
  }
}

export type SignerClient = {
  /** Throws SignerTrouble when the signer cannot be reached in time, or refuses. */
  ask<Op extends SignerRequest['op']>(request: Extract<SignerRequest, { op: Op }>): Promise<SignerReplies[Op]>;
  close(): void;
};

/** @param options.timeoutMs how long one request may take (opening a seed takes half a second) */
export function createSignerClient(
  socketPath: string,
  options: { readonly timeoutMs: number } = { timeoutMs: 10_000 },
): SignerClient {
  type Waiting = { resolve(reply: unknown): void; reject(error: SignerTrouble): void; timer: NodeJS.Timeout };
  let socket: Socket | null = null;
  let lastId = 0;
  const waiting = new Map<number, Waiting>();

  function settle(id: number): Waiting | undefined {
    const found = waiting.get(id);
    waiting.delete(id);
    clearTimeout(found?.timer);
    return found;
  }
  function fail(message: string): void {
    socket?.destroy();
    socket = null;
    for (const id of [...waiting.keys()]) settle(id)?.reject(new SignerTrouble('unreachable', message));
  }
  function open(): Socket {
    const reader = createFrameReader();
    const made = createConnection(socketPath);
    made.on('data', (bytes: Buffer) => {
      try {
        for (const frame of reader.push(bytes) as readonly SignerReplyFrame[]) take(frame);
      } catch {
        fail(`what answers on ${socketPath} is not a signer`);
      }
    });
    made.on('error', (error: NodeJS.ErrnoException) => fail(`the signer is not reachable on ${socketPath} (${error.code})`));
    made.on('close', () => {
      if (socket === made) fail(`the signer closed the connection on ${socketPath}`);
    });
    return made;
  }
  function take(frame: SignerReplyFrame): void {
    if (frame.id === null) {
      fail(frame.ok ? 'the signer sent an answer without a request' : frame.message);
      return;
    }
    const found = settle(frame.id);
    if (frame.ok) found?.resolve(frame.reply);
    else found?.reject(new SignerTrouble(frame.error, frame.message));
  }

  return {
    ask(request) {
      return new Promise((resolve, reject) => {
        const id = ++lastId;
        const timer = setTimeout(() => {
          settle(id)?.reject(new SignerTrouble('unreachable', `the signer did not answer within ${options.timeoutMs / 1000} s`));
        }, options.timeoutMs);
        waiting.set(id, { resolve: resolve as (reply: unknown) => void, reject, timer });
        socket ??= open();
        socket.write(encodeFrame({ ...request, id }));
      });
    },
    close() {
      fail('the client was closed');
    },
  };
}

/**
 * Asks for a signature. What made the inputs is shown one by one before where it is more than one request holds: nodes relay 100,000 bytes of a
 * transaction, a miner's own takes up to a block.
 */
export async function askToSign(signer: SignerClient, request: TransactionToSign): Promise<SignedTransaction> {
  const { previous = [], ...rest } = request;
  const size = previous.reduce((total, raw) => total + raw.length, 0);
  if (size <= MOST_PREVIOUS) return signer.ask<'sign'>({ op: 'sign', ...request });
  const inputs = rest.inputs.map(({ txid, vout }) => ({ txid, vout }));
  for (const raw of previous) await signer.ask<'show'>({ op: 'show', raw, inputs });
  return signer.ask<'sign'>({ op: 'sign', ...rest });
}
