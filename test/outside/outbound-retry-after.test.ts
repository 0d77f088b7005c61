// What an answer asks for by Retry-After (RFC 9110 §10.2.3).
import { expect, test } from 'vitest';
import { createOutbound } from '../../src/outside/outbound/outbound.ts';
import { ANYWHERE } from '../../src/outside/outbound/policy.ts';
import { asking, listening, opened } from './outbound-servers.ts';

test.each([
  ['120', 120_000],
  ['0', 0],
  [new Date(Date.now() - 60_000).toUTCString(), 0],
  ['soon', undefined],
  ['-1', undefined],
  ['1e3', undefined],
  ['2099', 2_099_000],
  ['99999999999', undefined],
])('an answer asks to be left alone by Retry-After: %s', async (header, retryAfterMs) => {
  const { port } = await listening((socket) =>
    socket.on('data', () => socket.end(`HTTP/1.1 503 Full\r\nretry-after: ${header}\r\n\r\n`)),
  );
  const result = await opened(createOutbound(ANYWHERE)).call({ ...asking, url: `http://127.0.0.1:${port}/` });
  expect(result).toMatchObject({ kind: 'answered', status: 503 });
  expect(result.kind === 'answered' && result.retryAfterMs).toBe(retryAfterMs);
});

test('an answer asks to be left alone until a date', async () => {
  const until = new Date(Date.now() + 3_600_000).toUTCString();
  const { port } = await listening((socket) =>
    socket.on('data', () => socket.end(`HTTP/1.1 429 Slow\r\nretry-after: ${until}\r\n\r\n`)),
  );
  const result = await opened(createOutbound(ANYWHERE)).call({ ...asking, url: `http://127.0.0.1:${port}/` });
  expect(result.kind === 'answered' && Math.abs((result.retryAfterMs ?? 0) - 3_600_000)).toBeLessThan(10_000);
});
