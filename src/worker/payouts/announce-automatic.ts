// Automatic payouts as far as a worker knows them: it looks whether any are due, and tells the API processes, which request them.
import type { Context } from '../../flow/context.ts';
import { announceDue } from '../../store/payouts/settings.ts';
import type { Job } from '../loop.ts';

/** The name of the job that looks whether a credit has made automatic payouts due. */
export const CREDITED_JOB = 'credited';

/** Tells the API processes when any are due. */
export async function announceAutomatic(ctx: Context): Promise<boolean> {
  await announceDue(ctx.db, ctx.ports.clock.now());
  return false;
}

/** Runs when it is woken: the judge does so when it has decided something. */
export function createCredited(ctx: Context): Job {
  return { name: CREDITED_JOB, everyMs: null, urgent: false, run: () => announceAutomatic(ctx) };
}
