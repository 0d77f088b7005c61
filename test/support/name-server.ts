// A DNS server (RFC 1035) on loopback that answers A and AAAA questions as a test says, and counts them.
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { isIPv6 } from 'node:net';

const A = 1;
const AAAA = 28;
const NXDOMAIN = 3;

export type NameServer = { readonly address: string; readonly asked: readonly string[]; close(): void };

/** @param addressesOf by name and how often it was asked for addresses of this family before; null = there is no such name; undefined = no answer */
export async function startNameServer(
  addressesOf: (name: string, before: number) => readonly string[] | null | undefined,
): Promise<NameServer> {
  const socket = createSocket('udp4');
  const asked: string[] = [];
  socket.on('message', (question, from) => {
    const { name, type, end } = questionOf(question);
    const before = asked.filter((one) => one === `${name} ${type}`).length;
    asked.push(`${name} ${type}`);
    const found = addressesOf(name, before);
    if (found === undefined) return;
    const mine = (found ?? []).filter((address) => (isIPv6(address) ? AAAA : A) === type);
    const header = Buffer.from(question.subarray(0, 12));
    header.writeUInt16BE(found === null ? 0x8180 | NXDOMAIN : 0x8180, 2);
    header.writeUInt16BE(mine.length, 6);
    header.writeUInt32BE(0, 8);
    socket.send(
      Buffer.concat([header, question.subarray(12, end), ...mine.map((one) => record(type, one))]),
      from.port,
      from.address,
    );
  });
  socket.bind(0, '127.0.0.1');
  await once(socket, 'listening');
  return { address: `127.0.0.1:${socket.address().port}`, asked, close: () => socket.close() };
}

function questionOf(bytes: Buffer): { name: string; type: number; end: number } {
  const labels: string[] = [];
  let at = 12;
  for (let length = bytes[at] ?? 0; length > 0; length = bytes[at] ?? 0) {
    labels.push(bytes.toString('latin1', at + 1, at + 1 + length));
    at += 1 + length;
  }
  return { name: labels.join('.').toLowerCase(), type: bytes.readUInt16BE(at + 1), end: at + 5 };
}

/** The name by reference, class IN, no time to live: whoever asks again gets the next answer. */
function record(type: number, address: string): Buffer {
  const data = isIPv6(address) ? ipv6Bytes(address) : Buffer.from(address.split('.').map(Number));
  const head = Buffer.from([0xc0, 0x0c, 0, type, 0, 1, 0, 0, 0, 0, 0, data.length]);
  return Buffer.concat([head, data]);
}

function ipv6Bytes(address: string): Buffer {
  const host = new URL(`http://[${address}]/`).hostname.slice(1, -1);
  const [left = '', right] = host.split('::');
  const groups = (text: string): string[] => (text === '' ? [] : text.split(':'));
  const before = groups(left);
  const after = groups(right ?? '');
  const middle = right === undefined ? [] : Array<string>(8 - before.length - after.length).fill('0');
  const bytes = Buffer.alloc(16);
  for (const [n, group] of [...before, ...middle, ...after].entries()) bytes.writeUInt16BE(Number.parseInt(group, 16), 2 * n);
  return bytes;
}
