// A relay before a node that refuses, or changes, what a test says.
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { post } from '../post.ts';

type Call = { readonly id: number; readonly method: string; readonly params: readonly unknown[] };
type Answer = { readonly result?: unknown; readonly error?: { readonly code: number; readonly message: string } };
/** How long an answer is held back, what is answered instead of asking the node (null: it is asked), and what is made of its answer. */
export type Alteration = {
  before?(call: Call): Promise<void> | undefined;
  instead?(call: Call): Answer | null;
  afterwards?(call: Call, answer: Answer): Answer;
  /** What is answered to calls in one request, as a whole (null: each is answered). */
  batch?(calls: readonly Call[]): Answer | null;
};

/** A node whose operator offers no traces: many providers' cheaper plans, and geth as it starts by itself. */
export const WITHOUT_TRACES: Alteration = {
  instead: ({ method }) =>
    /^(?:debug|trace)_/.test(method)
      ? { error: { code: -32601, message: `the method ${method} does not exist/is not available` } }
      : null,
};

/** A receipt as a node answers it, as far as tests change it. */
export type Receipt = {
  readonly transactionHash: string;
  readonly blockHash: string;
  readonly status: string;
  readonly logs: readonly { readonly address: string; readonly topics: readonly string[]; readonly data: string }[];
};
/** Changes each receipt that a node gives, by itself or with those of its block. */
export const receipts = (change: (receipt: Receipt) => object): Alteration => ({
  afterwards({ method }, answer) {
    if (!/Receipts?$/.test(method)) return answer;
    const of = (one: unknown): unknown => (typeof one === 'object' && one !== null ? change(one as Receipt) : one);
    return { ...answer, result: Array.isArray(answer.result) ? answer.result.map(of) : of(answer.result) };
  },
});

/** @param url the node's, without name and password */
export async function openAlteredNode(url: string) {
  let alteration: Alteration = {};
  let asked: string[] = [];

  async function answered(call: Call): Promise<object> {
    asked.push(call.method);
    await alteration.before?.(call);
    const instead = alteration.instead?.(call) ?? null;
    const answer = instead ?? (await passed(call));
    return { jsonrpc: '2.0', id: call.id, ...(alteration.afterwards?.(call, answer) ?? answer) };
  }
  async function passed(call: Call): Promise<Answer> {
    const { result, error } = JSON.parse((await post(url, JSON.stringify({ ...call, jsonrpc: '2.0' }))).text) as Answer;
    return error === undefined ? { result } : { error };
  }
  async function relay(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const parts: Buffer[] = [];
    for await (const part of request) parts.push(part as Buffer);
    const call = JSON.parse(Buffer.concat(parts).toString('utf8')) as Call | Call[];
    const whole = Array.isArray(call) ? (alteration.batch?.(call) ?? null) : null;
    const each = (): Promise<object> => (Array.isArray(call) ? Promise.all(call.map(answered)) : answered(call));
    const answer = whole === null ? await each().catch(() => null) : { jsonrpc: '2.0', id: null, ...whole };
    if (answer === null) return void response.destroy();
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(answer));
  }
  const server = createServer((request, response) => void relay(request, response));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as { port: number }).port}`,
    alter(to: Alteration): void {
      alteration = to;
    },
    /** The methods that were asked since this was called last. */
    taken(): readonly string[] {
      const all = asked;
      asked = [];
      return all;
    },
    close(): void {
      server.close();
      server.closeAllConnections();
    },
  };
}
