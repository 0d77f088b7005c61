// A relay between the service and a node that can hold one method: before the node gets the call, or before its answer comes back. What is held
// stays so until it is let go, as when a process dies in between.
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { post } from '../post.ts';

type Call = { readonly id: number; readonly method: string; readonly params: readonly unknown[] };
/** `refuse`: the node says that it is busy. */
export type RelayMode = 'pass' | 'hold_call' | 'hold_answer' | 'refuse';

/**
 * @param url the node's, with name and password where it has them
 * @param method what is held or refused; everything else passes
 * @param applies which calls of it; absent: all
 */
export async function openNodeRelay(url: string, method: string, applies: (params: readonly unknown[]) => boolean = () => true) {
  const target = new URL(url);
  const login =
    target.username === '' ? {} : { authorization: `Basic ${btoa(`${target.username}:${decodeURIComponent(target.password)}`)}` };
  let mode: RelayMode = 'pass';
  const held = new Map<ServerResponse, { readonly params: readonly unknown[]; readonly body: string }>();
  /** How many calls of the method came, whatever became of them. */
  let count = 0;

  const ask = (body: string) => post(target.origin + target.pathname, body, login);
  const server = createServer((request, response) => void relay(request, response));
  async function relay(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const parts: Buffer[] = [];
    for await (const part of request) parts.push(part as Buffer);
    const body = Buffer.concat(parts).toString('utf8');
    const ours = ([JSON.parse(body)].flat() as Call[]).find((call) => call.method === method && applies(call.params));
    if (ours !== undefined) count += 1;
    const now = ours === undefined ? 'pass' : mode;
    if (now === 'refuse') {
      const error = { code: -32005, message: 'limit exceeded' };
      return void response.end(JSON.stringify({ jsonrpc: '2.0', id: ours?.id, error }));
    }
    if (now !== 'hold_call') {
      const answer = await ask(body).catch(() => null);
      if (answer === null) return void response.destroy();
      if (now === 'pass') return void response.writeHead(answer.status, { 'content-type': 'application/json' }).end(answer.text);
    }
    held.set(response, { params: ours?.params ?? [], body });
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
    /** The parameters of a call that is held; null while none is. */
    held: (): readonly unknown[] | null => [...held.values()][0]?.params ?? null,
    /** Calls that are held reach the node now, and those that come. */
    async letGo(): Promise<void> {
      mode = 'pass';
      for (const [response, { body }] of held) {
        const answer = await ask(body);
        response.writeHead(answer.status, { 'content-type': 'application/json' }).end(answer.text);
      }
      held.clear();
    },
    /** Cuts off whoever waits for what is held; it is never answered. */
    cut(): void {
      for (const response of held.keys()) response.destroy();
      held.clear();
    },
    close(): void {
      for (const response of held.keys()) response.destroy();
      server.close();
      server.closeAllConnections();
    },
  };
}
