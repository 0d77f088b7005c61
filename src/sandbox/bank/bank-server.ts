// The HTTP interface of the simulated bank, below /bank: files by name and hash, and reports until they are acknowledged.
import type { IncomingMessage, ServerResponse } from 'node:http';
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

/** Answers a request of our service. */
export function answerBank(bank: Bank, asked: Asked, response: ServerResponse): void {
  const { request } = asked;
  const said = answerOf(bank, asked);
  if (said === 'lost') request.socket.destroy();
  else if (said === null) response.writeHead(404).end();
  else response.writeHead(200, { 'Content-Type': 'application/json' }).end(JSON.stringify(said));
}

/** Null when there is nothing at this path. */
function answerOf(bank: Bank, { request, path: [section, name = ''], sha256, body }: Asked): object | 'lost' | null {
  if (section === 'files' && NAME.test(name) && HASH.test(sha256)) {
    if (request.method === 'GET') return bank.ask(sha256);
    if (request.method !== 'PUT') return null;
    const { answer, isLost } = bank.take(name, sha256, body);
    return isLost ? 'lost' : answer;
  }
  if (section !== 'reports') return null;
  if (request.method === 'GET') return bank.news();
  if (request.method !== 'DELETE') return null;
  bank.acknowledge(name);
  return {};
}
