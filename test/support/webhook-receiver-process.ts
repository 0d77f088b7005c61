// A merchant's server for webhooks as a process of its own, so that it can be killed: prints each request as a line of JSON, then takes it.
// Arguments: the port (0 = any free one), and after how many milliseconds it answers; the first line is the port.
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';

const server = createServer((request, response) => {
  const parts: Buffer[] = [];
  request.on('data', (part: Buffer) => parts.push(part));
  request.on('end', () => {
    const line = JSON.stringify({ headers: request.headers, text: Buffer.concat(parts).toString() });
    // whoever kills it after this line has it, and the sender does not know
    process.stdout.write(`${line}\n`, () => void delay(Number(process.argv[3])).then(() => response.writeHead(204).end()));
  });
}).listen(Number(process.argv[2]), '127.0.0.1', () => {
  process.stdout.write(`${(server.address() as AddressInfo).port}\n`);
});
