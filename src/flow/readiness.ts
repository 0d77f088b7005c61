// Whether the API may be called, the state of each node and price source, what a red audit has stopped, and what is wrong in plain words:
// for /readyz, the start and `bursar chain status`.
import { LIGHTNING } from '../core/currencies/lightning.ts';
import { balanceOf, type CurrencyCode, type PaymentMethod } from '../core/currency.ts';
import { readSetAside } from '../store/ach/files.ts';
import { troubledAchFiles } from '../store/ach/hand-overs.ts';
import { receivingCurrencies } from '../store/chain/address-ranges.ts';
import { type ChainStatus, LOOKED_RECENTLY_MS, readAbandoned, readChainStatus } from '../store/chain/node-conditions.ts';
import { describeSkipped, readSignerStatus, readSkipped, type SignerStatus } from '../store/chain/signer-status.ts';
import { type EventWriter, longEventWriters } from '../store/deliveries/event-tail.ts';
import { deniedBalances } from '../store/ledger/balance-audit.ts';
import { type Breaker, openBreakers } from '../store/ledger/breakers.ts';
import { openMovements } from '../store/payouts/unknown-movements.ts';
import { type WaitingPayout, waitingForOperator } from '../store/payouts/waiting-for-operator.ts';
import { describeReplacement, readReplacements } from '../store/postgres/database-replacements.ts';
import { takesWrites } from '../store/postgres/server.ts';
import { type LatestRate, type RateSourceStatus, readRateSources } from '../store/transactions/rates.ts';
import { readUndecided, type UndecidedTransaction } from '../store/transactions/undecided-transactions.ts';
import { type Context, watchedCodes } from './context.ts';
import { webhookProblems } from './events/webhook-problems.ts';
import { getRates } from './transactions/quote.ts';

export type Readiness = {
  /** The condition of every chain that a watcher has read. */
  readonly chains: readonly ChainStatus[];
  /** Without a node in this configuration, and transactions of theirs are open. */
  readonly abandoned: readonly PaymentMethod[];
  readonly breakers: readonly Breaker[];
  /** Prices at most 5 min old. */
  readonly rates: Partial<Record<string, LatestRate>>;
  readonly rateSources: readonly RateSourceStatus[];
  readonly signer: SignerStatus;
  /** What makes a currency with a node unavailable, or stops payouts; one sentence each, without a full stop. */
  readonly problems: readonly string[];
  /** Why calling the API is useless at the moment; null when it may be called. */
  readonly blocked: string | null;
};

/** How many of the transactions that cannot be decided are named. */
const UNDECIDED_NAMED = 5;
/** How many payouts that wait for a person are named. */
const WAITING_NAMED = 5;
/** How many database transactions that hold up the streams of events are named, and from which age on. */
const EVENT_WRITERS = { longerThanMs: 10_000, limit: 3 };
const SKIPPED_TOLD_DAYS = 7;
const REPLACED_TOLD_HOURS = 24;
const READ_ONLY = 'the database takes no writes: it is read-only, or a standby';
const KEY_WANTED = 'make the seed with "bursar keys init", or receive to a key kept elsewhere with "bursar keys import-xpub"';

/**
 * Throws when the database cannot be reached or is not migrated. A node that is down, or a breaker that is open, leaves the API ready.
 * @param configured the currencies with a node that are asked for
 */
export async function readReadiness(ctx: Context, configured: readonly PaymentMethod[]): Promise<Readiness> {
  const found = await together({
    writes: takesWrites(ctx.db),
    chains: readChainStatus(ctx.db),
    abandoned: readAbandoned(ctx.db, watchedCodes(ctx)),
    breakers: openBreakers(ctx.db),
    rates: getRates(ctx),
    rateSources: readRateSources(ctx.db),
    receiving: receivingCurrencies(ctx.db),
    signer: readSignerStatus(ctx.db),
    skipped: readSkipped(ctx.db, SKIPPED_TOLD_DAYS),
    undecided: readUndecided(ctx.db, UNDECIDED_NAMED + 1),
    replaced: readReplacements(ctx.db, REPLACED_TOLD_HOURS),
    unknown: openMovements(ctx.db),
    bankReports: readSetAside(ctx.db),
    bankFiles: troubledAchFiles(ctx.db),
    waiting: waitingForOperator(ctx.db, { limit: WAITING_NAMED + 1, nowMs: ctx.ports.clock.now() }),
    writers: longEventWriters(ctx.db, EVENT_WRITERS),
    denied: deniedBalances(ctx.db),
  });
  const { chains, abandoned, breakers, rates, rateSources, receiving, signer } = found;
  // an invoice needs no key of ours
  const keyless = configured.filter((code) => code !== LIGHTNING.code && !receiving.has(code));
  const blocked = found.writes ? blockage(ctx, configured, { chains, receiving }) : READ_ONLY;
  const problems = [
    ...(blocked === null ? [] : [blocked]),
    ...(keyless.length > 0 && (blocked === null || receiving.size > 0)
      ? [`there is no key to receive ${keyless.join(', ')} with: ${KEY_WANTED}`]
      : []),
    ...(receiving.size === 0 ? [] : signerProblems(signer)),
    ...found.replaced.map(describeReplacement),
    ...found.skipped.filter(({ currency }) => configured.includes(currency)).map(describeSkipped),
    ...chainProblems(configured, chains),
    ...abandoned.map((code) => `${code}: transactions are open, and no node is configured: nobody sees their payments`),
    ...rateProblems(configured, rates, rateSources),
    ...breakers.map(({ name, trippedBy }) => `${name} are stopped by a red audit (${trippedBy.join(', ')}): see bursar audit`),
    ...found.unknown.map(({ currency, finding }) => `${currency}: ${finding} (bursar payout recover)`),
    ...found.denied,
    ...found.bankReports,
    ...found.bankFiles,
    ...waitingProblems(found.waiting),
    ...undecidedProblems(found.undecided),
    ...found.writers.map(describeWriter),
  ];
  return { chains, abandoned, breakers, rates, rateSources, signer, problems, blocked };
}

/** The same of all that is configured, with what keeps events from merchants: what `/readyz` and the console say. */
export async function readWholeReadiness(ctx: Context): Promise<Readiness> {
  const [readiness, ofWebhooks] = await Promise.all([readReadiness(ctx, watchedCodes(ctx)), webhookProblems(ctx)]);
  return { ...readiness, problems: [...readiness.problems, ...ofWebhooks] };
}

/** The results of what was asked at once, by the names of the questions. */
async function together<Asked extends Readonly<Record<string, Promise<unknown>>>>(
  asked: Asked,
): Promise<{ readonly [Name in keyof Asked]: Awaited<Asked[Name]> }> {
  const results = await Promise.all(Object.values(asked));
  return Object.fromEntries(Object.keys(asked).map((name, n) => [name, results[n]])) as {
    [Name in keyof Asked]: Awaited<Asked[Name]>;
  };
}

function signerProblems({ runs, waiting, waitingSinceMs }: SignerStatus): string[] {
  const without = waiting.length === 0 ? '' : `, and ${waiting.join(', ')} wait for new ones`;
  if (!runs)
    return [`no signer runs: only addresses that are ready already are given out${without}; start one with "bursar signer"`];
  if (waitingSinceMs === null) return [];
  return [
    `the signer does not answer: ${waiting.join(', ')} have waited for new addresses since ${new Date(waitingSinceMs).toISOString()}`,
  ];
}

/** On networks where the currencies are worth money, the API is not ready as long as there is no key to receive with. */
function blockage(
  { network }: Context,
  configured: readonly PaymentMethod[],
  { chains, receiving }: { chains: readonly ChainStatus[]; receiving: ReadonlySet<CurrencyCode> },
): string | null {
  if (network !== 'mainnet') return null;
  if (receiving.size === 0) return `there is no key to receive with: ${KEY_WANTED}`;
  const foreign = chains.filter(({ currency, state }) => configured.includes(currency) && state === 'wrong_network');
  if (foreign.length === 0 || foreign.length < configured.length) return null;
  return `every node is on another network: ${foreign.map(({ reason }) => reason).join('; ')}`;
}

function chainProblems(configured: readonly PaymentMethod[], chains: readonly ChainStatus[]): string[] {
  return configured.flatMap((code) => {
    const chain = chains.find(({ currency }) => currency === code);
    if (chain === undefined) return [`${code}: no worker has looked at its node yet`];
    if (chain.lookedAgoMs > LOOKED_RECENTLY_MS) {
      return [`${code}: no worker has looked at its node since ${new Date(chain.checkedAtMs).toISOString()}`];
    }
    const { state, reason, contested, others } = chain;
    const all = [state === 'ready' ? reason : `the node is ${state}: ${reason}`, contested, ...others];
    return all.filter((one) => one !== null).map((one) => `${code}: ${one}`);
  });
}

function rateProblems(
  configured: readonly PaymentMethod[],
  rates: Readiness['rates'],
  sources: readonly RateSourceStatus[],
): string[] {
  const without = configured.filter((code) => rates[balanceOf(code)] === undefined);
  const answering = sources.filter(({ state }) => state !== 'unreachable');
  if (sources.length > 0 && answering.length === 0) {
    const reasons = sources.map(({ source, reason }) => `${source}: ${reason}`).join('; ');
    return [`no price source can be reached (${reasons}): see BURSAR_RATE_SOURCES`];
  }
  if (without.length === 0) return [];
  return [sources.length === 0 ? 'no worker has asked for prices yet' : `there is no price for ${without.join(', ')}`];
}

function undecidedProblems(undecided: readonly UndecidedTransaction[]): string[] {
  const named = undecided.slice(0, UNDECIDED_NAMED).map(({ transactionId, failures, reason, sinceMs }) => {
    const often = failures === 1 ? 'once' : `${failures} times`;
    return `transaction ${transactionId} could not be decided (${often} since ${new Date(sinceMs).toISOString()}): ${reason}`;
  });
  return undecided.length > UNDECIDED_NAMED ? [...named, 'more transactions could not be decided: see the log'] : named;
}

function waitingProblems(waiting: readonly WaitingPayout[]): string[] {
  const named = waiting.slice(0, WAITING_NAMED).map(({ id, why }) => `payout ${id} ${why}`);
  return waiting.length > WAITING_NAMED ? [...named, 'more payouts wait for a person: see bursar payout list'] : named;
}

function describeWriter({ pid, program, sinceMs }: EventWriter): string {
  const who = pid === null ? 'prepared for a commit in two phases' : `process ${pid} of PostgreSQL, ${program}`;
  const since = new Date(sinceMs).toISOString();
  return `a database transaction that writes events has not ended since ${since} (${who}): no stream of events tells what was written since`;
}
