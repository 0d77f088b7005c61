// Receives Bursar's webhooks. Node 18 or newer, nothing to install: node receiver.mjs <port> <secret>
import { createHmac, timingSafeEqual } from 'node:crypto';
import { createServer } from 'node:http';

const [port, secret] = process.argv.slice(2);
const key = Buffer.from(secret.replace('whsec_', ''), 'base64');
const applied = new Map(); // of each object the highest sequence; keep it in your database

/** Standard Webhooks 1.0.0: any of the signatures may be ours, and the time must be now. */
function isGenuine(headers, body) {
  const time = headers['webhook-timestamp'];
  if (!(Math.abs(Date.now() / 1000 - Number(time)) < 300)) return false;
  const wanted = Buffer.from(
    `v1,${createHmac('sha256', key).update(`${headers['webhook-id']}.${time}.`).update(body).digest('base64')}`,
  );
  return String(headers['webhook-signature'])
    .split(' ')
    .map((one) => Buffer.from(one))
    .some((given) => given.length === wanted.length && timingSafeEqual(given, wanted));
}

createServer((request, response) => {
  const parts = [];
  request.on('data', (part) => parts.push(part));
  request.on('end', () => {
    const body = Buffer.concat(parts);
    if (!isGenuine(request.headers, body)) return response.writeHead(400).end();
    const { type, sequence, data } = JSON.parse(body);
    const id = data.object.transaction_id ?? data.object.id;
    // events come in any order, and some twice
    if (sequence > (applied.get(id) ?? 0)) {
      applied.set(id, sequence);
      console.log(`${type} ${id} is ${data.object.status}`);
    }
    response.writeHead(204).end();
  });
}).listen(Number(port), '127.0.0.1');
