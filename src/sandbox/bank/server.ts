// The HTTP interface of the simulated bank, below /bank: files by name and hash, and reports until they are acknowledged.
import type { IncomingMessage, ServerResponse } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import { countDown } from '../trouble.ts';
import type { Bank } from './bank.ts';

const NAME = /^\d{4}-\d\d-\d\d-[A-Z0-9]$/;
const HASH = /^[0-9a-f]{64}$/;

type Asked = {
  readonly request: IncomingMessage;
  /** What follows /bank/. */
  readonly path: readonly string[];
  readonly sha256: string;
  readonly body: string;
};

const HANG_MS = 60_000;

/** Answers a request of our service, with the bank's present trouble. */
export async function answerBank(bank: Bank, asked: Asked, response: ServerResponse): Promise<void> {
  const { request } = asked;
  const { down, fault } = bank.trouble();
  if (down) return void request.socket.destroy();
  const isHandOver = request.method === 'PUT';
  const said = answerOf(bank, asked);
  const concerned = fault === 'hang' || isHandOver;
  if (fault !== null && concerned) countDown(bank, bank.trouble());
  if (fault === 'lose_answers' && concerned) return void request.socket.destroy();
  if (fault === 'hang') await delay(HANG_MS, undefined, { ref: false });
  if (typeof said === 'string') response.writeHead(200, { 'Content-Type': 'text/plain' }).end(said);
  else if (said === null) response.writeHead(404).end();
  else response.writeHead(200, { 'Content-Type': 'application/json' }).end(JSON.stringify(said));
}

/** A file as it was taken is text. Null when there is nothing at this path. */
function answerOf(bank: Bank, { request, path: [section, name = ''], sha256, body }: Asked): object | string | null {
  if (section === 'files' && NAME.test(name) && HASH.test(sha256)) {
    if (request.method === 'GET') return bank.ask(sha256);
    return request.method === 'PUT' ? bank.take(name, sha256, body) : null;
  }
  const content = section === 'contents' && request.method === 'GET' ? bank.contentOf(sha256) : null;
  if (content !== null) return content;
  if (section === 'files' && name === '' && request.method === 'GET') return { files: bank.files() };
  if (section !== 'reports') return null;
  if (request.method === 'GET') return bank.news();
  if (request.method !== 'DELETE') return null;
  bank.acknowledge(name);
  return {};
}
