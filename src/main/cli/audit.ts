// `bursar audit`: every invariant of the books, and the chains against the books; exit 1 when one is red. A red one stops payouts; --clear
// lets them go on after a green full audit.
import { userInfo } from 'node:os';
import type { Command } from 'commander';
import { CURRENCY_CODES, type CurrencyCode } from '../../core/currency.ts';
import { formatAmount } from '../../core/money.ts';
import { type AuditReport, clearAfterAudit, runAudit, tripIfRed } from '../../flow/audit.ts';
import type { Context } from '../../flow/context.ts';
import { readCursor } from '../../store/chain/blocks.ts';
import { acceptEarly, acknowledgeEarly } from '../../store/chain/early-payments.ts';
import { type ChainStatus, LOOKED_RECENTLY_MS, readChainStatus } from '../../store/chain/node-conditions.ts';
import { type Breaker, openBreakers } from '../../store/ledger/breakers.ts';
import { PUT_BACK } from '../../store/ledger/database-audit.ts';
import type { ChainTotals } from '../../store/ledger/reconciliation.ts';
import { acknowledgeReplacements } from '../../store/postgres/database-replacements.ts';
import { makeDue } from '../../store/postgres/schedules.ts';
import { wakeJobs } from '../../store/transactions/due.ts';
import { compareBalances } from '../../worker/rescan/address-balances.ts';
import { beginAgain, reconcile } from '../../worker/rescan/reconciler.ts';
import { settle } from '../sandbox/settle.ts';
import { CommandFailed, calledWrongly, EXIT, leaf, print, verdict, watchedCode } from './output.ts';
import { openProgress } from './progress.ts';
import { withBooks, withNodes } from './service-access.ts';

type Options = {
  readonly json?: boolean;
  readonly full?: boolean;
  readonly clear?: boolean;
  readonly acknowledge?: string;
  readonly isPayment?: string;
  readonly currency?: CurrencyCode;
};
type Audited = {
  readonly report: AuditReport;
  readonly breakers: readonly Breaker[];
  readonly cleared: number | null;
  readonly searched: boolean | null;
};

/** What `--acknowledge` is given where the database was put back. */
const DATABASE = 'database';
const LOOKS_WITHIN_MS = 3_000;
const SEARCH_WITHIN_MS = 10_000;

/** Adds `audit`. It ends with 1 when an invariant is red, or nobody has looked at a database that was put back; `--clear` implies a full audit, and clears nothing when that is red. */
export function addAuditCommands(bursar: Command): void {
  leaf(
    bursar,
    'audit',
    'Checks every invariant of the books and the chains against the books; exit code 1 when one is red, or a database was put back and nobody has looked.',
  )
    .option('--full', 'first reads the chains again from our first block on')
    .option('--currency <code>', `with --full: only the chain of one of ${CURRENCY_CODES.join(', ')}`, watchedCode)
    .option('--clear', 'after a green full audit: lets payouts continue that a red one has stopped')
    .option(
      '--acknowledge <what>',
      'records that an operator has looked: at an output that was at an address before its transaction (txid:vout), or at a database that was put back (database)',
    )
    .option(
      '--is-payment <outpoint>',
      'decides that what lay at an address before its transaction is a payment of it all the same (txid:vout)',
    )
    .action(async (options: Options) => {
      if (options.currency !== undefined && (options.full !== true || options.clear === true))
        throw calledWrongly('--currency goes with --full only: everything else covers all chains');
      const full = options.full === true || options.clear === true;
      const audited = await (full ? withNodes : withBooks)(async (ctx) => {
        if (options.acknowledge !== undefined) await acknowledge(ctx, options.acknowledge);
        if (options.isPayment !== undefined) await accept(ctx, options.isPayment);
        return audit(ctx, { ...options, full, clear: options.clear === true });
      });
      printAudit(options.json, audited);
      process.exitCode = audited.report.ok && !wasPutBack(audited.report) ? EXIT.done : EXIT.failed;
    });
}

/** Whoever runs it every night must learn of it. */
const wasPutBack = ({ pages }: AuditReport): boolean => pages.some(({ id, findings }) => id === PUT_BACK && findings.length > 0);

async function acknowledge(ctx: Context, what: string): Promise<void> {
  const at = new Date(ctx.ports.clock.now());
  const who = `operator ${userInfo().username}`;
  if (what === DATABASE) {
    await acknowledgeReplacements(ctx.db, who);
    return;
  }
  if (await acknowledgeEarly(ctx.db, what, who, at)) return;
  throw new CommandFailed(
    `--acknowledge: ${what} is not recorded; accepted is the txid:vout that the audit names, or ${DATABASE}`,
  );
}

async function accept(ctx: Context, outpoint: string): Promise<void> {
  const at = new Date(ctx.ports.clock.now());
  const accepted = await acceptEarly(ctx.db, outpoint, `operator ${userInfo().username}`, at);
  if (accepted === null)
    throw new CommandFailed(`--is-payment: ${outpoint} is not noted; accepted is the txid:vout that the audit names`);
  const { currency, transactionId, height } = accepted;
  const next =
    height === null
      ? 'the worker records it with its block'
      : `"bursar chain rescan --currency ${currency} --from ${height}" records it`;
  process.stderr.write(
    `${outpoint} is a payment of ${transactionId} from now on: ${next}, by the same rules as a payment that is found then.\n`,
  );
}

async function audit(ctx: Context, options: Options): Promise<Audited> {
  const searched = await searchOldAddresses(ctx);
  if (options.full === true) {
    const currencies = options.currency === undefined ? CURRENCY_CODES : [options.currency];
    for (const currency of currencies) await readAgain(ctx, currency, options.json === true);
    await compareAgain(ctx, currencies);
  }
  const report = await runAudit(ctx);
  await tripIfRed(ctx, report);
  const cleared = options.clear === true ? await clearAfterAudit(ctx, report, `operator ${userInfo().username}`) : null;
  return { report, breakers: await openBreakers(ctx.db), cleared, searched };
}

/**
 * Payments to an address too old for the watch list are found by the next audit at the latest: the workers search the blocks that came
 * since they last did, and judge what they find.
 * @returns whether every block that is recorded was searched; null when no worker runs that could
 */
async function searchOldAddresses(ctx: Context): Promise<boolean | null> {
  if (!(await isWatched(ctx))) return null;
  const deadline = performance.now() + SEARCH_WITHIN_MS;
  const left = () => deadline - performance.now();
  let recorded: readonly ChainStatus[] | null = null;
  while (left() > 0) {
    await makeDue(ctx.db, 'deep scan ');
    if (!(await settle(ctx, left()))) return false;
    const now = await readChainStatus(ctx.db);
    recorded ??= now;
    const heights = new Map(recorded.map(({ currency, height }) => [currency, height ?? 0]));
    // a search that began before the newest block was recorded, or that was interrupted, ends without it
    const isSearched = ({ currency, height, deepHeight }: ChainStatus): boolean =>
      (deepHeight ?? 0) >= Math.min(height ?? 0, heights.get(currency) ?? 0);
    const unsearched = now.filter((chain) => !isSearched(chain));
    if (unsearched.length === 0) return true;
    if (unsearched.every(({ state }) => state !== 'ready')) return false;
  }
  return false;
}

/** Whether a worker runs: a hurried one looks at its nodes at once. */
async function isWatched(ctx: Context): Promise<boolean> {
  const askedMs = ctx.ports.clock.now();
  const looks = () => readChainStatus(ctx.db);
  if (!(await looks()).some((chain) => chain.lookedAgoMs <= LOOKED_RECENTLY_MS)) return false;
  for (const deadline = performance.now() + LOOKS_WITHIN_MS; performance.now() < deadline; ) {
    await wakeJobs(ctx.db);
    await new Promise((resolve) => setTimeout(resolve, 50));
    if ((await looks()).some((chain) => chain.checkedAtMs >= askedMs)) return true;
  }
  return false;
}

/** The second reading of a chain, all of it. */
async function readAgain(ctx: Context, currency: CurrencyCode, isQuiet: boolean): Promise<void> {
  const cursor = await readCursor(ctx.db, currency);
  if (cursor === null) return;
  let progress: ((height: number) => void) | null = null;
  try {
    await beginAgain(ctx, currency);
    for (let stuck = 0, at = -1; ; ) {
      const { trouble, more, height } = await reconcile(ctx, currency);
      if (trouble === null && !more) return;
      if (height !== null) {
        progress ??= openProgress(`reading ${currency} again`, { from: height, to: cursor.height }, isQuiet);
        progress(height);
      }
      // a worker that reads the same blocks at the same time is not an error
      stuck = height === at ? stuck + 1 : 0;
      at = height ?? -1;
      if (stuck > 20) throw new CommandFailed(`the chain of ${currency} cannot be read again: ${trouble ?? 'it does not move'}`);
    }
  } catch (error) {
    if (error instanceof Error && error.name === 'NodeTrouble')
      throw new CommandFailed(`the chain of ${currency} cannot be read again: ${error.message}`);
    throw error;
  }
}

/** What our addresses hold is compared hourly otherwise: what was booked since would stay red until then. */
async function compareAgain(ctx: Context, currencies: readonly CurrencyCode[]): Promise<void> {
  const unread = await compareBalances(
    ctx,
    currencies.filter((currency) => ctx.ports.chains.has(currency)),
  );
  if (unread !== null) process.stderr.write(`Balances were not compared, what was compared before stands: ${unread}\n`);
}

function printAudit(json: boolean | undefined, { report, breakers, cleared, searched }: Audited): void {
  const { answers, pages, chains, ok, atMs } = report;
  const red = answers.filter((answer) => answer.findings.length > 0);
  const lines = [...answers, ...pages].flatMap(({ id, says, findings, more }, at) => [
    `${verdict(findings.length === 0, findings.length === 0 ? 'green' : at < answers.length ? 'red  ' : 'look ')}  ${id.padEnd(8)} ${says}`,
    ...findings.map((finding) => `         ${finding}`),
    ...(more ? ['         and more'] : []),
  ]);
  const summary = ok
    ? `All ${answers.length} invariants are green.`
    : `${red.length} of ${answers.length} invariants are red: ${red.map(({ id }) => id).join(', ')}`;
  const value = {
    ok,
    at: new Date(atMs).toISOString(),
    invariants: answers.map((one) => ({ ...one, ok: one.findings.length === 0 })),
    pages: pages.map((one) => ({ ...one, ok: one.findings.length === 0 })),
    chains: chains.map((one) => ({
      ...one,
      received: amount(one, one.received),
      booked: amount(one, one.booked),
      waiting: { ...one.waiting, amount: amount(one, one.waiting.amount) },
    })),
    breakers: breakers.map(breakerValue),
    cleared: cleared ?? 0,
    searched,
  };
  print(json, value, [
    ...lines,
    ...chains.map(
      (one) =>
        `${one.currency}: up to block ${one.height} the chain says ${amount(one, one.received)}, booked ${amount(one, one.booked)}${waitingOf(one)}`,
    ),
    ...(searched === true
      ? []
      : [
          searched === null
            ? 'No worker runs that could search the newest blocks for addresses older than 30 days.'
            : 'The newest blocks are not all searched yet for addresses older than 30 days.',
        ]),
    summary,
    ...breakers.map(breakerLine),
    ...(cleared === null || cleared === 0 ? [] : ['Payouts go on.']),
  ]);
}

/** An open breaker in JSON; `chain status` shows it too. */
export function breakerValue(one: Breaker): Record<string, unknown> {
  return {
    name: one.name,
    tripped_by: one.trippedBy,
    findings: one.findings,
    tripped_at: new Date(one.trippedAtMs).toISOString(),
    seen_at: new Date(one.seenAtMs).toISOString(),
  };
}

/** An open breaker in one line. */
export function breakerLine({ name, trippedAtMs, trippedBy }: Breaker): string {
  const since = new Date(trippedAtMs).toISOString();
  return `${verdict(false, 'stopped')}  ${name} since ${since} (${trippedBy.join(', ')}); bursar audit --clear lets them continue once a full audit is green`;
}

/** Why the two differ although all is green: known payments that wait for their confirmations or their time. */
function waitingOf(one: ChainTotals): string {
  const { payments, amount: minor, statuses } = one.waiting;
  return payments === 0 ? '' : `; ${amount(one, minor)} in ${payments} of transactions in ${statuses.join(', ')} not yet`;
}

function amount({ currency }: Pick<ChainTotals, 'currency'>, minor: bigint): string {
  const known = CURRENCY_CODES.find((code): code is CurrencyCode => code === currency);
  return known === undefined ? String(minor) : `${formatAmount(minor, known)} ${known}`;
}
