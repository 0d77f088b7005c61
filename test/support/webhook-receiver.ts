// A merchant's server for webhooks on loopback: keeps what it gets, and answers as a test says.
import { createHmac } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

export type Received = {
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
  // biome-ignore lint/suspicious/noExplicitAny: whatever was sent, for the test to look at
  readonly body: any;
};
export type Receiver = Awaited<ReturnType<typeof startReceiver>>;

/** Without `answer` it takes everything (204). @param port 0 = any free one */
export async function startReceiver(
  answer: (got: Received, response: ServerResponse) => void = (_got, response) => take(response),
  port = 0,
) {
  const received: Received[] = [];
  const waiting = new Set<() => void>();
  let act = answer;
  const server = createServer((request, response) => {
    const parts: Buffer[] = [];
    request.on('data', (part: Buffer) => parts.push(part));
    request.on('end', () => {
      const text = Buffer.concat(parts).toString();
      const got = { headers: request.headers, text, body: JSON.parse(text) };
      received.push(got);
      act(got, response);
      for (const wake of waiting) wake();
    });
  }).listen(port, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook`,
    received,
    answerWith(next: typeof answer): void {
      act = next;
    },
    /** Resolves once this is so of what was received; the test's own limit ends it otherwise. */
    async until(isSo: (received: readonly Received[]) => boolean): Promise<readonly Received[]> {
      while (!isSo(received)) {
        const { promise, resolve } = Promise.withResolvers<void>();
        waiting.add(resolve);
        await promise;
        waiting.delete(resolve);
      }
      return received;
    },
    close(): void {
      server.closeAllConnections();
      server.close();
    },
  };
}

export function take(response: ServerResponse, status = 204): void {
  response.writeHead(status).end();
}

/** Whether one of the signatures is of this secret (Standard Webhooks 1.0.0), computed here anew. */
export function isSignedBy({ headers, text }: Received, secret: string): boolean {
  const key = Buffer.from(secret.replace(/^whsec_/, ''), 'base64');
  const content = `${headers['webhook-id']}.${headers['webhook-timestamp']}.${text}`;
  const wanted = `v1,${createHmac('sha256', key).update(content).digest('base64')}`;
  return String(headers['webhook-signature']).split(' ').includes(wanted);
}
