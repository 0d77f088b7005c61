// The real `npm start` with BURSAR_METRICS_PORT: /metrics is there, and nowhere else; a port that another program has is named.
import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { expect, test } from 'vitest';
import { freePort } from '../support/core-daemon.ts';
import { dataFolderFor, eventually, startService } from '../support/service.ts';

const TIMEOUT = 90_000;

test('the service tells a monitoring how it is, on that port only', { timeout: TIMEOUT }, async () => {
  const { folder, remove } = dataFolderFor();
  const port = await freePort();
  const service = startService({ dataFolder: folder, environment: { BURSAR_METRICS_PORT: String(port) } });
  const base = await service.ready;
  expect((await fetch(`${base}/metrics`)).status).toBe(404);
  const text = await eventually('prices and nodes of all currencies', async () => {
    const told = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text();
    const nodes = told.match(/^bursar_node_ready\{currency="[A-Z-]+"\} 1$/gm) ?? [];
    return nodes.length === 8 && told.includes('bursar_rate_age_seconds{currency="USDT"}') ? told : null;
  });
  for (const line of ['bursar_database_up 1', 'bursar_ready 1', 'bursar_breaker_open{name="payouts"} 0'])
    expect(text.split('\n')).toContain(line);
  expect(text).toContain('bursar_http_request_duration_seconds_count{route="none",status="404"} 1');
  expect(await service.stop()).toBe(0);
  remove();
});

test('a port that is taken ends the start with its setting', { timeout: TIMEOUT }, async () => {
  const { folder, remove } = dataFolderFor();
  const taken = createServer();
  taken.listen(0, '127.0.0.1');
  await once(taken, 'listening');
  const { port } = taken.address() as AddressInfo;
  const service = startService({ dataFolder: folder, environment: { BURSAR_METRICS_PORT: String(port) } });
  expect(await service.ended).toBe(1);
  expect(service.output()).toContain(`127.0.0.1:${port} is taken by another program: set BURSAR_METRICS_PORT or HOST to another`);
  taken.close();
  remove();
});
