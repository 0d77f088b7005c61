// The one HTTP server of the sandbox, on loopback: /node/<currency> speaks the JSON-RPC of bitcoind or of geth, /rates/<source> the exchanges' tickers, /bank
// takes files, /control/<name> receives what the API forwards from POST /sandbox/<name>.
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import type { AddressInfo, Server } from 'node:net';
import { answerBank } from './bank/server.ts';
import { ControlRefusal } from './control-fields.ts';
import { control } from './controls.ts';
import { answerEvmRpc } from './evm/rpc-server.ts';
import type { SimulatedEvm } from './evm/simulated-evm.ts';
import { answerLnurl } from './lightning/lnurl-server.ts';
import { SOURCES } from './rates.ts';
import type { ControlContext, SandboxLog } from './service-side.ts';
import { answerRpc, isAuthorised } from './utxo/rpc/server.ts';
import type { SimulatedNode } from './utxo/simulated-node.ts';

const MOST_CONTROL_BYTES = 64 * 1024;
const MOST_RPC_BYTES = 16 * 1024 * 1024;

export type ServerParts = {
  readonly secret: string;
  readonly nodes: Iterable<SimulatedNode>;
  /** The chain of ether and its tokens, where it is served. */
  readonly evm?: SimulatedEvm;
  /** Absent where only nodes are served. */
  readonly context?: ControlContext;
  readonly log: SandboxLog;
};

/** The body as text; null when it is longer than `most`. */
async function bodyOf(request: IncomingMessage, most: number): Promise<string | null> {
  const parts: Buffer[] = [];
  let size = 0;
  for await (const part of request) {
    size += (part as Buffer).length;
    if (size <= most) parts.push(part as Buffer);
  }
  return size > most ? null : Buffer.concat(parts).toString('utf8');
}

function answerJson(response: ServerResponse, status: number, json: string): void {
  response.writeHead(status, { 'Content-Type': 'application/json' }).end(json);
}
const refuse = (response: ServerResponse, status: number, error: string, message: string, param?: string | null): void =>
  answerJson(response, status, JSON.stringify({ error, message, ...(param ? { param } : {}) }));

async function answerControl(
  context: ControlContext,
  name: string,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const text = await bodyOf(request, MOST_CONTROL_BYTES);
  if (request.method !== 'POST') return refuse(response, 405, 'method_not_allowed', 'Controls accept POST.');
  if (text === null) return refuse(response, 413, 'payload_too_large', `The body may have at most ${MOST_CONTROL_BYTES} bytes.`);
  if (!/^application\/json\b/i.test(request.headers['content-type'] ?? '')) {
    return refuse(response, 415, 'unsupported_media_type', 'The body must be sent as application/json.');
  }
  let body: unknown;
  try {
    body = JSON.parse(text);
  } catch {
    return refuse(response, 400, 'invalid_json', 'The body must be one JSON object.');
  }
  try {
    answerJson(response, 200, JSON.stringify(await control(context, name, body)));
  } catch (error) {
    if (!(error instanceof ControlRefusal)) throw error;
    refuse(response, error.httpStatus, error.code, error.message, error.param);
  }
}

async function route(
  parts: ServerParts,
  byPath: ReadonlyMap<string, SimulatedNode>,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const url = new URL(request.url ?? '/', 'http://sandbox');
  const [, section = '', name = '', ...rest] = url.pathname.split('/');
  const node = section === 'node' ? byPath.get(name) : undefined;
  if (node !== undefined) {
    const body = await bodyOf(request, MOST_RPC_BYTES);
    return answerRpc(node, parts.secret, request, body ?? '', response);
  }
  if (section === 'node' && name === 'eth' && parts.evm !== undefined)
    return answerEvmRpc(parts.evm, parts.secret, request, (await bodyOf(request, MOST_RPC_BYTES)) ?? '', response);
  const { context } = parts;
  if (section === 'alive')
    return void response.writeHead(isAuthorised(request.headers.authorization, parts.secret) ? 204 : 401).end();
  if (context !== undefined && section === 'bank') {
    if (!isAuthorised(request.headers.authorization, parts.secret)) return void response.writeHead(401).end();
    const body = (await bodyOf(request, MOST_RPC_BYTES)) ?? '';
    return answerBank(
      context.bank,
      { request, path: [name, ...rest], sha256: url.searchParams.get('sha256') ?? '', body },
      response,
    );
  }
  if (context !== undefined && section === 'control' && rest.length === 0) return answerControl(context, name, request, response);
  const source = SOURCES.find((each) => each === name);
  if (context !== undefined && section === 'rates' && source !== undefined && request.method === 'GET') {
    const { status, json } = context.exchanges.answer(source, `/${rest.join('/')}`, url.searchParams);
    return answerJson(response, status, json);
  }
  const { host = '' } = request.headers;
  if (context !== undefined && request.method === 'GET' && answerLnurl(context.lightning, url, host, response)) return;
  refuse(response, 404, 'not_found', 'There is nothing at this path.');
}

/** Answers the sandbox's requests. An internal error closes the connection: nothing half-done is answered. */
export function sandboxHandler(parts: ServerParts): RequestListener {
  const byPath = new Map([...parts.nodes].map((node) => [node.dialect.path, node]));
  return (request, response) => {
    route(parts, byPath, request, response).catch((error: Error) => {
      if (!request.socket.destroyed) parts.log(`${request.url ?? ''} failed`, error);
      request.socket.destroy();
    });
  };
}

/** Listens on loopback; resolves with the port, rejects with EADDRINUSE. */
export function listen(server: Server, port: number): Promise<number> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, '127.0.0.1', () => {
      server.off('error', reject);
      resolve((server.address() as AddressInfo).port);
    });
  });
}

/** Stops listening and drops every connection. */
export function closeServer(server: Server & { closeAllConnections(): void }): Promise<void> {
  return new Promise((resolve) => {
    server.close(() => resolve());
    server.closeAllConnections();
  });
}
