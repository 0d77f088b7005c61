// What an answer asks for by Retry-After (RFC 9110 §10.2.3).
import { expect, test } from 'vitest';
import { createOutbound } from '../../src/outside/outbound/outbound.ts';
import { ANYWHERE } from '../../src/outside/outbound/policy.ts';
import { asking, listening, opened, outboundServersForEach } from './outbound-servers.ts';

outboundServersForEach();

test.each([
  ['120', 120_000],
  ['0', 0],
  [new Date(Date.now() - 60_000).toUTCString(), 0],
  ['soon', undefined],
  ['-1', undefined],
  ['1e3', undefined],
  ['2099', 2_099_000],
  ['99999999999', 99_999_999_999_000],
  ['9'.repeat(400), Number.MAX_SAFE_INTEGER],
  ['Sun Nov  6 08:49:37 1994', 0],
  ['Sun Nov 6 1994', undefined],
])('an answer asks to be left alone by Retry-After: %s', async (header, retryAfterMs) => {
  const { port } = await listening((socket) =>
    socket.on('data', () => socket.end(`HTTP/1.1 503 Full\r\nretry-after: ${header}\r\n\r\n`)),
  );
  const result = await opened(createOutbound(ANYWHERE)).call({ ...asking, url: `http://127.0.0.1:${port}/` });
  expect(result).toMatchObject({ kind: 'answered', status: 503 });
  expect(result.kind === 'answered' && result.retryAfterMs).toBe(retryAfterMs);
});

test.each([
  ['usual', (date: Date) => date.toUTCString()],
  ['obsolete', (date: Date) => date.toUTCString().replace(/^(\w+), (\d+) (\w+) \d\d(\d\d)/, '$1day, $2-$3-$4')],
  ['asctime', (date: Date) => date.toUTCString().replace(/^(\w+), (\d+) (\w+) (\d+) (\S+) GMT/, '$1 $3 $2 $5 $4')],
])('an answer asks to be left alone until a date of the %s form', async (_form, text) => {
  const until = text(new Date(Date.now() + 3_600_000));
  const { port } = await listening((socket) =>
    socket.on('data', () => socket.end(`HTTP/1.1 429 Slow\r\nretry-after: ${until}\r\n\r\n`)),
  );
  const result = await opened(createOutbound(ANYWHERE)).call({ ...asking, url: `http://127.0.0.1:${port}/` });
  expect(result.kind === 'answered' && Math.abs((result.retryAfterMs ?? 0) - 3_600_000)).toBeLessThan(10_000);
});
