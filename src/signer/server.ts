// The signer's unix socket, which only this user (or, where that is set, its group) may open, and the requests that it answers: public keys, and signatures that its rules allow.
// No key that can spend ever leaves it.
import { chmod, rm } from 'node:fs/promises';
import { createServer, type Server, type Socket } from 'node:net';
import {
  createFrameReader,
  encodeFrame,
  type SignerError,
  type SignerReplies,
  type SignerReplyFrame,
  type SignerRequest,
} from '../core/signer-wire.ts';
import type { Keyring } from './keyring.ts';
import { NoPayerTrouble, type Paying } from './lightning/paying.ts';
import { SigningRefused } from './refused.ts';
import { RequestMalformed } from './request.ts';
import type { Signing } from './signing.ts';

export type SignerServer = { close(): Promise<void> };
/** What it answers with, and what receives internal errors, for the log. */
export type SignerParts = {
  readonly keyring: Keyring;
  readonly signing: Signing;
  /** Absent: nothing is paid over Lightning. */
  readonly paying?: Paying;
  readonly onTrouble: (error: unknown) => void;
};

const MAX_CONNECTIONS = 64;
/** So many requests of one connection are worked on at once; the next are read when fewer are. */
const MOST_UNANSWERED = 64;

class RequestTrouble extends Error {
  readonly error: SignerError;
  constructor(error: SignerError, message: string) {
    super(message);
    this.error = error;
  }
}

export type ListeningSocket = { readonly path: string; readonly mode: 0o600 | 0o660 };

/** Listens on the socket. The caller holds the folder's lock: a socket file that exists already is a dead signer's. */
export async function serveSigner({ path, mode }: ListeningSocket, parts: SignerParts): Promise<SignerServer> {
  /** With whether something that it asked is unanswered; the one that was silent for longest is the first. */
  const open = new Map<Socket, () => boolean>();
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    // whoever keeps connections and asks nothing keeps nobody out; a client of ours opens another with its next request
    if (open.size >= MAX_CONNECTIONS) {
      const idle = [...open].find(([, isBusy]) => !isBusy());
      (idle?.[0] ?? socket).destroy();
    }
    const isBusy = converse(socket, parts);
    open.set(socket, isBusy);
    socket.on('data', () => {
      open.delete(socket);
      open.set(socket, isBusy);
    });
    socket.on('close', () => open.delete(socket));
  });
  await rm(path, { force: true });
  const umask = process.umask(0o777 & ~mode);
  try {
    await listen(server, path);
  } finally {
    process.umask(umask);
  }
  await chmod(path, mode);
  return {
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        for (const socket of open.keys()) socket.destroy();
      }),
  };
}

function listen(server: Server, path: string): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(path, () => {
      server.removeListener('error', reject);
      resolve();
    });
  });
}

/** @returns whether something that it asked is unanswered */
function converse(socket: Socket, parts: SignerParts): () => boolean {
  const reader = createFrameReader();
  let unanswered = 0;
  let asksNoMore = false;
  let isUnread = false;
  let isBroken = false;
  const send = (frame: SignerReplyFrame): void => {
    if (socket.writable && !socket.write(encodeFrame(frame))) {
      isUnread = true;
      socket.once('drain', () => {
        isUnread = false;
        goOn();
      });
    }
  };
  /** Whoever asks faster than it reads, or than it is answered, waits. */
  const goOn = (): void => {
    if (isUnread || unanswered >= MOST_UNANSWERED) socket.pause();
    else if (socket.isPaused()) socket.resume();
  };
  const endWhenAnswered = (): void => {
    if (asksNoMore && unanswered === 0) socket.end();
  };
  socket.on('error', () => socket.destroy());
  socket.on('data', (bytes: Buffer) => {
    // the reader would keep what can be no frame
    if (isBroken) return;
    let messages: readonly unknown[];
    try {
      messages = reader.push(bytes);
    } catch {
      isBroken = true;
      send({ id: null, ok: false, error: 'bad_request', message: 'this is not the protocol of the signer' });
      socket.end();
      return;
    }
    for (const message of messages) {
      unanswered++;
      void reply(message, parts).then((frame) => {
        send(frame);
        unanswered--;
        goOn();
        endWhenAnswered();
      });
    }
    goOn();
  });
  socket.on('end', () => {
    asksNoMore = true;
    endWhenAnswered();
  });
  return () => unanswered > 0;
}

async function reply(message: unknown, parts: SignerParts): Promise<SignerReplyFrame> {
  const { id } = (message ?? {}) as { id?: unknown };
  if (typeof id !== 'number') return { id: null, ok: false, error: 'bad_request', message: 'id must be a number' };
  try {
    return { id, ok: true, reply: await answer(message as SignerRequest, parts) };
  } catch (error) {
    if (error instanceof RequestTrouble) return { id, ok: false, error: error.error, message: error.message };
    if (error instanceof RequestMalformed) return { id, ok: false, error: 'bad_request', message: error.message };
    if (error instanceof NoPayerTrouble) return { id, ok: false, error: 'no_payer', message: error.message };
    // the port's, whose adapter this layer does not know
    if (error instanceof Error && error.name === 'NodeTrouble') return { id, ok: false, error: 'node', message: error.message };
    parts.onTrouble(error);
    if (error instanceof SigningRefused) return { id, ok: false, error: 'refused', message: error.message };
    return { id, ok: false, error: 'failed', message: error instanceof Error ? error.message : 'the signer failed' };
  }
}

type Reply = SignerReplies[keyof SignerReplies];

/** What needs no seed; null for everything else. */
async function answerWithoutSeed(request: SignerRequest, { signing, paying }: SignerParts): Promise<Reply | null> {
  if (request.op === 'intent_keys') return { keys: await signing.intentKeys() };
  if (paying === undefined) return null;
  if (request.op === 'authorize_payment') return paying.authorize(request);
  if (request.op === 'send_payment') return paying.send(request);
  if (request.op === 'paying_node') return paying.node();
  if (request.op === 'known_channels' && /^[0-9a-f]{66}$/.test(String(request.node))) return paying.knownChannels(request.node);
  if (request.op === 'authorized_payments' && Number.isSafeInteger(request.after)) return paying.authorized(request.after);
  if (request.op === 'track_payment' && /^[0-9a-f]{64}$/.test(String(request.paymentHash)))
    return paying.track(request.paymentHash);
  if (request.op === 'node_payments' && /^\d{1,18}$/.test(String(request.after))) return paying.payments(request.after);
  return null;
}

async function answer(request: SignerRequest, parts: SignerParts): Promise<Reply> {
  const { keyring, signing } = parts;
  const first = await answerWithoutSeed(request, parts);
  if (first !== null) return first;
  const accounts = await keyring.accounts();
  if (request.op === 'ping') return { network: keyring.network, keys: accounts === null ? 'absent' : 'present' };
  if (accounts === null) throw new RequestTrouble('no_keys', 'there is no seed yet: make one with "bursar keys init"');
  if (request.op === 'xpubs') return { accounts };
  if (request.op === 'confirm_xpub' && typeof request.currency === 'string' && typeof request.xpub === 'string') {
    const account = accounts.find((one) => one.currency === request.currency);
    return { confirmed: account?.xpub === request.xpub, path: account?.path ?? null };
  }
  if (request.op === 'sign') return signing.sign(request);
  if (request.op === 'show') return signing.show(request);
  if (request.op === 'signed' && Number.isSafeInteger(request.after) && request.after >= 0)
    return signing.signed(request.after, typeof request.batchId === 'string' ? request.batchId : null);
  const accepted =
    'ping, xpubs, intent_keys, confirm_xpub (with currency and xpub), sign (with a transaction), show (with raw and inputs), signed (with after), authorize_payment and send_payment (with payoutId and leaseEpoch), authorized_payments and node_payments (with after), track_payment (with paymentHash), paying_node, known_channels (with node)';
  throw new RequestTrouble('bad_request', `op must be one of ${accepted}`);
}
