// Serves a simulated Lightning node as LND's REST interface: over TLS with a certificate of its own, calls permitted by macaroons, the stream of
// settlements, and the faults that /sandbox/node sets.
import { randomBytes } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Server } from 'node:https';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { writeWhole } from '../rates.ts';
import { countDown } from '../trouble.ts';
import { selfSignedCertificate } from './certificate.ts';
import { type Asked, invoiceAnswer, LndRefused, METHODS, SUBSCRIBE } from './lnd-methods.ts';
import { PAYING, PAYMENT_METHODS, PAYMENT_STREAMS, type PaymentStream, paymentAnswer } from './lnd-payments.ts';
import { bakeMacaroon, macaroonProblem } from './macaroons.ts';
import type { Invoice, LightningNode } from './node.ts';

// not by an import: see sandbox.ts
const { createServer } = process.getBuiltinModule('node:https');

const HANG_MS = 60_000;
const MOST_BYTES = 64 * 1024;

type Credentials = {
  readonly key: string;
  readonly certificate: string;
  readonly rootKey: string;
  /** Permits what receiving needs, and nothing else. */
  readonly macaroon: string;
  /** Permits what paying needs, and nothing else. */
  readonly payMacaroon: string;
};

export type ServedLightning = {
  readonly server: Server;
  readonly certificate: string;
  readonly macaroon: string;
  readonly payMacaroon: string;
  close(): void;
};

/** The same certificate at every start; macaroons that permit what this version needs. */
function credentialsOf(folder: string): Credentials {
  const path = join(folder, 'lightning.json');
  const before = existsSync(path) ? (JSON.parse(readFileSync(path, 'utf8')) as Partial<Credentials>) : {};
  const rootKey = before.rootKey ?? randomBytes(32).toString('hex');
  const key = Buffer.from(rootKey, 'hex');
  const receiving = [...METHODS.flatMap(({ permission }) => permission ?? []), SUBSCRIBE.permission];
  const { certificate, key: tlsKey } = before;
  const made: Credentials = {
    ...(certificate === undefined || tlsKey === undefined ? selfSignedCertificate() : { certificate, key: tlsKey }),
    rootKey,
    macaroon: bakeMacaroon(key, receiving),
    payMacaroon: bakeMacaroon(key, PAYING),
  };
  writeWhole(path, `${JSON.stringify(made)}\n`);
  return made;
}

/**
 * @param options.log receives an internal error; the connection is closed then
 * @returns the server, which does not listen yet
 */
export function serveLightning(
  node: LightningNode,
  options: { readonly folder: string; readonly now: () => number; readonly log: (line: string, error: Error) => void },
): ServedLightning {
  const credentials = credentialsOf(options.folder);
  const rootKey = Buffer.from(credentials.rootKey, 'hex');
  const streams = new Set<ServerResponse>();
  const server = createServer(
    { key: credentials.key, cert: credentials.certificate, keepAliveTimeout: 60_000 },
    (request, response) => {
      route(request, response).catch((error: Error) => {
        if (!request.socket.destroyed) options.log(`${request.url ?? ''} failed`, error);
        request.socket.destroy();
      });
    },
  );
  node.onTrouble(() => {
    if (node.trouble().down) for (const stream of streams) stream.socket?.destroy();
  });

  async function route(request: IncomingMessage, response: ServerResponse): Promise<void> {
    if (node.trouble().down) return void request.socket.destroy();
    // by its own clock, which may be ahead of this machine's
    response.setHeader('Date', new Date(options.now()).toUTCString());
    const url = new URL(request.url ?? '/', 'https://sandbox');
    const body = await bodyOf(request);
    const permission = url.pathname === SUBSCRIBE.path ? SUBSCRIBE.permission : undefined;
    const isAsked = ({ verb, path }: { verb: string; path: RegExp }): boolean =>
      verb === request.method && path.test(url.pathname);
    const method = [...METHODS, ...PAYMENT_METHODS].find(isAsked);
    const paymentStream = PAYMENT_STREAMS.find(isAsked);
    const header = request.headers['grpc-metadata-macaroon'];
    const needed = permission ?? paymentStream?.permission ?? method?.permission ?? null;
    const problem =
      needed === null ? null : macaroonProblem(rootKey, header === undefined ? undefined : String(header), needed, options.now());
    if (problem !== null)
      return refuse(response, new LndRefused(problem), permission !== undefined || paymentStream !== undefined);
    if (permission !== undefined) return stream(url, response);
    const parts = (method ?? paymentStream)?.path.exec(url.pathname)?.slice(1) ?? [];
    const asked = { node, nowMs: options.now(), parts, query: url.searchParams, body };
    if (paymentStream !== undefined) return payments(paymentStream, asked, response);
    if (method === undefined) return refuse(response, new LndRefused('Not Found', 404, 5), false);
    const { fault } = node.trouble();
    const said = answered(() => method.answer(asked));
    const concerned = fault === 'hang' || (fault === 'lose_answers' && method.changes);
    if (concerned) countDown(node, node.trouble());
    if (fault === 'lose_answers' && concerned) return void response.destroy();
    if (fault === 'hang') await delay(HANG_MS, undefined, { ref: false });
    if (response.destroyed) return;
    if (said instanceof LndRefused) refuse(response, said, false);
    else response.writeHead(200, { 'Content-Type': 'application/json' }).end(JSON.stringify(said));
  }

  /** A payment as it is, and how it ends; nothing that a fault does ends the payment. */
  async function payments({ changes, begin }: PaymentStream, asked: Asked, response: ServerResponse): Promise<void> {
    const { fault } = node.trouble();
    const isConcerned = fault === 'hang' || (changes && fault !== null && fault !== 'no_locks');
    if (isConcerned) countDown(node, node.trouble());
    if (isConcerned && fault === 'reject')
      return refuse(response, new LndRefused('policy: payments are refused right now'), true);
    const begun = answered(() => begin(asked)) as ReturnType<PaymentStream['begin']>;
    if (isConcerned && fault === 'lose_answers') return void response.destroy();
    if (fault === 'hang') await delay(HANG_MS, undefined, { ref: false });
    if (response.destroyed) return;
    if (begun instanceof LndRefused) return refuse(response, begun, true);
    response.writeHead(200, { 'Content-Type': 'application/json' });
    const say = (): void => void response.write(`${JSON.stringify({ result: paymentAnswer(begun) })}\n`);
    say();
    if (isConcerned && fault === 'forgets') node.outgoing.forget(begun.hash);
    if (begun.status !== 'IN_FLIGHT' || (isConcerned && fault === 'forgets')) return void response.end();
    const end = node.outgoing.onEnd((payment) => {
      if (payment.hash !== begun.hash) return;
      say();
      response.end();
    });
    streams.add(response);
    response.once('close', () => {
      end();
      streams.delete(response);
    });
  }

  /** LND sends no headers before the first line; with settle_index 0 it begins now, otherwise with what came after that index. */
  function stream(url: URL, response: ServerResponse): void {
    const after = Number(url.searchParams.get('settle_index') ?? 0);
    const say = (invoice: Invoice): void => {
      if (!response.headersSent) response.writeHead(200, { 'Content-Type': 'application/json' });
      response.write(`${JSON.stringify({ result: invoiceAnswer(invoice) })}\n`);
    };
    const missed = node.all().filter(({ settleIndex }) => after > 0 && settleIndex > after);
    for (const invoice of missed.toSorted((a, b) => a.settleIndex - b.settleIndex)) say(invoice);
    const end = node.onSettled((invoice) => {
      if (after === 0 || invoice.settleIndex > after) say(invoice);
    });
    streams.add(response);
    response.once('close', () => {
      end();
      streams.delete(response);
    });
  }

  const { certificate, macaroon, payMacaroon } = credentials;
  return { server, certificate, macaroon, payMacaroon, close: () => node.close() };
}

function answered(answer: () => unknown): unknown {
  try {
    return answer();
  } catch (error) {
    if (error instanceof LndRefused) return error;
    throw error;
  }
}

function refuse(response: ServerResponse, { httpStatus, code, message }: LndRefused, isStream: boolean): void {
  const shown = { code, message, details: [] };
  response.writeHead(httpStatus, { 'Content-Type': 'application/json' }).end(JSON.stringify(isStream ? { error: shown } : shown));
}

async function bodyOf(request: IncomingMessage): Promise<Readonly<Record<string, unknown>>> {
  const parts: Buffer[] = [];
  let size = 0;
  for await (const part of request) {
    size += (part as Buffer).length;
    if (size <= MOST_BYTES) parts.push(part as Buffer);
  }
  if (size === 0 || size > MOST_BYTES) return {};
  const parsed: unknown = JSON.parse(Buffer.concat(parts).toString('utf8'));
  return typeof parsed === 'object' && parsed !== null ? (parsed as Record<string, unknown>) : {};
}
