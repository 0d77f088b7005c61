// What keeps merchants' endpoints from getting their events, in words, for /readyz: their secrets cannot be opened, or they do not take anything.
import { openText } from '../../core/sealed-text.ts';
import { type FailingEndpoint, failingEndpoints, MOST_COUNTED } from '../../store/deliveries/failing.ts';
import { newestSecrets } from '../../store/deliveries/webhooks.ts';
import type { Context } from '../context.ts';

const SECRETS_LOOKED_AT = 100;
const FAILING_NAMED = 5;
/** An event that has waited this long has had three failed attempts, so its endpoint is not just busy for a moment. */
const FAILING_AFTER_MS = 30 * 60_000;

/** Sentences without a full stop, none while all is well. What a merchant's URL or its server says is left out: anybody reads this. */
export async function webhookProblems(ctx: Context): Promise<readonly string[]> {
  const beforeMs = ctx.ports.clock.now() - FAILING_AFTER_MS;
  const [unreadable, failing] = await Promise.all([
    unreadableSecrets(ctx),
    failingEndpoints(ctx.db, { beforeMs, limit: FAILING_NAMED + 1 }),
  ]);
  const named = failing.slice(0, FAILING_NAMED).map(describeFailing);
  const more = failing.length > FAILING_NAMED ? ['more webhooks fail: see bursar webhook list --failing'] : [];
  return [...unreadable, ...named, ...more];
}

/** Whether our key opens the secrets of the newest endpoints. */
async function unreadableSecrets(ctx: Context): Promise<readonly string[]> {
  const unreadable = (await newestSecrets(ctx.db, SECRETS_LOOKED_AT)).filter(({ id, secret }) => {
    try {
      openText(ctx.ports.webhookSealing, secret, id);
      return false;
    } catch {
      return true;
    }
  });
  if (unreadable.length === 0) return [];
  const first = unreadable[0]?.id;
  return [
    `${unreadable.length} of the newest ${SECRETS_LOOKED_AT} webhooks get nothing (${first} …): their secrets cannot be opened with this key; put back the one of before (BURSAR_WEBHOOK_KEY, or webhook-key in the data folder), or replace the secrets with /rotate_webhook_secret`,
  ];
}

function describeFailing({ id, waiting, oldestAtMs, last }: FailingEndpoint): string {
  const count =
    waiting >= MOST_COUNTED ? `at least ${MOST_COUNTED} events wait` : waiting === 1 ? '1 event waits' : `${waiting} events wait`;
  const since = new Date(oldestAtMs).toISOString();
  // the name of the failure; what follows it may tell addresses
  const answer = last.status === null ? last.error?.split(':')[0] : `status ${last.status}`;
  return `webhook ${id} takes nothing (${answer} at ${new Date(last.atMs).toISOString()}): ${count} for it since ${since}; see bursar webhook show ${id}`;
}
