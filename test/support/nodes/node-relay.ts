// A relay between the service and a node that can refuse one method as a busy node does.
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';

type Call = { readonly id: number; readonly method: string; readonly params: readonly unknown[] };
/** `refuse`: the node says that it is busy. */
export type RelayMode = 'pass' | 'refuse';

/**
 * @param url the node's, with name and password where it has them
 * @param method what is refused; everything else passes
 * @param applies which calls of it; absent: all
 */
export async function openNodeRelay(url: string, method: string, applies: (params: readonly unknown[]) => boolean = () => true) {
  const target = new URL(url);
  const login = target.username === '' ? {} : { authorization: `Basic ${btoa(`${target.username}:${target.password}`)}` };
  let mode: RelayMode = 'pass';
  /** How many calls of the method came, whatever became of them. */
  let count = 0;

  async function ask(body: string): Promise<{ readonly status: number; readonly body: string }> {
    const reply = await fetch(target.origin + target.pathname, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...login },
      body,
    });
    return { status: reply.status, body: await reply.text() };
  }
  const server = createServer((request, response) => void relay(request, response));
  async function relay(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const parts: Buffer[] = [];
    for await (const part of request) parts.push(part as Buffer);
    const body = Buffer.concat(parts).toString('utf8');
    const ours = ([JSON.parse(body)].flat() as Call[]).find((call) => call.method === method && applies(call.params));
    if (ours !== undefined) count += 1;
    if (ours !== undefined && mode === 'refuse') {
      const error = { code: -32005, message: 'limit exceeded' };
      return void response.end(JSON.stringify({ jsonrpc: '2.0', id: ours.id, error }));
    }
    const answer = await ask(body).catch(() => null);
    if (answer === null) return void response.destroy();
    response.writeHead(answer.status, { 'content-type': 'application/json' }).end(answer.body);
  }
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const near = new URL(url);
  near.port = String((server.address() as { port: number }).port);
  near.hostname = '127.0.0.1';
  return {
    url: near.href.replace(/\/$/, ''),
    count: () => count,
    set(to: RelayMode): void {
      mode = to;
    },
    close(): void {
      server.close();
      server.closeAllConnections();
    },
  };
}
