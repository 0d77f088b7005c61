// An answer belongs to the request that it follows, also where a connection carries several and ends between them.
import { expect, test } from 'vitest';
import { createOutbound } from '../../src/outside/outbound/outbound.ts';
import { ANYWHERE } from '../../src/outside/outbound/policy.ts';
import { asking, listening, opened } from './outbound-servers.ts';

test('an answer is only ever that of a request which arrived, also on a connection that is reset after the answer before', async () => {
  const outbound = opened(createOutbound(ANYWHERE));
  const arrived = new Set<string>();
  const { port } = await listening((socket) => {
    socket.on('data', (part) => {
      const id = /x-mine: (\w+)/.exec(part.toString())?.[1];
      if (id === undefined) return;
      arrived.add(id);
      socket.write('HTTP/1.1 204 No Content\r\n\r\n');
      setTimeout(() => socket.resetAndDestroy(), 1);
    });
  });
  const answered: string[] = [];
  for (let n = 0; n < 300; n++) {
    const result = await outbound.call({
      ...asking,
      url: `http://127.0.0.1:${port}/`,
      headers: { 'x-mine': `n${n}` },
      saysAll: () => true,
    });
    if (result.kind === 'answered') answered.push(`n${n}`);
    await new Promise((resolve) => setTimeout(resolve, n % 4));
  }
  expect(answered.length).toBeGreaterThan(0);
  expect(answered.filter((id) => !arrived.has(id))).toEqual([]);
});

test('a connection that ended before an answer has none, whatever the answer before it', async () => {
  const outbound = opened(createOutbound(ANYWHERE));
  const answers = ['HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n'];
  const { port } = await listening((socket) =>
    socket.on('data', () => socket[answers.length > 0 ? 'write' : 'end'](answers.pop() ?? '')),
  );
  const ask = () => outbound.call({ ...asking, url: `http://127.0.0.1:${port}/`, saysAll: () => true });
  expect([(await ask()).kind, (await ask()).kind]).toEqual(['answered', 'failed']);
});
