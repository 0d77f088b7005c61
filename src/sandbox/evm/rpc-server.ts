// The HTTP side of an Ethereum node's JSON-RPC 2.0 for the simulated chain: Basic authentication, batches, and the faults that /sandbox/node
// sets. No call sends anything, so the faults that are about sending change nothing.
import type { IncomingMessage, ServerResponse } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import { isAuthorised } from '../utxo/rpc-server.ts';
import { callMethod, EvmRpcError, type Json } from './rpc-methods.ts';
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

function answerText(chain: SimulatedEvm, text: string): Json {
  let request: unknown;
  try {
    request = JSON.parse(text);
  } catch {
    return { jsonrpc: '2.0', id: null, error: { code: -32700, message: 'parse error' } };
  }
  return Array.isArray(request) ? request.map((one) => answerOne(chain, one)) : answerOne(chain, request);
}

/** Answers one HTTP request to the node. @param secret the password; the user name does not matter */
export async function answerEvmRpc(
  chain: SimulatedEvm,
  secret: string,
  request: IncomingMessage,
  body: string,
  response: ServerResponse,
): Promise<void> {
  const { down, fault, left } = chain.state.trouble;
  if (down) {
    request.socket.destroy();
    return;
  }
  if (!isAuthorised(request.headers.authorization, secret)) {
    response.writeHead(401).end();
    return;
  }
  const answer = answerText(chain, body);
  if (fault === 'hang') {
    if (left !== null)
      chain.setTrouble(
        left > 1 ? { ...chain.state.trouble, left: left - 1 } : { ...chain.state.trouble, fault: null, left: null },
      );
    await delay(HANG_MS, undefined, { ref: false });
  }
  if (response.destroyed) return;
  response.writeHead(200, { 'Content-Type': 'application/json' }).end(JSON.stringify(answer));
}
