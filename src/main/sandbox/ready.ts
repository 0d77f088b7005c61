// Whether the sandbox's nodes and exchanges were asked once and there are keys to receive with. The sandbox's API is ready only then, so
// that the first payment after `ready` finds everything working. Only in the sandbox: real nodes may take days.
import { setTimeout as delay } from 'node:timers/promises';
import { LIGHTNING } from '../../core/currencies/lightning.ts';
import { CURRENCY_CODES } from '../../core/currency.ts';
import type { Context } from '../../flow/context.ts';
import { getRates } from '../../flow/transactions/quote.ts';
import { receivingCurrencies } from '../../store/chain/address-ranges.ts';
import { readChainStatus } from '../../store/chain/node-conditions.ts';
import { wakeJobs } from '../../store/transactions/due.ts';
import { rateChecks } from '../../store/transactions/rates.ts';
import { type SandboxEndpoint, untilSandboxAnswers } from './paths.ts';

const LOOK_EVERY_MS = 20;
const CHAINS = [...CURRENCY_CODES, LIGHTNING.code];
/** The jobs of the worker that look at them. */
const LOOKING = CHAINS.map((code) => `chain ${code}`);

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
  await wakeJobs(ctx.db, LOOKING);
  // asked in turn: what a question costs is taken from the processes that are starting
  for (const is of [areLookedAt, arePriced, haveKeys])
    while (performance.now() < until && !(await is(ctx, sinceMs))) await delay(LOOK_EVERY_MS);
}

async function areLookedAt(ctx: Context, sinceMs: number): Promise<boolean> {
  const looked = new Map<string, number>(
    (await readChainStatus(ctx.db)).map(({ currency, checkedAtMs }) => [currency, checkedAtMs]),
  );
  return CHAINS.every((code) => (looked.get(code) ?? 0) >= sinceMs);
}

async function arePriced(ctx: Context, sinceMs: number): Promise<boolean> {
  const [rates, asked] = await Promise.all([getRates(ctx), rateChecks(ctx.db)]);
  return CURRENCY_CODES.every((currency) => rates[currency] !== undefined || (asked.get(currency) ?? 0) >= sinceMs);
}

async function haveKeys(ctx: Context): Promise<boolean> {
  const receiving = await receivingCurrencies(ctx.db);
  return CURRENCY_CODES.every((currency) => receiving.has(currency));
}
