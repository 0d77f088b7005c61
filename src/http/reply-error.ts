// How every refusal is written: {error, message, param?} as JSON, never a stack.
import type { FastifyReply } from 'fastify';
import { Refusal } from '../core/refusal.ts';

/** How http reports errors to the operator; the caller supplies the logger. */
export type Report = (
  event: { readonly requestId: string; readonly path: string; readonly error: unknown },
  message: string,
) => void;

/** PostgreSQL unreachable, shutting down, read-only (a standby), or a statement that ran out of time: a retry may help. */
const PASSING = new Set([
  'EAI_AGAIN',
  'ECONNREFUSED',
  'ECONNRESET',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'ENOENT',
  'ENOTFOUND',
  'EPIPE',
  'ETIMEDOUT',
  '25006',
  '57P01',
  '57P02',
  '57P03',
  '57014',
  '55P03',
]);

/** SQLSTATE class 53: the server lacks a resource, such as disk space, memory or sessions. */
const SCARCE = /^53[0-9A-Z]{3}$/;

/** The driver's messages, which have no code, for a session that broke, was closed or does not answer. */
const LOST =
  /^(Connection terminated|timeout expired|timeout exceeded when trying to connect|Query read timeout|Client (has encountered a connection error|was closed))/;

/** The refusal that answers an error: itself, or `overloaded` where a retry may help, or `internal_error` (a bug). */
export function refusalOf(error: unknown): Refusal {
  if (error instanceof Refusal) return error;
  const { code, message } = error as { code?: unknown; message?: unknown };
  if (typeof code === 'string' && (PASSING.has(code) || SCARCE.test(code))) return new Refusal('overloaded');
  if (typeof message === 'string' && LOST.test(message)) return new Refusal('overloaded');
  return new Refusal('internal_error');
}

/** The body of a refusal. */
export function errorBody(refusal: Refusal): string {
  const body: { error: string; message: string; param?: string } = { error: refusal.code, message: refusal.message };
  if (refusal.param !== null) body.param = refusal.param;
  return JSON.stringify(body);
}

/** Answers a refusal: its HTTP status, `{error, message, param?}`, and `Retry-After` where it has one. */
export function sendRefusal(reply: FastifyReply, refusal: Refusal): void {
  reply.code(refusal.httpStatus);
  if (refusal.retryAfterSeconds !== null) reply.header('retry-after', String(refusal.retryAfterSeconds));
  reply.header('content-type', JSON_TYPE);
  reply.send(errorBody(refusal));
}
export const JSON_TYPE = 'application/json; charset=utf-8';
