// An answer belongs to the request that it follows, also where a connection carries several and ends between them.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { type AddressInfo, connect, type LookupFunction, type Socket } from 'node:net';
import { setTimeout as after } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { openConnections } from '../../src/outside/outbound/connections.ts';
import { UNWATCHED } from '../../src/outside/outbound/handshake-costs.ts';
import { createOutbound } from '../../src/outside/outbound/outbound.ts';
import { ANYWHERE } from '../../src/outside/outbound/policy.ts';
import { asking, closing, listening, opened, outboundServersForEach } from './outbound-servers.ts';

outboundServersForEach();

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
      saysAll: [{ first: 100, last: 599 }],
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
  const ask = () => outbound.call({ ...asking, url: `http://127.0.0.1:${port}/`, saysAll: [{ first: 100, last: 599 }] });
  expect([(await ask()).kind, (await ask()).kind]).toEqual(['answered', 'failed']);
});

test('an answer too many is never that of another owner’s request on the same host', async () => {
  const outbound = opened(createOutbound(ANYWHERE));
  const { port } = await listening((socket) => {
    socket.on('data', (part) => {
      const isTwice = part.toString().startsWith('POST /twice');
      socket.write(isTwice ? 'HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n' : '');
      const next = isTwice ? 'HTTP/1.1 410 Gone\r\ncontent-length: 0\r\n\r\n' : 'HTTP/1.1 500 Down\r\ncontent-length: 0\r\n\r\n';
      setTimeout(() => socket.destroyed || socket.write(next), isTwice ? 5 : 20);
    });
  });
  const ask = async (connectionsOf: string | null, path: string) => {
    const result = await outbound.call({
      ...asking,
      connectionsOf,
      url: `http://127.0.0.1:${port}/${path}`,
      saysAll: [{ first: 100, last: 599 }],
    });
    return result.kind === 'answered' ? result.status : 0;
  };
  const said: number[] = [];
  const pairs = async (): Promise<void> => {
    for (let n = 0; n < 10; n++) {
      await ask('wh_1', 'twice');
      // the connection is free again in the next turn
      await new Promise((resolve) => setImmediate(resolve));
      said.push(...(await Promise.all([ask('wh_2', 'once'), ask(null, 'once')])));
    }
  };
  await Promise.all(Array.from({ length: 8 }, pairs));
  expect(new Set(said)).toEqual(new Set([500]));
});

test('a server that says something unasked gets a connection for each request from then on', async () => {
  const outbound = opened(createOutbound(ANYWHERE));
  const ended = Promise.withResolvers<void>();
  const server = await listening((socket) => {
    socket.once('close', () => ended.resolve());
    socket.on('data', () => {
      socket.write('HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n');
      setTimeout(() => socket.destroyed || socket.write('HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n'), 3);
    });
  });
  const ask = () => outbound.call({ ...asking, url: `http://127.0.0.1:${server.port}/` });
  await ask();
  await ended.promise;
  for (const count of [2, 3, 4]) {
    await ask();
    expect(server.connections()).toBe(count);
  }
});

test('a connection is kept for the next request of its owner', async () => {
  const outbound = opened(createOutbound(ANYWHERE));
  const server = await listening((socket) => {
    socket.on('data', () => socket.write('HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n'));
  });
  const ask = (connectionsOf: string | null) =>
    outbound.call({ ...asking, connectionsOf, url: `http://127.0.0.1:${server.port}/` });
  for (let n = 0; n < 5; n++) await ask('wh_1');
  const kept = server.connections();
  // a second one is opened where the first is not free again at once
  expect(kept).toBeLessThanOrEqual(2);
  for (let n = 0; n < 5; n++) await ask(null);
  expect(server.connections()).toBe(kept + 5);
});

test('very many owners leave no more connections open than a few hundred', { timeout: 60_000 }, async () => {
  const outbound = opened(createOutbound(ANYWHERE));
  const sockets = new Set<Socket>();
  const { port } = await listening((socket) => {
    sockets.add(socket.on('close', () => sockets.delete(socket)));
    socket.on('data', () => socket.write('HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n'));
  });
  const url = `http://127.0.0.1:${port}/`;
  for (let n = 0; n < 30; n++) {
    const calls = Array.from({ length: 50 }, (_, m) => outbound.call({ ...asking, connectionsOf: `wh_${50 * n + m}`, url }));
    expect((await Promise.all(calls)).every(({ kind }) => kind === 'answered')).toBe(true);
  }
  // what was under way when the last of them was kept comes on top
  expect(sockets.size).toBeLessThanOrEqual(512 + 50);
  expect(sockets.size).toBeGreaterThan(400);
});

test('an owner whose call was cut off is held in memory no longer than one whose answer came', async () => {
  const lookup: LookupFunction = (_name, _options, done) => done(null, [{ address: '127.0.0.1', family: 4 }]);
  const connections = await openConnections(lookup, UNWATCHED, { sweptEveryMs: 20 });
  closing.push(() => connections.close());
  const long = `HTTP/1.1 200 OK\r\ncontent-length: 200000\r\n\r\n${'a'.repeat(200_000)}`;
  const { port } = await listening((socket) =>
    socket.on('data', (part) => void (part.toString().startsWith('POST /long') && socket.write(long))),
  );
  const cut = async (path: string, owner: string) => {
    const url = new URL(`http://shop.test:${port}/${path}`);
    const asked = { method: 'POST', body: '{}', signal: AbortSignal.timeout(100) } as const;
    const { body } = await connections.request(url, { connectionsOf: owner, merchantId: 1n }, asked);
    for await (const part of body) if (part.length > 0) break;
  };
  await Promise.allSettled(Array.from({ length: 20 }, (_, n) => cut(n % 2 === 0 ? 'long' : 'silent', `wh_${n}`)));
  while (connections.held() > 0) await new Promise((resolve) => setTimeout(resolve, 10));
  expect(connections.held()).toBe(0);
});

/** Calls of one owner over connections that are kept for a second; a slow one has its answer when that is given. */
async function keptForASecond() {
  const reached: Socket[] = [];
  const slow = Promise.withResolvers<() => void>();
  const server = createServer((request, answer) => {
    reached.push(request.socket);
    if (request.url === '/slow') slow.resolve(() => answer.end());
    else answer.end();
  }).listen(0, '0.0.0.0');
  closing.push(() => server.close());
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const leadsTo = { address: '127.0.0.1', family: 4 };
  const lookup: LookupFunction = (_name, _options, done) => done(null, [leadsTo]);
  const connections = await openConnections(lookup, UNWATCHED, { keptMs: 1_000, sweptEveryMs: 20 });
  closing.push(() => connections.close());
  async function ask(path: string): Promise<number> {
    const url = new URL(`http://shop.test:${port}${path}`);
    const { statusCode, body } = await connections.request(url, { connectionsOf: 'wh_1', merchantId: 1n }, { method: 'GET' });
    await body.dump();
    // the connection is free again in the next turn
    await after(1);
    return statusCode;
  }
  const addresses = () => reached.map(({ localAddress }) => localAddress);
  /** Where one is kept that is free. */
  async function untilRenewed(): Promise<void> {
    await ask('/');
    const [first] = addresses();
    leadsTo.address = '127.0.0.2';
    while (addresses().at(-1) === first) expect(await ask('/')).toBe(200);
  }
  return { connections, ask, reached, addresses, slow: slow.promise, untilRenewed };
}

test('calls that never rest follow their name to where it leads, and what is under way meanwhile has its answer', async () => {
  const { connections, ask, reached, addresses, slow, untilRenewed } = await keptForASecond();
  const answered = ask('/slow');
  const answer = await slow;
  await ask('/');
  await ask('/');
  expect(addresses()).toEqual(['127.0.0.1', '127.0.0.1', '127.0.0.1']);
  expect(reached[2]).toBe(reached[1]);
  const rested = once(reached[1] as Socket, 'close');
  await untilRenewed();
  // the one that is kept now, and the one before
  expect(connections.held()).toBe(2);
  const beganMs = performance.now();
  await rested;
  answer();
  expect(await answered).toBe(200);
  // sooner than a connection at rest ends by itself
  if (!reached[0]?.destroyed) await once(reached[0] as Socket, 'close');
  expect(performance.now() - beganMs).toBeLessThan(5_000);
  while (connections.held() > 0) await after(10);
});

test('what is under way on a connection that was kept for long enough ends when all are closed', async () => {
  const { connections, ask, slow, untilRenewed } = await keptForASecond();
  const cut = expect(ask('/slow')).rejects.toThrow();
  await slow;
  await untilRenewed();
  await connections.close();
  await cut;
});

test('each new connection begins with the next address of its kind, so that some that lead nowhere do not always come first', async () => {
  const asked: (string | undefined)[] = [];
  const server = createServer((request, answer) => {
    asked.push(request.socket.localAddress);
    answer.end();
  }).listen(0, '0.0.0.0');
  closing.push(() => server.close());
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const fours = ['127.0.0.1', '127.0.0.2', '127.0.0.3'];
  const find = async () => [...fours.map((address) => ({ address, family: 4 })), { address: '::1', family: 6 }];
  const outbound = opened(createOutbound({ ...ANYWHERE, find }));
  for (let n = 0; n < 4; n++) await outbound.call({ ...asking, connectionsOf: null, url: `http://many.example:${port}/` });
  expect(asked).toEqual([...fours, fours[0]]);
});

/** A server whose machine takes a new connection only a second after it was asked for, as from far away: its queue is full until then. */
const FAR = `const server = require('node:http').createServer((_, answer) => answer.writeHead(204).end());
  server.listen({ port: 0, host: '127.0.0.1', backlog: 1 }, () => console.log(server.address().port))`;

test('a host that is far away is reached though its other address leads nowhere from here', async () => {
  const far = spawn(process.execPath, ['-e', FAR], { stdio: ['ignore', 'pipe', 'inherit'] });
  closing.push(() => far.kill('SIGKILL'));
  const [port] = await once(far.stdout, 'data').then(([text]) => [Number(text)]);
  const nowhere = { address: '2606:2800:220:1::1', family: 6 };
  const find = async () => [{ address: '127.0.0.1', family: 4 }, nowhere];
  const outbound = opened(createOutbound({ ...ANYWHERE, find }));
  far.kill('SIGSTOP');
  const filling = Array.from({ length: 4 }, () => connect(port as number, '127.0.0.1').on('error', () => undefined));
  closing.push(() => filling.forEach((one) => void one.destroy()));
  await after(100);
  const asked = outbound.call({ ...asking, url: `http://far.example:${port}/` });
  await after(600);
  for (const one of filling) one.destroy();
  far.kill('SIGCONT');
  expect(await asked).toMatchObject({ kind: 'answered', status: 204 });
});
