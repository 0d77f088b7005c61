// Whoever may open the signer's socket (a process of ours that was hijacked) and keeps connections, halves of frames or unread answers: the others
// are answered all the same, and the signer's memory and time stay bounded.
import { mkdtempSync, rmSync } from 'node:fs';
import { createConnection, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { createFrameReader, encodeFrame, MAX_FRAME_BYTES } from '../../src/core/signer-wire.ts';
import { createSignerClient } from '../../src/outside/signer-client.ts';
import { type SignerServer, serveSigner } from '../../src/signer/server.ts';
import { workedMs } from '../support/longest-turn.ts';
import { eventually } from '../support/service.ts';

const MEGABYTE = 1_048_576;
const PING = encodeFrame({ op: 'intent_keys', id: 1 });
let folder: string;
let path: string;
let server: SignerServer;
let answered = 0;
let sockets: Socket[];
beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'bursar-crowded-'));
  path = join(folder, 's');
  sockets = [];
  answered = 0;
  const signing = {
    intentKeys: async () => {
      answered += 1;
      return ['k'.repeat(10_000)];
    },
  };
  server = await serveSigner(
    { path, mode: 0o600 },
    { keyring: {} as never, signing: signing as never, onTrouble: () => undefined },
  );
});
afterEach(async () => {
  for (const socket of sockets) socket.destroy();
  await server.close();
  rmSync(folder, { recursive: true, force: true });
});
/** @param goesOn when the signer has ended its half */
function open({ goesOn = false } = {}): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = createConnection({ path, allowHalfOpen: goesOn }, () => resolve(socket));
    socket.on('error', reject);
    sockets.push(socket);
  });
}
const isAnswered = async (): Promise<boolean> => {
  const client = createSignerClient(path);
  try {
    return (await client.ask({ op: 'intent_keys' })).keys.length === 1;
  } catch {
    return false;
  } finally {
    client.close();
  }
};

test.each([
  ['idle connections', Buffer.alloc(0)],
  ['halves of frames', Buffer.from(PING.subarray(0, 10))],
])('a hundred %s keep nobody out', async (_, first) => {
  for (let n = 0; n < 100; n++) (await open()).write(first);
  await eventually('another is answered', isAnswered, 5_000);
});

test('who asks and never reads is not answered for ever', async () => {
  const socket = await open();
  socket.pause();
  for (let n = 0; n < 20_000; n++) socket.write(PING);
  await eventually('another is answered', isAnswered, 10_000);
  const before = answered;
  await eventually('another is answered again', isAnswered, 10_000);
  expect(answered - before).toBeLessThan(200);
  expect(answered).toBeLessThan(3_000);
});

test('what comes after something that is no frame is not kept', async () => {
  const socket = await open({ goesOn: true });
  socket.resume();
  socket.write(Buffer.of(0xff, 0, 0, 0));
  const before = process.memoryUsage().arrayBuffers;
  const much = Buffer.alloc(MEGABYTE);
  for (let n = 0; n < 64; n++) await new Promise((resolve) => socket.write(much, resolve));
  expect(await isAnswered()).toBe(true);
  // kept in room that doubles it would be 128, and what was read and is not collected yet is at most what was sent
  expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(100 * MEGABYTE);
});

test('a frame that comes a few bytes at a time is read in the time that its length takes', () => {
  const body = JSON.stringify({ id: 1, op: 'ping', text: 'x'.repeat(4_000_000) });
  const frame = Buffer.concat([Buffer.alloc(4), Buffer.from(body)]);
  frame.writeUInt32BE(body.length);
  const reader = createFrameReader();
  const began = workedMs();
  const messages: unknown[] = [];
  for (let at = 0; at < frame.length; at += 16) messages.push(...reader.push(frame.subarray(at, at + 16)));
  expect(messages).toHaveLength(1);
  expect(workedMs() - began).toBeLessThan(5_000);
  expect(() => createFrameReader().push(Uint8Array.of(0, 0x80, 0, 1))).toThrow('too long');
  expect(MAX_FRAME_BYTES).toBe(0x80_0000);
});
