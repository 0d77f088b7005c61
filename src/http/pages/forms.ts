// Forms of pages: what a browser sends, and whether one of our own pages made it send that.
import { isUtf8 } from 'node:buffer';
import { timingSafeEqual } from 'node:crypto';
import type { FastifyRequest } from 'fastify';
import { Refusal } from '../../core/refusal.ts';
import { hasEnded } from '../raw-answer.ts';
import { readBytes } from '../read-body.ts';
import type { ServerContext } from '../server-context.ts';

/** The fields of a form; of several with one name the first counts. */
export type Form = Pick<URLSearchParams, 'get'>;

const FORM_TYPE = /^application\/x-www-form-urlencoded[ \t]*(;|$)/i;

/**
 * The form that was sent (WHATWG URL §5.1); null when the client went away first.
 * @throws Refusal payload_too_large, unsupported_media_type, invalid_request
 */
async function readForm({ raw }: FastifyRequest): Promise<Form | null> {
  const read = await readBytes(raw);
  if (hasEnded(raw.socket)) return null;
  if (read instanceof Refusal) throw read;
  if (!FORM_TYPE.test(raw.headers['content-type'] ?? ''))
    throw new Refusal('unsupported_media_type', {
      message: 'A page takes application/x-www-form-urlencoded, as browsers send forms.',
    });
  if (!isUtf8(read)) throw new Refusal('invalid_request', { message: 'The form is not valid UTF-8.' });
  return new URLSearchParams(read.toString('utf8'));
}

/** What was typed, without white space around it; undefined where nothing was. */
export function typed(form: Form, name: string): string | undefined {
  const text = form.get(name)?.trim();
  return text === '' || text === undefined ? undefined : text;
}

/**
 * Whether a page of ours made the browser send this: by Fetch Metadata, else by Origin (RFC 6454). A program that is no browser sends neither; it has
 * no cookie that somebody else could make it use.
 */
function isFromOurPage({ headers, host }: FastifyRequest, publicUrl: string | null): boolean {
  const { 'sec-fetch-site': site, origin } = headers;
  if (site !== undefined) return site === 'same-origin';
  if (origin === undefined) return true;
  if (publicUrl !== null && origin === new URL(publicUrl).origin) return true;
  return URL.canParse(origin) && new URL(origin).host === host;
}

/**
 * A form that a page of ours has sent; null when the client went away first.
 * @throws Refusal invalid_request (another site's, or no UTF-8), payload_too_large, unsupported_media_type
 */
export async function readOwnForm({
  context,
  request,
}: {
  readonly context: ServerContext;
  readonly request: FastifyRequest;
}): Promise<Form | null> {
  const form = await readForm(request);
  if (form !== null && !isFromOurPage(request, context.publicUrl))
    throw new Refusal('invalid_request', { message: 'This form was sent by another site: nothing was done.' });
  return form;
}

/** @throws Refusal invalid_request: the form is of another session, or of none */
export function checkFormToken(form: Form, { formToken }: { readonly formToken: string }): void {
  const [sent, own] = [Buffer.from(form.get('form_token') ?? ''), Buffer.from(formToken)];
  if (sent.length !== own.length || !timingSafeEqual(sent, own))
    throw new Refusal('invalid_request', { message: 'This page was of another session: nothing was done. Open it again.' });
}
