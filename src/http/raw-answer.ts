// Answers written directly onto the socket, for what never becomes a request: no HTTP, too much of it, CONNECT. Counted by address like
// every call without a token; the connection ends with the answer.
import { randomBytes } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import { Refusal } from '../core/refusal.ts';
import { addressKey } from './client-address.ts';
import { answerOn } from './connections.ts';
import { errorBody, JSON_TYPE } from './reply-error.ts';
import { type ServerContext, takeCall } from './server-context.ts';

// not by an import: see server.ts
const { STATUS_CODES } = process.getBuiltinModule('node:http');

/** @param headers besides those of every answer */
export async function answerOnSocket(
  context: ServerContext,
  socket: Socket,
  refusal: Refusal,
  headers: Readonly<Record<string, string>> = {},
): Promise<void> {
  const counted = { limiter: context.anonymous, key: addressKey(socket.remoteAddress) };
  const nowMs = context.now();
  const answer = (await takeCall(counted, nowMs)) ?? refusal;
  const lines = [`HTTP/1.1 ${answer.httpStatus} ${STATUS_CODES[answer.httpStatus]}`];
  const line = { header: (name: string, value: string) => lines.push(`${name}: ${value}`) };
  const body = errorBody(answer);
  line.header('content-type', JSON_TYPE);
  line.header('content-length', String(Buffer.byteLength(body)));
  line.header('x-request-id', `req_${randomBytes(12).toString('base64url')}`);
  line.header('connection', 'close');
  context.anonymous.describe(line, counted.key, nowMs);
  for (const [name, value] of Object.entries(headers)) line.header(name, value);
  if (answer.retryAfterSeconds !== null) line.header('retry-after', String(answer.retryAfterSeconds));
  if (!socket.writable) {
    socket.destroy();
    return;
  }
  socket.end(`${lines.join('\r\n')}\r\n\r\n${body}`);
  context.connections.endSoon(socket);
}

const broken = new WeakSet<Socket>();

const ended = new WeakSet<Socket>();

/** Whether this connection has had its last answer: whatever else arrives on it is ignored. */
export function hasEnded(socket: Socket): boolean {
  return ended.has(socket);
}

/**
 * Answers bytes that are no request, once per connection, and after the answers to the whole requests before them: those are being served,
 * and their answers must not be lost or mistaken for this one.
 */
export function answerBroken(context: ServerContext, socket: Socket, refusal: Refusal): void {
  if (broken.has(socket)) return;
  broken.add(socket);
  inTurn();
  function inTurn(): void {
    const current = answerOn(socket);
    if (!socket.writable) socket.destroy();
    else if (current?.req.complete) current.once('close', inTurn);
    else if (current?.headersSent || wasAnswered(socket)) socket.resetAndDestroy();
    else {
      ended.add(socket);
      void answerOnSocket(context, socket, refusal);
    }
  }
}

/** Whether the request that is still arriving was already answered: it is too large, or its path does not exist. */
function wasAnswered(socket: Socket): boolean {
  const { parser } = socket as { parser?: { incoming?: IncomingMessage | null } | null };
  return answerOn(socket) === null && parser?.incoming?.complete === false;
}

/** The refusal for what the HTTP parser rejected. */
export function brokenRequest(error: { readonly code?: string | undefined }, withinSeconds: number): Refusal {
  const message =
    error.code === 'ERR_HTTP_REQUEST_TIMEOUT'
      ? `The request did not arrive within ${withinSeconds} seconds.`
      : 'This is not a well-formed HTTP request.';
  return new Refusal('invalid_request', { message });
}
