// The controls on their way from the API to the sandbox's own process and back: a sandbox that is not there, that is only just starting, or
// that is slow while the API closes.
import { once } from 'node:events';
import { createServer, type RequestListener, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, expect, test } from 'vitest';
import { sandboxForward } from '../../src/main/sandbox/forward.ts';
import { eventually } from '../support/service.ts';
import { type ApiServer, makeApi } from './api-server.ts';

let sandbox: Server | null = null;
let api: ApiServer | null = null;
afterEach(async () => {
  await api?.end();
  sandbox?.closeAllConnections();
  sandbox?.close();
  sandbox = null;
  api = null;
});

async function sandboxThat(answers: RequestListener): Promise<string> {
  sandbox = createServer(answers).listen(0, '127.0.0.1');
  await once(sandbox, 'listening');
  return `http://127.0.0.1:${(sandbox.address() as AddressInfo).port}`;
}

async function apiInFrontOf(url: string): Promise<ApiServer> {
  api = await makeApi({
    sandbox: sandboxForward(async () => ({
      url,
      secret: '',
      lightning: { url: '', certificate: '', payMacaroon: '', macaroon: '' },
    })),
  });
  return api;
}

const refusalOf = ({ status, headers, json }: Awaited<ReturnType<ApiServer['send']>>) => [
  status,
  json.error,
  headers.get('retry-after'),
];

test('a sandbox that is gone is 503 with Retry-After, and so is one that closes the connection', async () => {
  const gone = await sandboxThat((request) => request.socket.destroy());
  const server = await apiInFrontOf(gone);
  expect(refusalOf(await server.send('/sandbox/mine', {}))).toEqual([503, 'overloaded', '5']);
  sandbox?.close();
  await once(sandbox as Server, 'close');
  expect(refusalOf(await server.send('/sandbox/mine', {}))).toEqual([503, 'overloaded', '5']);
});

test('one that is only just opening is 503 in our own words', async () => {
  const opening = await sandboxThat((_request, response) => void response.writeHead(503).end());
  const server = await apiInFrontOf(opening);
  const reply = await server.send('/sandbox/mine', {});
  expect(refusalOf(reply)).toEqual([503, 'overloaded', '5']);
  expect(reply.json.message).toBeTypeOf('string');
});

test('who waits for a control when the API closes is answered at once', async () => {
  let asked = 0;
  const slow = await sandboxThat(() => {
    asked++;
  });
  const server = await apiInFrontOf(slow);
  const waiting = server.send('/sandbox/pay', { transaction_id: 'txn_1' });
  await eventually('it was handed on', () => asked === 1);
  const closing = performance.now();
  await server.end();
  api = null;
  expect(refusalOf(await waiting)).toEqual([503, 'overloaded', '5']);
  expect(performance.now() - closing).toBeLessThan(2_000);
});
