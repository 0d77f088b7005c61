// The HTTP side of bitcoind's JSON-RPC for a simulated node: Basic authentication, 1.0 and 2.0, batches, statuses, and the faults that
// /sandbox/node sets.
import type { IncomingMessage, ServerResponse } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import { countDown } from '../../trouble.ts';
import type { SimulatedNode } from '../simulated-node.ts';
import type { Json } from './answers.ts';
import { RPC_INVALID_REQUEST, RPC_METHOD_NOT_FOUND, RPC_MISC, RPC_PARSE, RPC_TYPE, RpcError } from './error.ts';
import { methodNamed, sendsMoney } from './methods.ts';

const HANG_MS = 60_000;

type Answered = { readonly status: number; readonly body: Json; readonly sent: boolean };

/** The status that bitcoind's httprpc.cpp gives an error of a 1.0 request. */
function statusOf(code: number): number {
  if (code === RPC_INVALID_REQUEST) return 400;
  return code === RPC_METHOD_NOT_FOUND ? 404 : 500;
}

function answerOne(node: SimulatedNode, request: unknown): Answered {
  const {
    id = null,
    method,
    params = [],
    jsonrpc,
  } = (typeof request === 'object' && request !== null ? request : {}) as Record<string, unknown>;
  const second = jsonrpc === '2.0' && node.dialect.rpc.jsonRpc2;
  const name = typeof method === 'string' ? method : '';
  try {
    if (typeof request !== 'object' || request === null) throw new RpcError(RPC_INVALID_REQUEST, 'Invalid Request object');
    if (typeof method !== 'string')
      throw new RpcError(RPC_INVALID_REQUEST, method === undefined ? 'Missing method' : 'Method must be a string');
    if (!Array.isArray(params)) throw new RpcError(RPC_INVALID_REQUEST, 'Params must be an array');
    const run = methodNamed(node.dialect, name);
    if (run === null) throw new RpcError(RPC_METHOD_NOT_FOUND, 'Method not found');
    const result = run(node, params);
    return { status: 200, body: second ? { jsonrpc: '2.0', result, id } : { result, error: null, id }, sent: sendsMoney(name) };
  } catch (error) {
    if (!(error instanceof RpcError)) throw error;
    // nodes before Bitcoin Core 24 had no separate number for a wrong type
    const code = error.code === RPC_TYPE && !node.dialect.rpc.modern ? RPC_MISC : error.code;
    const shown = { code, message: error.message };
    const body = second ? { jsonrpc: '2.0', error: shown, id } : { result: null, error: shown, id };
    return { status: second ? 200 : statusOf(code), body, sent: sendsMoney(name) };
  }
}

function answerText(node: SimulatedNode, text: string): Answered {
  let request: unknown;
  try {
    request = JSON.parse(text);
  } catch {
    const error = { code: RPC_PARSE, message: 'Parse error' };
    return { status: 500, body: { result: null, error, id: null }, sent: false };
  }
  if (typeof request !== 'object' || request === null) {
    const error = { code: RPC_PARSE, message: 'Top-level object parse error' };
    return { status: 500, body: { result: null, error, id: null }, sent: false };
  }
  if (!Array.isArray(request)) return answerOne(node, request);
  const answers = request.map((each) => answerOne(node, each));
  return { status: 200, body: answers.map((answer) => answer.body), sent: answers.some((answer) => answer.sent) };
}

/**
 * Answers one HTTP request to the node.
 * @param secret the password; the user name does not matter
 * @param body the whole body
 */
export async function answerRpc(
  node: SimulatedNode,
  secret: string,
  request: IncomingMessage,
  body: string,
  response: ServerResponse,
): Promise<void> {
  if (node.state.trouble.down) {
    request.socket.destroy();
    return;
  }
  if (!isAuthorised(request.headers.authorization, secret)) {
    response.writeHead(401, { 'WWW-Authenticate': 'Basic realm="jsonrpc"' }).end();
    return;
  }
  if (request.method !== 'POST') {
    response.writeHead(405, { 'Content-Type': 'text/plain' }).end('JSONRPC server handles only POST requests');
    return;
  }
  const { fault } = node.state.trouble;
  const answered = answerText(node, body);
  const concerned = fault === 'hang' || (fault !== 'no_locks' && answered.sent);
  if (fault !== null && concerned) countDown(node, node.state.trouble);
  if (fault === 'lose_answers' && concerned) {
    request.socket.destroy();
    return;
  }
  if (fault === 'hang') await delay(HANG_MS, undefined, { ref: false });
  if (response.destroyed) return;
  response.writeHead(answered.status, { 'Content-Type': 'application/json' }).end(`${JSON.stringify(answered.body)}\n`);
}

/** Whether an Authorization header carries the password (Basic; the user name does not matter). */
export function isAuthorised(header: string | undefined, secret: string): boolean {
  if (header === undefined || !header.startsWith('Basic ')) return false;
  const text = Buffer.from(header.slice('Basic '.length), 'base64').toString('utf8');
  return text.slice(text.indexOf(':') + 1) === secret;
}
