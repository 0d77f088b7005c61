// Whether the sandbox's world is complete: nodes read, prices known, keys to receive with. The API opens its door when it is, so that the
// first payment after `ready` finds everything. Called by src/main/api.ts, in the sandbox only: real nodes may take days.
import { setTimeout as delay } from 'node:timers/promises';
import { WATCHED_CODES } from '../core/currency.ts';
import type { Context } from '../flow/context.ts';
import { getRates } from '../flow/rates.ts';
import { readReadiness } from '../flow/readiness.ts';
import { usableKey } from '../store/address-ranges.ts';

const LOOK_EVERY_MS = 15;

/** Resolves when everything was seen to work since the call, or when the time is up (a node may be switched off by a control). */
export async function untilWorldIsComplete(ctx: Context, withinMs: number): Promise<void> {
  const until = performance.now() + withinMs;
  const sinceMs = ctx.ports.clock.now();
  while (performance.now() < until && !(await isComplete(ctx, sinceMs))) await delay(LOOK_EVERY_MS);
}

async function isComplete(ctx: Context, sinceMs: number): Promise<boolean> {
  const [chains, rates, keys] = await Promise.all([
    readReadiness(ctx),
    getRates(ctx),
    Promise.all(WATCHED_CODES.map((currency) => usableKey(ctx.db, currency))),
  ]);
  const seen = chains
    .filter(({ state, checkedAtMs }) => state === 'ready' && checkedAtMs >= sinceMs)
    .map(({ currency }) => currency);
  return WATCHED_CODES.every((currency, n) => seen.includes(currency) && rates[currency] !== undefined && keys[n] !== null);
}
