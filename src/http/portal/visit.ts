// A request of a page by a user who is signed in to the portal, and what pages are. Pages call the operations of the API, so that nothing is allowed,
// counted, checked or said here in another way than there.
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { MerchantApi } from '../../contract/merchant-api.ts';
import type { TypeOf } from '../../contract/shapes.ts';
import type { Scope } from '../../core/credentials.ts';
import { Refusal, type RefusalCode } from '../../core/refusal.ts';
import { type PortalSession, signOutAgain } from '../../flow/sign-in/portal-sessions.ts';
import type { CallFromPage } from '../mount.ts';
import type { Form } from '../pages/forms.ts';
import type { Refused, Shown } from '../pages/frame.ts';
import type { JsonObject } from '../read-body.ts';
import type { ServerContext } from '../server-context.ts';

export type Operations = { readonly [Name in keyof MerchantApi]: CallFromPage };
export type ReplyOf<Name extends keyof MerchantApi> = TypeOf<MerchantApi[Name]['reply']>;

export type Visit = {
  readonly context: ServerContext;
  readonly request: FastifyRequest;
  /** Before every path of ours: where a proxy has put the service. */
  readonly base: string;
  /** What `:id` in the page's path stands for; empty where it has none. */
  readonly id: string;
  /** As the database said it last. */
  readonly session: PortalSession;
  has(scope: Scope): boolean;
  /** Calls an operation. @throws Refusal as it refuses */
  ask<Name extends keyof MerchantApi>(name: Name, body?: JsonObject): Promise<ReplyOf<Name>>;
  /** Calls it once more to read on where `ask` ended, which is not counted, if the session still counts. @throws Refusal as the operation refuses; invalid_token, token_expired */
  goOn<Name extends keyof MerchantApi>(name: Name, body: JsonObject): Promise<ReplyOf<Name>>;
  /**
   * Before money leaves: the user types the password again. It counts for this one form, so that nothing is left to whoever has the session later.
   * @throws Refusal invalid_credentials, rate_limited, overloaded; invalid_token, token_expired: the session has ended meanwhile
   */
  confirm(form: Form): Promise<void>;
};

export type Page = {
  /** With `:id` where a part of it names something. */
  readonly path: `/${string}`;
  /** Its place in the navigation. */
  readonly under: string;
  readonly show: (visit: Visit, refused: Refused | null) => Promise<Shown>;
  /** What its forms do, by their field `do`; each returns the path of the page to show then, or a page that is shown only now. */
  readonly acts?: Readonly<Record<string, (visit: Visit, form: Form) => Promise<string | Shown>>>;
};

/** Makes the visit of a session. @param call the request with what answers it @param of.again reads the session once more */
export function createVisit(
  call: {
    readonly context: ServerContext;
    readonly request: FastifyRequest;
    readonly reply: FastifyReply;
    readonly base: string;
  },
  operations: Operations,
  { session: first, again }: { readonly session: PortalSession; readonly again: () => Promise<PortalSession> },
): Visit {
  const { context, request, reply } = call;
  let session = first;
  return {
    context,
    request,
    base: call.base,
    id: (request.params as { readonly id?: string }).id ?? '',
    get session() {
      return session;
    },
    has: (scope) => session.caller.scopes.has(scope),
    ask: async (name, body = {}) => replyOf(await operations[name]({ request, reply, caller: session.caller }, body)),
    async goOn(name, body) {
      session = await again();
      return replyOf(await operations[name]({ request, reply, caller: session.caller, isContinued: true }, body));
    },
    async confirm(form) {
      const asked = { username: session.username, password: form.get('password') ?? '' };
      try {
        await signOutAgain(context.ctx, await accessTokenFor(operations, call, asked));
      } catch (error) {
        if (!(error instanceof Refusal) || error.code !== 'invalid_credentials') throw error;
        throw new Refusal('invalid_credentials', { message: 'The password is incorrect.', param: 'password' });
      }
      // comparing it takes its time, in which somebody may have ended the session or taken scopes away
      session = await again();
    },
  };
}

/** Signs in as `/auth` does; the token stays in this process. @throws Refusal as `/auth` refuses */
export async function accessTokenFor(
  operations: Operations,
  { request, reply }: { readonly request: FastifyRequest; readonly reply: FastifyReply },
  credentials: { readonly username: string; readonly password: string },
): Promise<string> {
  const pair: ReplyOf<'auth'> = replyOf(await operations.auth({ request, reply, caller: null }, credentials));
  return pair.access_token;
}

function replyOf<Reply>({ httpStatus, text }: { readonly httpStatus: number; readonly text: string }): Reply {
  const reply = JSON.parse(text);
  if (httpStatus === 200) return reply;
  const { error, message, param } = reply as { error: RefusalCode; message: string; param?: string };
  throw new Refusal(error, { message, ...(param === undefined ? {} : { param }) });
}
