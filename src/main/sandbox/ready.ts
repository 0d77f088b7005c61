// Whether the sandbox's nodes and exchanges were asked once and there are keys to receive with. The sandbox's API is ready only then, so
// that the first payment after `ready` finds everything working. Only in the sandbox: real nodes may take days.
import { setTimeout as delay } from 'node:timers/promises';
import { LIGHTNING } from '../../core/currencies/lightning.ts';
import { CURRENCY_CODES } from '../../core/currency.ts';
import type { Context } from '../../flow/context.ts';
import { readReadiness } from '../../flow/readiness.ts';
import { getRates } from '../../flow/transactions/quote.ts';
import { usableKey } from '../../store/chain/address-ranges.ts';
import { wakeJobs } from '../../store/transactions/due.ts';
import { rateChecks } from '../../store/transactions/rates.ts';
import { type SandboxEndpoint, untilSandboxAnswers } from './paths.ts';

const LOOK_EVERY_MS = 15;

/**
 * Resolves when every chain was looked at since the sandbox answers, and every price is known or was asked for, whatever the result: a node
 * or an exchange that a control has switched off delays nothing. At the latest when the time is up.
 */
export async function untilSandboxIsReady(
  ctx: Context,
  endpoint: () => Promise<SandboxEndpoint>,
  withinMs: number,
): Promise<void> {
  const until = performance.now() + withinMs;
  // what failed before the sandbox answered says nothing about its nodes
  await untilSandboxAnswers(endpoint, withinMs);
  const sinceMs = ctx.ports.clock.now();
  await wakeJobs(ctx.db);
  while (performance.now() < until && !(await isReady(ctx, sinceMs))) await delay(LOOK_EVERY_MS);
}

async function isReady(ctx: Context, sinceMs: number): Promise<boolean> {
  const [{ chains }, rates, asked, keys] = await Promise.all([
    readReadiness(ctx, CURRENCY_CODES),
    getRates(ctx),
    rateChecks(ctx.db),
    Promise.all(CURRENCY_CODES.map((currency) => usableKey(ctx.db, currency))),
  ]);
  const looked = new Map<string, number>(chains.map(({ currency, checkedAtMs }) => [currency, checkedAtMs]));
  if ((looked.get(LIGHTNING.code) ?? 0) < sinceMs) return false;
  return CURRENCY_CODES.every((currency, n) => {
    const isPriceSeen = rates[currency] !== undefined || (asked.get(currency) ?? 0) >= sinceMs;
    return (looked.get(currency) ?? 0) >= sinceMs && isPriceSeen && keys[n] !== null;
  });
}
