// The HTTP server: it gets everything it needs as parameters and creates only routes. Every answer is JSON and carries its request's id,
// also those that no route gives.
import { randomBytes } from 'node:crypto';
import type { Socket } from 'node:net';
import fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify';
import type { Endpoint } from '../contract/endpoint.ts';
import { MERCHANT_API } from '../contract/merchant-api.ts';
import { SYSTEM_PATHS } from '../contract/system-api.ts';
import { STREAM_API } from '../contract/webhook-api.ts';
import { Refusal } from '../core/refusal.ts';
import { mountCheckout } from './checkout/routes.ts';
import { CONNECTION_LIMITS, watchConnections } from './connections.ts';
import { consoleMethods, mountConsole } from './console/routes.ts';
import { createEventStreams } from './event-streams.ts';
import { PREPARATIONS } from './handlers/lightning-preparations.ts';
import { MERCHANT_AFTERS, MERCHANT_ASKS, MERCHANT_HANDLERS } from './handlers/merchant.ts';
import { streamHandler } from './handlers/stream.ts';
import { mount } from './mount.ts';
import type { Operation, Preparation } from './operation.ts';
import { pagesLimiter } from './pages/calls.ts';
import { mountPortal, portalMethods } from './portal/routes.ts';
import type { Operations } from './portal/visit.ts';
import { answerBroken, answerOnSocket, brokenRequest } from './raw-answer.ts';
import { limitRequests, REQUEST_LIMITS } from './requests-in-progress.ts';
import { createServerContext, type ServerContext, type ServerOptions } from './server-context.ts';
import { headerRefusal } from './single-headers.ts';
import { mountDocuments, mountHealth, mountSandbox } from './system-routes.ts';

// not by an import: that would read every export, and one of them loads a whole HTTP client (14 MB)
const { METHODS } = process.getBuiltinModule('node:http');
/** The methods whose bodies fastify would parse. */
const BODY_METHODS = ['POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'QUERY'].filter((method) => METHODS.includes(method));

/** @returns a fastify instance that does not listen yet; `close()` answers every waiting call and resolves when all answers are sent */
export function createServer(options: ServerOptions): FastifyInstance {
  const closing = new AbortController();
  const limits = options.connectionLimits ?? CONNECTION_LIMITS;
  const app = fastify({
    logger: false,
    genReqId: requestIds(),
    trustProxy: options.trustedProxies.length === 0 ? false : [...options.trustedProxies],
    return503OnClosing: false,
    // a username may have this many, and its page of the portal has it in its path
    routerOptions: { maxParamLength: 512 },
    forceCloseConnections: 'idle',
    requestTimeout: limits.requestMs,
    http: {
      requestTimeout: limits.requestMs,
      headersTimeout: limits.requestMs,
      connectionsCheckingInterval: limits.lookMs,
      // ours is refused in JSON, like everything else
      requireHostHeader: false,
    },
    keepAliveTimeout: limits.idleMs,
    frameworkErrors: (_error, request, reply) =>
      void context.failAnonymous(request as FastifyRequest, reply as FastifyReply, new Refusal('not_found')),
    clientErrorHandler(error: Error & { code?: string }, socket: Socket) {
      if (error.code === 'ECONNRESET' || !socket.writable) socket.destroy();
      else answerBroken(context, socket, brokenRequest(error, limits.requestMs / 1000));
    },
  });
  const context = createServerContext(options, watchConnections(app.server, limits), closing.signal);
  options.durations?.watch(app);
  const inProgress = limitRequests(app.server, options.requestLimits ?? REQUEST_LIMITS);
  app.addHook('onRequest', (request, reply, done) => {
    if (inProgress.isTooMany(request.raw.socket)) return context.failOverloaded(request, reply);
    const refusal = headerRefusal(request.raw);
    if (refusal === null) done();
    else if (isUncounted(request, context)) context.failUncounted(request, reply, refusal);
    else void context.failAnonymous(request, reply, refusal);
  });
  // a client that has closed its own side may still be waiting for the answer
  (app.server as { httpAllowHalfOpen?: boolean }).httpAllowHalfOpen = true;
  // our own reader (read-body.ts) reads the bodies, whatever their media type, and only where a route wants one
  for (const method of BODY_METHODS) app.addHttpMethod(method, { hasBody: false, overrideExisting: true });
  app.addHook('preClose', (done) => {
    closing.abort();
    // connections that are busy now and idle later must not delay the close
    app.server.keepAliveTimeout = 1;
    context.connections.endUnused();
    done();
  });
  app.server.on('checkExpectation', (request, response) => app.routing(request, response));
  app.server.on('connect', (_request, socket: Socket) => {
    socket.on('error', () => socket.destroy());
    void answerOnSocket(context, socket, new Refusal('method_not_allowed', { message: 'This server is no proxy.' }), {
      allow: 'GET, HEAD, POST',
    });
  });
  app.setErrorHandler((error, request, reply) => void context.failAnonymous(request, reply, error));

  const names = Object.keys(MERCHANT_API) as (keyof typeof MERCHANT_API)[];
  const calls = names.map((name) => {
    const around = { ask: MERCHANT_ASKS[name], prepare: PREPARATIONS[name], after: MERCHANT_AFTERS[name] };
    return [name, mount(app, context, operationOf(MERCHANT_API[name], MERCHANT_HANDLERS[name], around))] as const;
  });
  const open = streamHandler(createEventStreams(context, options.eventTail));
  mount(app, context, streamOperation(STREAM_API.streamEvents, open));
  mountHealth(app, context);
  mountDocuments(app, context);
  mountCheckout(app, context);
  const limiter = pagesLimiter(context);
  mountPortal(app, context, { operations: Object.fromEntries(calls) as Operations, limiter });
  mountConsole(app, context, limiter);
  if (options.sandbox !== null) mountSandbox(app, context, options.sandbox);
  app.setNotFoundHandler(nothingHere(context));
  return app;
}

/** The table and the handlers are typed together by name, which a loop over the names cannot express. */
function operationOf(
  endpoint: Endpoint,
  handler: unknown,
  around: { readonly ask: unknown; readonly prepare: Preparation | undefined; readonly after: unknown },
): Operation {
  const { access } = endpoint;
  return { endpoint, kind: access.kind, access, handler, ...around } as Operation;
}

function streamOperation(endpoint: Endpoint, open: unknown): Operation {
  return { endpoint, kind: 'stream', access: endpoint.access, open } as Operation;
}

/** Not counted, whatever the method; neither are the sandbox's controls. */
const UNCOUNTED: ReadonlySet<string> = new Set(['/healthz', '/readyz']);
const isUncounted = ({ url }: FastifyRequest, { sandbox }: ServerContext): boolean =>
  UNCOUNTED.has(pathOf(url)) || (sandbox !== null && pathOf(url).startsWith('/sandbox/'));

/** 405 for a path that accepts another method, otherwise 404. */
function nothingHere(context: ServerContext): (request: FastifyRequest, reply: FastifyReply) => void {
  const allowed = new Map<string, string>();
  for (const { path } of Object.values({ ...MERCHANT_API, ...STREAM_API })) allowed.set(path, 'POST').set(`/v1${path}`, 'POST');
  for (const path of [...Object.keys(SYSTEM_PATHS), '/docs']) allowed.set(path, 'GET, HEAD');
  return (request, reply) => {
    const path = pathOf(request.url);
    const inSandbox = context.sandbox !== null && path.startsWith('/sandbox/');
    const control = inSandbox && /^\/sandbox\/[^/]+$/.test(path);
    const page = /^\/pay\/[^/]+(\/events)?$/.exec(path);
    const ofPage = page === null ? undefined : page[1] === undefined ? 'GET, HEAD' : 'GET';
    const allow = allowed.get(path) ?? (control ? 'POST' : ofPage) ?? portalMethods(path) ?? consoleMethods(path);
    // outside the sandbox its controls do not exist, with or without TLS
    const insecure = path.startsWith('/sandbox/') ? null : context.insecure(request);
    if (allow === undefined || insecure !== null) {
      if (inSandbox) context.failUncounted(request, reply, new Refusal('not_found'));
      else void context.failAnonymous(request, reply, insecure ?? new Refusal('not_found'));
      return;
    }
    reply.header('allow', allow);
    const refusal = new Refusal('method_not_allowed', { message: `This path takes ${allow}.` });
    if (control || UNCOUNTED.has(path)) context.failUncounted(request, reply, refusal);
    else void context.failAnonymous(request, reply, refusal);
  };
}

/** The path as the router reads it. */
function pathOf(url: string): string {
  const path = url.split('?')[0] as string;
  try {
    return decodeURIComponent(path);
  } catch {
    return path;
  }
}

/** Ids that no two requests share: a random prefix for each process, then a counter. */
function requestIds(): () => string {
  const prefix = `req_${randomBytes(9).toString('base64url')}`;
  let count = 0;
  return () => `${prefix}${(++count).toString(36)}`;
}
