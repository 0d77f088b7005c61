// What an operation is for the HTTP server: a row of the endpoint table with its handler, and the call that the handler gets.
import type { ServerResponse } from 'node:http';
import type { FastifyRequest } from 'fastify';
import type { Access, Endpoint } from '../contract/endpoint.ts';
import type { BodyOf } from '../contract/fields.ts';
import type { MerchantApi } from '../contract/merchant-api.ts';
import type { TypeOf } from '../contract/shapes.ts';
import type { Context } from '../flow/context.ts';
import type { PreparedInvoice } from '../flow/lightning/invoices.ts';
import type { Caller } from '../flow/sign-in/sign-in.ts';
import type { ServerContext } from './server-context.ts';

/** What a handler may need besides its fields. */
export type OpenCall = {
  /** Inside the open database transaction when the call has a key. */
  readonly ctx: Context;
  readonly context: ServerContext;
  readonly request: FastifyRequest;
};
export type SignedInCall = OpenCall & {
  readonly caller: Caller;
  /** What was done outside before the database transaction of a call with a key was opened; null when nothing was. */
  readonly prepared: Prepared | null;
};
export type StreamCall = SignedInCall & {
  readonly token: string;
  /** Writes the head of the answer: after it nothing can be refused. */
  readonly begin: (headers: Readonly<Record<string, string>>) => ServerResponse;
};
export type Prepared = {
  /** Of a transaction over Lightning. */
  readonly invoice?: PreparedInvoice;
  /** What the destination of a payout over Lightning was asked for (BOLT11). */
  readonly paymentRequest?: string;
};
/**
 * Does what an operation must do outside before the database transaction of a call with a key is opened. Not done for a call that has its
 * answer; it may be done again for one whose answer was lost.
 */
export type Preparation = (
  ctx: Context,
  of: { readonly merchantId: bigint; readonly operation: string; readonly key: string; readonly bodyHash: Buffer },
  fields: Fields,
) => Promise<Prepared | null>;
export type Fields = Record<string, unknown>;

type TypedHandler<E extends Endpoint> = (
  call: E['access'] extends { readonly kind: 'open' } ? OpenCall : SignedInCall,
  fields: BodyOf<E['fields']>,
) => Promise<TypeOf<E['reply']>>;
/**
 * What a write must ask the outside before its database transaction begins: a refusal counts only where the answer is not a stored one.
 */
export type Asks = {
  readonly [K in keyof MerchantApi]?: (call: SignedInCall, fields: BodyOf<MerchantApi[K]['fields']>) => Promise<void>;
};
/**
 * What the answer of a write waits for after its effect is committed, and of a stored answer too. It must not throw: the effect is there.
 */
export type Afters = { readonly [K in keyof MerchantApi]?: (ctx: Context) => Promise<void> };
/** One handler for each row: a missing one does not compile. */
export type MerchantHandlers = { readonly [K in keyof MerchantApi]: TypedHandler<MerchantApi[K]> };

/** A row of the table with its handler: the access says which call the handler gets. */
export type Operation = { readonly endpoint: Endpoint } & (
  | { readonly kind: 'open'; readonly handler: (call: OpenCall, fields: Fields) => Promise<unknown> }
  | {
      readonly kind: 'token';
      readonly access: TokenAccess;
      readonly handler: (call: SignedInCall, fields: Fields) => Promise<unknown>;
      readonly ask: ((call: SignedInCall, fields: Fields) => Promise<void>) | undefined;
      readonly prepare: Preparation | undefined;
      readonly after: ((ctx: Context) => Promise<void>) | undefined;
    }
  | {
      readonly kind: 'stream';
      readonly access: TokenAccess;
      /** Writes the answer itself, once it calls `begin` for its head. */
      readonly open: (call: StreamCall, fields: Fields) => Promise<void>;
    }
);
export type OperationOf<K extends Operation['kind']> = Extract<Operation, { kind: K }>;
export type TokenAccess = Extract<Access, { kind: 'token' }>;
