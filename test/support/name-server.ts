// A DNS server (RFC 1035) on loopback that answers A and AAAA questions as a test says, and counts them.
import { createSocket, type RemoteInfo } from 'node:dgram';
import { once } from 'node:events';
import { isIPv6 } from 'node:net';

const A = 1;
const CNAME = 5;
const AAAA = 28;
const NXDOMAIN = 3;

const SERVFAIL = 2;

type Answer = readonly string[] | 'SERVFAIL' | null | undefined;
export type NameServer = { readonly address: string; readonly asked: readonly string[]; close(): void };

/**
 * @param addressesOf by name and how often it was asked for addresses of this family before; null = there is no such name; undefined = no answer;
 *   SERVFAIL = it cannot say
 * @param aliases every name is another name for the first of these, that one for the second, and the last one has the addresses
 */
export async function startNameServer(
  addressesOf: (name: string, before: number) => Answer | Promise<Answer>,
  aliases: readonly string[] = [],
): Promise<NameServer> {
  const socket = createSocket('udp4');
  const asked: string[] = [];
  let isClosed = false;
  async function answer(question: Buffer, from: RemoteInfo): Promise<void> {
    const { name, type, end } = questionOf(question);
    const before = asked.filter((one) => one === `${name} ${type}`).length;
    asked.push(`${name} ${type}`);
    const found = await addressesOf(name, before);
    if (found === undefined || isClosed) return;
    const addresses = (found === 'SERVFAIL' ? [] : (found ?? [])).filter((address) => (isIPv6(address) ? AAAA : A) === type);
    const names = [Buffer.from([0xc0, 0x0c]), ...aliases.map(nameBytes)];
    const mine = [
      ...names.slice(1).map((alias, n) => record(names[n] as Buffer, CNAME, alias)),
      ...addresses.map((address) => record(names.at(-1) as Buffer, type, addressBytes(address))),
    ];
    const header = Buffer.from(question.subarray(0, 12));
    header.writeUInt16BE(0x8180 | (found === null ? NXDOMAIN : found === 'SERVFAIL' ? SERVFAIL : 0), 2);
    header.writeUInt16BE(mine.length, 6);
    header.writeUInt32BE(0, 8);
    socket.send(Buffer.concat([header, question.subarray(12, end), ...mine]), from.port, from.address);
  }
  socket.on('message', (question, from) => void answer(question, from));
  socket.bind(0, '127.0.0.1');
  await once(socket, 'listening');
  function close(): void {
    isClosed = true;
    socket.close();
  }
  return { address: `127.0.0.1:${socket.address().port}`, asked, close };
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

/** Class IN, no time to live: whoever asks again gets the next answer. */
function record(name: Buffer, type: number, data: Buffer): Buffer {
  return Buffer.concat([name, Buffer.from([0, type, 0, 1, 0, 0, 0, 0, 0, data.length]), data]);
}

const nameBytes = (name: string): Buffer =>
  Buffer.concat([...name.split('.').flatMap((label) => [Buffer.from([label.length]), Buffer.from(label)]), Buffer.from([0])]);

const addressBytes = (address: string): Buffer =>
  isIPv6(address) ? ipv6Bytes(address) : Buffer.from(address.split('.').map(Number));

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
