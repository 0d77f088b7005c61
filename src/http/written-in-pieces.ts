// Answers that are written piece by piece, without fastify: streams of events, and files.
import type { ServerResponse } from 'node:http';
import type { FastifyReply } from 'fastify';

/** Writes the head, with the headers that the reply has already and these: from here on the answer is written without fastify. */
export function beginPieces(reply: FastifyReply, headers: Readonly<Record<string, string>> = {}): ServerResponse {
  reply.hijack();
  return reply.raw.writeHead(200, { ...(reply.getHeaders() as Record<string, string>), ...headers });
}

/** Resolves when the client has taken what was written, or is gone: whoever writes much goes on then. */
export function untilTaken(response: ServerResponse): Promise<void> {
  if (!response.writableNeedDrain || response.destroyed) return Promise.resolve();
  return new Promise((resolve) => {
    function go(): void {
      response.off('drain', go).off('close', go);
      resolve();
    }
    response.once('drain', go).once('close', go);
  });
}
