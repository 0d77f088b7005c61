// How the price feeds use HTTP: one GET, one bounded JSON answer with every number as the text it was written in.
import { Agent, request } from 'undici';
import type { CurrencyCode } from '../../core/currency.ts';
import type { Clock } from '../../core/ports.ts';
import { parseRate, type Rate } from '../../core/rate.ts';
import type { RateSample } from '../../core/rate-feed.ts';
import { parseNumbersAsText } from '../exact-json.ts';

const MOST_BYTES = 64 * 1024;
const MOST_CACHED_SECONDS = 86_400;

/** JSON whose numbers are strings. */
export type Json = null | boolean | string | readonly Json[] | { readonly [key: string]: Json };
/** A parsed answer, and for how long a cache on the way had kept it. */
export type JsonAnswer = { readonly body: Json; readonly cachedMs: number };
export type GetJson = (path: string, signal: AbortSignal) => Promise<JsonAnswer>;

/**
 * Makes the reader of one exchange. It keeps connections alive, follows no redirect, and throws for any status but 200, for more than 64
 * KiB, for anything that is not JSON, and when the signal aborts.
 * @param baseUrl scheme, host and an optional path before the exchange's own paths
 */
export function jsonReader(baseUrl: string): GetJson {
  const base = baseUrl.replace(/\/+$/, '');
  const agent = new Agent({ connections: 8, connect: { timeout: 5000 }, keepAliveTimeout: 30_000, maxResponseSize: MOST_BYTES });
  const { host } = new URL(base);
  return async (path, signal) => {
    const headers = { accept: 'application/json', 'user-agent': 'bursar' };
    const answer = await request(base + path, { dispatcher: agent, signal, headers }).catch((cause: Error) => {
      throw new Error(`${host}: ${reasonOf(cause)}`, { cause });
    });
    if (answer.statusCode !== 200) {
      await answer.body.dump();
      throw new Error(`${base}${path} answered ${answer.statusCode}, expected 200`);
    }
    const age = answer.headers.age;
    const text = await answer.body.text();
    return { body: parseNumbersAsText(text) as Json, cachedMs: cachedSeconds(age) * 1000 };
  };
}

/** Why there was no answer, in a few words. */
function reasonOf({ name, message, code, errors }: Error & { code?: string; errors?: readonly { code?: string }[] }): string {
  if (name === 'TimeoutError') return 'no answer in time';
  return code ?? errors?.[0]?.code ?? message;
}

function cachedSeconds(header: string | string[] | undefined): number {
  return typeof header === 'string' && /^\d{1,9}$/.test(header) ? Math.min(Number(header), MOST_CACHED_SECONDS) : 0;
}

/** The parameters of every feed. */
export type FeedOptions = {
  readonly clock: Clock;
  /** A signal that aborts when the whole of one reading has taken too long. */
  readonly deadline: () => AbortSignal;
};

/** Asks for each currency separately, all at once; one that fails is left out, and when all fail the first failure is thrown. */
export async function readEach(
  codes: readonly CurrencyCode[],
  signal: AbortSignal,
  ask: (code: CurrencyCode, signal: AbortSignal) => Promise<readonly RateSample[]>,
): Promise<readonly RateSample[]> {
  const answers = await Promise.allSettled(codes.map((code) => ask(code, signal)));
  const failed = answers.filter((one) => one.status === 'rejected');
  if (failed.length === answers.length && failed[0] !== undefined) throw failed[0].reason;
  return answers.flatMap((one) => (one.status === 'fulfilled' ? one.value : []));
}

/** An object's own member; null when there is none or it is no object. */
export function member(json: Json, key: string): Json {
  if (json === null || typeof json !== 'object' || Array.isArray(json) || !Object.hasOwn(json, key)) return null;
  return (json as { readonly [key: string]: Json })[key] ?? null;
}

/** An element of an array; null when there is none or it is no array. */
export function element(json: Json, index: number): Json {
  return Array.isArray(json) ? ((json as readonly Json[])[index] ?? null) : null;
}

/**
 * A price in units of 10⁻⁸ USD, cut after the eighth decimal; an exponent is accepted. Null when it is no positive number below 10¹⁵.
 * @param json a string or a number, which are both text here
 */
export function price(json: Json): Rate | null {
  if (typeof json !== 'string') return null;
  const parts = /^(\d{1,40})(?:\.(\d{1,40}))?(?:[eE]([+-]?\d{1,2}))?$/.exec(json);
  if (parts === null) return null;
  const [, whole = '', fraction = '', exponent = '0'] = parts;
  const shift = Number(exponent);
  const digits = '0'.repeat(Math.max(0, -shift)) + whole + fraction + '0'.repeat(Math.max(0, shift));
  const point = whole.length + Math.abs(shift) + Math.min(0, shift);
  const before = digits.slice(0, point).replace(/^0+(?=\d)/, '') || '0';
  return parseRate(`${before}.${digits.slice(point, point + 8).padEnd(1, '0')}`);
}
