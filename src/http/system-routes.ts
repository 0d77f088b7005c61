// The routes with GET and without a token: /healthz, /readyz, /openapi.json, /docs; and in the sandbox the POST controls.
import { setTimeout as delay } from 'node:timers/promises';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { openApiDocument } from '../contract/openapi.ts';
import { Refusal } from '../core/refusal.ts';
import { type Readiness, readWholeReadiness } from '../flow/readiness.ts';
import { addressKey } from './client-address.ts';
import { type Document, reference, STYLE } from './docs/reference.ts';
import { isoTime } from './handlers/transaction-replies.ts';
import { mountFiles, pageHeaders } from './pages/files.ts';
import { hasEnded } from './raw-answer.ts';
import { parseBody, readBytes } from './read-body.ts';
import { JSON_TYPE, refusalOf, sendRefusal } from './reply-error.ts';
import { type SandboxForward, type ServerContext, takeCall } from './server-context.ts';

const MOST_SHARING = 8;
const BUSY_PAUSE_MS = 100;

/** Health is not counted, and may be asked without TLS (probes come from inside). */
export function mountHealth(app: FastifyInstance, context: ServerContext): void {
  // callers during one reading share its answer: any number of probes cost the database one reading at a time. Where many did, the next one
  // waits, and so do its callers: whoever asks without end gets an answer later and not an older one
  let finding: Promise<string | Refusal> | null = null;
  let sharing = 0;
  let isBusy = false;
  async function find(): Promise<string | Refusal> {
    try {
      if (isBusy) await delay(BUSY_PAUSE_MS);
      return readyAnswer(await readWholeReadiness(context.ctx));
    } finally {
      isBusy = sharing > MOST_SHARING;
      sharing = 0;
      finding = null;
    }
  }
  function readiness(): Promise<string | Refusal> {
    sharing += 1;
    finding ??= find();
    return finding;
  }
  app.get('/healthz', (request, reply) => {
    context.sign(request, reply);
    reply.send({ status: 'ok' });
  });
  app.get('/readyz', async (request, reply) => {
    context.sign(request, reply);
    try {
      const answer = await readiness();
      if (answer instanceof Refusal) sendRefusal(reply, answer);
      else reply.header('content-type', JSON_TYPE).send(answer);
      return reply;
    } catch (error) {
      context.report({ requestId: request.id, path: request.url, error }, 'not ready');
      const message = 'The database cannot be reached, or is not migrated yet.';
      sendRefusal(reply, new Refusal('overloaded', { message }));
      return reply;
    }
  });
}

/** The body of /readyz, or why nothing can be received. */
function readyAnswer({ chains, breakers, rates, rateSources, problems, blocked }: Readiness): string | Refusal {
  if (blocked !== null) return new Refusal('currency_unavailable', { message: `Nothing can be received: ${blocked}.` });
  const currencies = chains.map((chain) => [
    chain.currency,
    {
      state: chain.state,
      reason: chain.reason,
      height: chain.nodeHeight,
      contested: chain.contested,
      node: chain.node,
      others: chain.others,
      checked_at: isoTime(chain.checkedAtMs),
    },
  ]);
  return JSON.stringify({
    status: 'ready',
    problems,
    currencies: Object.fromEntries(currencies),
    rates: {
      prices: Object.keys(rates),
      sources: rateSources.map(({ source, state, reason, sinceMs, checkedAtMs }) => ({
        source,
        state,
        reason,
        since: isoTime(sinceMs),
        checked_at: isoTime(checkedAtMs),
      })),
    },
    breakers: breakers.map((one) => ({
      name: one.name,
      tripped_by: one.trippedBy,
      tripped_at: isoTime(one.trippedAtMs),
      seen_at: isoTime(one.seenAtMs),
    })),
  });
}

/** The documents, for programs and for people, counted like every call without a token. */
export function mountDocuments(app: FastifyInstance, context: ServerContext): void {
  app.get('/openapi.json', (request, reply) => void answer(request, reply, { 'content-type': JSON_TYPE }, JSON.stringify));
  app.get(
    '/docs',
    (request, reply) => void answer(request, reply, pageHeaders(''), (document) => reference(document as Document)),
  );
  mountFiles(app, context, '/docs', [STYLE]);
  async function answer(
    request: FastifyRequest,
    reply: FastifyReply,
    headers: Readonly<Record<string, string>>,
    written: (document: ReturnType<typeof openApiDocument>) => string,
  ): Promise<void> {
    const insecure = context.insecure(request);
    if (insecure !== null) return context.failAnonymous(request, reply, insecure);
    const counted = { limiter: context.anonymous, key: addressKey(request.ip) };
    const nowMs = context.now();
    const refused = await takeCall(counted, nowMs);
    if (refused !== null) return context.fail(request, reply, refused, counted);
    const url = context.baseUrl(request);
    context.sign(request, reply);
    context.anonymous.describe(reply, counted.key, nowMs);
    reply.headers(headers);
    reply.send(written(openApiDocument({ url, version: context.version, sandbox: context.sandbox !== null })));
  }
}

/** The controls of the sandbox: bodies are checked as everywhere; no token, not counted. */
export function mountSandbox(app: FastifyInstance, context: ServerContext, forward: SandboxForward): void {
  async function answer(request: FastifyRequest<Control>, reply: FastifyReply): Promise<void> {
    context.sign(request, reply);
    try {
      const read = await readBytes(request.raw);
      if (hasEnded(request.raw.socket)) return;
      const { httpStatus, json } = await forward(request.params.control, parseBody(request.raw, read), context.closing);
      reply.code(httpStatus).header('content-type', JSON_TYPE).send(json);
    } catch (error) {
      const refusal = refusalOf(error);
      if (refusal !== error) context.report({ requestId: request.id, path: request.url, error }, 'a control failed');
      // never 500: any error that is no refusal means that the sandbox is not there
      const isBug = refusal.httpStatus === 500;
      sendRefusal(reply, isBug ? new Refusal('overloaded', { message: 'The sandbox does not answer.' }) : refusal);
    }
  }
  app.post<Control>('/sandbox/:control', (request, reply) => void answer(request, reply));
}

type Control = { Params: { control: string } };
