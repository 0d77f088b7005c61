// What a body may cost while it arrives, however its client cuts it.
import { once } from 'node:events';
import { createServer } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { afterEach, expect, test } from 'vitest';
import { parseBody, readBytes } from '../../src/http/read-body.ts';

const HEAD = 'POST / HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n';
const ends: (() => void)[] = [];
afterEach(() => {
  for (const end of ends.splice(0)) end();
});

/** A server that reads bodies and answers with what `text` has, in characters; it counts the bytes of bodies that have come. */
async function reader() {
  const server = createServer((request, response) => {
    request.on('data', (chunk: Buffer) => {
      state.bytes += chunk.length;
    });
    void readBytes(request).then((read) => {
      try {
        response.end(String((parseBody(request, read).text as string).length));
      } catch (error) {
        response.end((error as Error & { code: string }).code);
      }
    });
  });
  const state = { bytes: 0 };
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  ends.push(() => {
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  async function client(): Promise<Socket> {
    const socket = connect(port, '127.0.0.1');
    ends.push(() => socket.destroy());
    await once(socket, 'connect');
    return socket;
  }
  return { state, client };
}

setFlagsFromString('--expose-gc');
const collect = runInNewContext('gc') as () => void;
function usedBytes(): number {
  collect();
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}

test('a body in chunks of a byte each costs no more than its bytes, while it waits for the rest', async () => {
  const { state, client } = await reader();
  const sockets = await Promise.all(Array.from({ length: 5 }, client));
  const inChunks = Buffer.from(`${HEAD}${'1\r\n \r\n'.repeat(60_000)}`);
  const before = usedBytes();
  for (const socket of sockets) socket.write(inChunks);
  while (state.bytes < 5 * 60_000) await pause(20);
  const grownBy = usedBytes() - before;
  // five bodies of 64 KiB, and what Node holds for five connections; one object for each chunk is 40 MB
  expect(grownBy).toBeLessThan(4 * 2 ** 20);
});

test.each([1, 7, 1_000, 4_096, 65_536])('a body in chunks of %i bytes is read whole and in order', async (size) => {
  const { client } = await reader();
  const text = Array.from({ length: 65_000 }, (_, n) => String.fromCharCode(97 + (n % 26))).join('');
  const body = JSON.stringify({ text });
  const socket = await client();
  const chunks: string[] = [];
  for (let at = 0; at < body.length; at += size) {
    const piece = body.slice(at, at + size);
    chunks.push(`${piece.length.toString(16)}\r\n${piece}\r\n`);
  }
  socket.write(`${HEAD}${chunks.join('')}0\r\n\r\n`);
  const [answer] = (await once(socket, 'data')) as [Buffer];
  expect(String(answer)).toMatch(/\r\n\r\n(5\r\n)?65000/);
});

test('one byte more than 64 KiB is too much, in chunks too', async () => {
  const { client } = await reader();
  const socket = await client();
  socket.write(`${HEAD}${'1\r\n \r\n'.repeat(65_537)}`);
  const [answer] = (await once(socket, 'data')) as [Buffer];
  expect(String(answer)).toContain('payload_too_large');
});
