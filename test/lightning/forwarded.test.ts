// What a node has forwarded is read from its lists as LND gives them: the last of it, and what comes after a time.
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { expect, test } from 'vitest';
import type { LightningPort } from '../../src/core/lightning/port.ts';
import { createLnd } from '../../src/outside/lightning/lnd.ts';
import { closeServer, listen } from '../../src/sandbox/server.ts';

const SECOND = 1_000_000_000n;
const NOW_S = 1_800_000_000;
/** Asks one that has forwarded at these times, and takes no beginning for a day ago, as LND does. */
async function forwarding<T>(times: readonly bigint[], ask: (port: LightningPort) => Promise<T>): Promise<T> {
  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { start_time, index_offset, num_max_events } = JSON.parse(Buffer.concat(await request.toArray()).toString());
    const fromNs = BigInt(Number(start_time) === 0 ? NOW_S - 86_400 : start_time) * SECOND;
    const page = times.filter((one) => one >= fromNs).slice(index_offset, index_offset + num_max_events);
    const events = page.map((one) => ({ timestamp_ns: String(one), fee_msat: '1000' }));
    response.end(JSON.stringify({ forwarding_events: events, last_offset_index: index_offset + page.length }));
  }
  const node = createServer((request, response) => void answer(request, response));
  const url = `http://127.0.0.1:${await listen(node, 0)}`;
  const port = createLnd(async () => ({ url, certificate: null, macaroon: '' }), { chain: 'regtest' });
  try {
    return await ask(port);
  } finally {
    port.close();
    await closeServer(node);
  }
}

test.each<[string, readonly bigint[]]>([
  ['never', []],
  ['once', [1_799_999_000n * SECOND + 5n]],
  ['once, long ago', [1_700_000_000n * SECOND]],
  ['twice within a second', [1_700_000_000n * SECOND, 1_700_000_000n * SECOND + 7n]],
])('what was forwarded %s has its last', async (_what, times) => {
  expect(await forwarding(times, (port) => port.lastForwardedNs())).toBe(times.at(-1) ?? null);
});

test('one that is the last of a full page is not passed over', async () => {
  const before = Array<bigint>(999).fill(1_700_000_000n * SECOND);
  const times = [...before, 1_700_000_000n * SECOND + 1n, 1_700_000_001n * SECOND];
  const next = await forwarding(times, (port) => port.forwarded(1_700_000_000n * SECOND));
  expect(next.map(({ atNs }) => atNs)).toEqual([1_700_000_000n * SECOND + 1n]);
});
