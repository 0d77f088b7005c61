// The subscriber against libzmq's own publisher (the library that the nodes publish with), and against publishers that go away or talk nonsense.
import { createServer, type Server, type Socket } from 'node:net';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { Publisher } from 'zeromq';
import { subscribe } from '../../src/outside/utxo/node/zmtp.ts';
import { freePort } from '../support/core-daemon.ts';

const WITHIN = { timeout: 10_000, interval: 20 };

let port = 0;
let heard: Buffer[][] = [];
let gaps = 0;
let open: (() => void)[] = [];
beforeEach(async () => {
  port = await freePort();
  heard = [];
  gaps = 0;
  open = [];
});
afterEach(() => {
  for (const close of open) close();
});

function listen(...topics: string[]): void {
  const { close } = subscribe({
    address: `tcp://127.0.0.1:${port}`,
    topics,
    onMessage: (parts) => heard.push(parts.map((part) => Buffer.from(part))),
    onGap: () => gaps++,
  });
  open.push(close);
}

async function publish(): Promise<Publisher> {
  const publisher = new Publisher({ linger: 0, sendHighWaterMark: 10_000 });
  // one that was there before gives the port back a little after it was closed
  const bound = () =>
    publisher.bind(`tcp://127.0.0.1:${port}`).then(
      () => true,
      () => false,
    );
  await expect.poll(bound, WITHIN).toBe(true);
  open.push(() => publisher.close());
  return publisher;
}

let greetings = 0;
/** Until one of these messages arrives: a publisher drops what comes before a subscription. Those of an earlier one may still be on their way. */
async function untilHeard(publisher: Publisher, topic: string): Promise<void> {
  const greeting = `hello ${greetings++}`;
  await expect
    .poll(async () => {
      await publisher.send([topic, greeting]);
      return heard.some((parts) => parts[1]?.toString() === greeting);
    }, WITHIN)
    .toBe(true);
}

describe('a subscriber of libzmq’s publisher', () => {
  test('receives whole messages of its topics and no others, in their order, at any length of a part', async () => {
    const publisher = await publish();
    listen('rawtx', 'hashblock');
    await untilHeard(publisher, 'rawtx');
    await untilHeard(publisher, 'hashblock');
    heard.length = 0;
    const lengths = [0, 1, 255, 256, 65_535, 65_536, 1_000_003, 33_000_000];
    for (const [number, length] of lengths.entries()) {
      await publisher.send(['sequence', Buffer.alloc(length)]);
      const counter = Buffer.alloc(4);
      counter.writeUInt32LE(number);
      await publisher.send([number % 2 === 0 ? 'rawtx' : 'hashblock', Buffer.alloc(length, number + 1), counter]);
    }
    const last = lengths.length - 1;
    await expect.poll(() => heard.at(-1)?.[2]?.readUInt32LE(0), { ...WITHIN, timeout: 20_000 }).toBe(last);
    const numbered = heard.filter((parts) => parts.length === 3);
    expect(numbered.map((parts) => parts[0]?.toString())).toEqual(lengths.map((_, n) => (n % 2 === 0 ? 'rawtx' : 'hashblock')));
    expect(numbered.map((parts) => parts[1]?.length)).toEqual(lengths);
    for (const [number, parts] of numbered.entries()) expect(parts[1]?.every((byte) => byte === number + 1)).toBe(true);
    expect(gaps).toBe(1);
  });

  test('receives every one of many small messages', async () => {
    const publisher = await publish();
    listen('rawtx');
    await untilHeard(publisher, 'rawtx');
    heard.length = 0;
    for (let n = 0; n < 5_000; n++) await publisher.send(['rawtx', Buffer.alloc(n % 700, n), Buffer.from(String(n))]);
    await expect.poll(() => heard.at(-1)?.[2]?.toString(), WITHIN).toBe('4999');
    expect(heard.filter((parts) => parts.length === 3).map((parts) => Number(parts[2]))).toEqual(
      Array.from({ length: 5_000 }, (_, n) => n),
    );
  });

  test('finds one that comes later, and again one that was away, and says that something may have been missed', async () => {
    listen('rawtx');
    const first = await publish();
    await untilHeard(first, 'rawtx');
    const before = gaps;
    await first.unbind(`tcp://127.0.0.1:${port}`);
    first.close();
    const second = await publish();
    await untilHeard(second, 'rawtx');
    expect(gaps).toBe(before + 1);
  });

  test('answers the signs of life that it asks for', async () => {
    const publisher = new Publisher({ linger: 0, heartbeatInterval: 50, heartbeatTimeout: 200 });
    await publisher.bind(`tcp://127.0.0.1:${port}`);
    open.push(() => publisher.close());
    listen('rawtx');
    await untilHeard(publisher, 'rawtx');
    await new Promise((resolve) => setTimeout(resolve, 1_000));
    await untilHeard(publisher, 'rawtx');
    expect(gaps).toBe(1);
  });
});

describe('whatever is at the address', () => {
  let connections = 0;
  async function serve(talk: (socket: Socket) => void): Promise<Server> {
    connections = 0;
    const server = createServer((socket) => {
      connections += 1;
      socket.on('error', () => undefined);
      talk(socket);
    });
    await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve));
    open.push(() => server.close());
    return server;
  }
  const greeting = Buffer.alloc(64);
  greeting.set([0xff, 0, 0, 0, 0, 0, 0, 0, 1, 0x7f, 3, 0]);
  greeting.write('NULL', 12, 'latin1');
  const ready = Buffer.from('\x04\x19\x05READY\x0bSocket-Type\x00\x00\x00\x03PUB', 'latin1');

  test.each<[string, Buffer]>([
    ['another protocol', Buffer.from(`HTTP/1.1 400 Bad Request\r\n\r\n${' '.repeat(64)}`)],
    ['another mechanism', Buffer.concat([greeting.subarray(0, 12), Buffer.from('CURVE'), Buffer.alloc(47)])],
    ['a frame of unknown flags', Buffer.concat([greeting, ready, Buffer.from([0xf0, 1, 0])])],
    ['a frame larger than any block', Buffer.concat([greeting, ready, Buffer.from([2, 0, 0, 0, 1, 0, 0, 0, 0])])],
    ['a message before its greeting has ended', Buffer.concat([greeting, Buffer.from([0, 1, 65])])],
    ['a message without end', Buffer.concat([greeting, ready, Buffer.alloc(40, Buffer.from([1, 0]))])],
    ['a refusal', Buffer.concat([greeting, Buffer.from('\x04\x09\x05ERROR\x02no', 'latin1')])],
  ])('%s is left, and tried again', async (_, bytes) => {
    await serve((socket) => socket.write(bytes));
    listen('rawtx');
    await expect.poll(() => connections, WITHIN).toBeGreaterThanOrEqual(2);
    expect(heard).toEqual([]);
  });

  test('no byte is lost between pieces, wherever they are cut', async () => {
    const long = Buffer.alloc(9 + 300, 7);
    long.set([2, 0, 0, 0, 0, 0, 0, 1, 44]);
    const message = Buffer.concat([Buffer.from('\x01\x05rawtx', 'latin1'), long]);
    const all = Buffer.concat([greeting, ready, message, message]);
    await serve((socket) => {
      socket.setNoDelay(true);
      let at = 0;
      const timer = setInterval(() => {
        if (at >= all.length) return clearInterval(timer);
        const step = at < 120 ? 1 : 37;
        socket.write(all.subarray(at, at + step));
        at += step;
      }, 1);
      socket.on('close', () => clearInterval(timer));
    });
    listen('rawtx');
    await expect.poll(() => heard.length, WITHIN).toBe(2);
    for (const parts of heard) expect(parts.map((part) => part.length)).toEqual([5, 300]);
  });

  test('all topics are subscribed to at once: none of them is missing for a moment after a connection', async () => {
    const after: Buffer[] = [];
    await serve((socket) => {
      socket.write(greeting);
      let isReady = false;
      let bytes = Buffer.alloc(0);
      socket.on('data', (chunk: Buffer) => {
        if (isReady) after.push(chunk);
        bytes = Buffer.concat([bytes, chunk]);
        if (isReady || !bytes.includes('SUB')) return;
        isReady = true;
        socket.write(ready);
      });
    });
    listen('hashblock', 'rawtx');
    await expect.poll(() => after.length, WITHIN).toBeGreaterThan(0);
    expect(after[0]?.toString('latin1')).toBe('\x00\x0a\x01hashblock\x00\x06\x01rawtx');
  });

  test('an address that is none is refused', () => {
    for (const address of ['pgm://eth0;239.0.0.1:5', 'tcp://127.0.0.1', 'http://127.0.0.1:1'])
      expect(() => subscribe({ address, topics: ['rawtx'], onMessage: () => undefined, onGap: () => undefined })).toThrow(
        TypeError,
      );
  });
});
