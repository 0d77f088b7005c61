// A node that lies on purpose: forwards every call to an honest node and lets a test change the answer, or give its own, for tests of the
// whole watcher with bad input.
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { post } from '../support/post.ts';

type Call = { readonly id: unknown; readonly method: string; readonly params: readonly unknown[] };
/** The lie about one call: another result, or a refusal. */
export type Lie = (call: Call, honest: unknown) => unknown;
/** What a lie answers for a call that it refuses. */
export class Refused {
  readonly error: { readonly code: number; readonly message: string };
  constructor(code: number, message: string) {
    this.error = { code, message };
  }
}
/** Answers a whole request in the node's place, or leaves it to the node (false). */
export type Interruption = (methods: readonly string[], response: ServerResponse) => boolean;

export type TamperedNode = { readonly url: string; lie: Lie | null; interrupt: Interruption | null; stop(): Promise<void> };

export async function tamperWith(honest: string): Promise<TamperedNode> {
  const target = new URL(honest);
  const credentials = `${decodeURIComponent(target.username)}:${decodeURIComponent(target.password)}`;
  const authorization = `Basic ${Buffer.from(credentials).toString('base64')}`;
  const node: TamperedNode = {
    url: '',
    lie: null,
    interrupt: null,
    async stop() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
  async function serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const parts: Buffer[] = [];
    for await (const part of request) parts.push(part as Buffer);
    const body = Buffer.concat(parts).toString();
    const asked = JSON.parse(body) as Call | Call[];
    const calls = Array.isArray(asked) ? asked : [asked];
    if (
      node.interrupt?.(
        calls.map((call) => call.method),
        response,
      )
    )
      return;
    const reply = await post(`${target.origin}${target.pathname}`, body, { authorization }).catch(() => null);
    if (reply === null) {
      response.destroy();
      return;
    }
    const answer = JSON.parse(reply.text) as { id: unknown; result: unknown; error?: unknown }[] | { id: unknown };
    const answers = (Array.isArray(answer) ? answer : [answer]) as { id: unknown; result: unknown; error: unknown }[];
    for (const one of answers) {
      const call = calls.find(({ id }) => id === one.id);
      if (call === undefined || node.lie === null) continue;
      const said = node.lie(call, one.result);
      if (said instanceof Refused) Object.assign(one, { result: null, error: said.error });
      else if (said !== one.result) Object.assign(one, { result: said, error: null });
    }
    response.statusCode = Array.isArray(answer) || answers[0]?.error == null ? 200 : reply.status;
    response.end(JSON.stringify(answer));
  }
  const server = createServer((request, response) => void serve(request, response));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return Object.assign(node, { url: `http://user:secret@127.0.0.1:${(server.address() as AddressInfo).port}` });
}
