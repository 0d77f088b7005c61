// The HTTP side of an Ethereum node's JSON-RPC 2.0 for the simulated chain: Basic authentication, batches, and the faults that /sandbox/node
// sets.
import type { IncomingMessage, ServerResponse } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import { countDown } from '../trouble.ts';
import { isAuthorised } from '../utxo/rpc/server.ts';
import { EvmRpcError, type Json } from './rpc-calls.ts';
import { callMethod, SENDS } from './rpc-methods.ts';
import type { SimulatedEvm } from './simulated-evm.ts';

const HANG_MS = 60_000;
const INVALID_REQUEST = -32600;

function answerOne(chain: SimulatedEvm, request: unknown): Json {
  const {
    id = null,
    method,
    params = [],
  } = (typeof request === 'object' && request !== null ? request : {}) as Record<string, unknown>;
  try {
    if (typeof method !== 'string' || !Array.isArray(params)) throw new EvmRpcError(INVALID_REQUEST, 'invalid request');
    return { jsonrpc: '2.0', id, result: callMethod(chain, method, params) };
  } catch (error) {
    if (!(error instanceof EvmRpcError)) throw error;
    return { jsonrpc: '2.0', id, error: { code: error.code, message: error.message } };
  }
}

function answerText(chain: SimulatedEvm, text: string): { readonly body: Json; readonly sent: boolean } {
  let request: unknown;
  try {
    request = JSON.parse(text);
  } catch {
    return { body: { jsonrpc: '2.0', id: null, error: { code: -32700, message: 'parse error' } }, sent: false };
  }
  const sent = [request].flat().some((one) => (one as { method?: unknown } | null)?.method === SENDS);
  return { body: Array.isArray(request) ? request.map((one) => answerOne(chain, one)) : answerOne(chain, request), sent };
}

/** Answers one HTTP request to the node. @param secret the password; the user name does not matter */
export async function answerEvmRpc(
  chain: SimulatedEvm,
  secret: string,
  request: IncomingMessage,
  body: string,
  response: ServerResponse,
): Promise<void> {
  const { down, fault } = chain.state.trouble;
  if (down) {
    request.socket.destroy();
    return;
  }
  if (!isAuthorised(request.headers.authorization, secret)) {
    response.writeHead(401).end();
    return;
  }
  const answer = answerText(chain, body);
  const concerned = fault === 'hang' || answer.sent;
  if (fault !== null && concerned) countDown(chain, chain.state.trouble);
  if (fault === 'lose_answers' && concerned) {
    request.socket.destroy();
    return;
  }
  if (fault === 'hang') await delay(HANG_MS, undefined, { ref: false });
  if (response.destroyed) return;
  response.writeHead(200, { 'Content-Type': 'application/json' }).end(JSON.stringify(answer.body));
}
