// `bursar chain status` (what each node says, how far its chain was read) and `bursar chain rescan` (finds what was missed).
import { setTimeout } from 'node:timers/promises';
import type { Command } from 'commander';
import { LIGHTNING } from '../../core/currencies/lightning.ts';
import { balanceOf, CURRENCY_CODES, type CurrencyCode, type PaymentMethod } from '../../core/currency.ts';
import { formatAmount } from '../../core/money.ts';
import { type Context, watchedCodes } from '../../flow/context.ts';
import { readReadiness } from '../../flow/readiness.ts';
import { reconsider } from '../../flow/transactions/create-cancel-resolve.ts';
import { type ChainStatus, LOOKED_RECENTLY_MS } from '../../store/chain/node-conditions.ts';
import { describeUnprotected, readUnprotected, type UnprotectedPayment } from '../../store/chain/unprotected-payments.ts';
import { beginAgain } from '../../worker/rescan/reconciler.ts';
import { type Rescanned, RescanRefused, rescan } from '../../worker/rescan/rescan-all.ts';
import type { Unshown } from '../../worker/rescan/taken-back.ts';
import { breakerLine, breakerValue } from './audit.ts';
import { CommandFailed, calledWrongly, EXIT, group, leaf, print, table, verdict, watchedCode } from './output.ts';
import { priceLines, pricesValue, sourceValue } from './prices.ts';
import { openProgress } from './progress.ts';
import { withBooks, withNodes } from './service-access.ts';
import { addWriteOff } from './write-off.ts';

type JsonOption = { readonly json?: boolean };

/** What a node does not say of a block is asked for again after this, until it is done without (two minutes). */
const ASKED_AGAIN_MS = 1_000;
/** How many of the newest outputs at scripts that are not ours on their chain are shown. */
const UNPROTECTED_SHOWN = 10;

/** Adds `chain status`, which ends with 1 when a node is not ready, and `chain rescan`. */
export function addChainCommands(bursar: Command): void {
  const chain = group(bursar, 'chain', 'The chains that are watched.');
  leaf(chain, 'status', 'Shows what each node says of itself and how far its chain was read; exit code 1 when one is not ready.')
    .option('--currency <code>', `only one of ${[...CURRENCY_CODES, LIGHTNING.code].join(', ')}`, shownCode)
    .action(showChains);
  leaf(chain, 'rescan', 'Reads the blocks from a height on again and books what was missed, by the same rules.')
    .requiredOption('--currency <code>', `one of ${CURRENCY_CODES.join(', ')}`)
    .requiredOption('--from <height>', 'the first block to read again')
    .action((options: JsonOption & { currency: string; from: string }) => rescanChain(options));
  addWriteOff(chain);
}

/** A chain, or Lightning. */
const shownCode = (text: string): PaymentMethod => (text.toUpperCase() === LIGHTNING.code ? LIGHTNING.code : watchedCode(text));

async function rescanChain(options: JsonOption & { currency: string; from: string }): Promise<void> {
  const currency = watchedCode(options.currency);
  if (!/^\d{1,9}$/.test(options.from)) throw calledWrongly(`--from: ${options.from} is no height: a whole number from 0 on`);
  const done = await withNodes((ctx) => rescanAndJudge(ctx, currency, Number(options.from), options.json === true));
  const { fromHeight, toHeight, blocks, unseen, found, lost, takenBack, doubted, isBack, notSought } = done;
  const value = {
    currency,
    from: fromHeight,
    to: toHeight,
    blocks,
    unseen,
    found: found.map((one) => ({ outpoint: one.outpoint, transaction_id: one.transactionId, height: one.height })),
    lost: lost.map((one) => ({
      outpoint: one.outpoint,
      transaction_id: one.transactionId,
      height: one.height,
      entry: one.entry,
    })),
    taken_back: takenBack.map((one) => ({ ...one, amount: formatAmount(one.amount, currency) })),
    doubted: doubted.map((one) => ({ ...one, amount: formatAmount(one.amount, currency) })),
    is_back: isBack.map((one) => ({ ...one, amount: formatAmount(one.amount, currency) })),
    not_sought: notSought,
  };
  const named = ({ outpoint, height, amount }: Unshown): string =>
    `${outpoint} of ${formatAmount(amount, currency)} ${currency} in block ${height}`;
  print(options.json, value, [
    ...found.map((one) => `found ${one.outpoint} in block ${one.height}, of ${one.transactionId}`),
    `Read ${blocks} blocks of ${currency} (${fromHeight} to ${toHeight}) and found ${found.length} payments that were missed.`,
    ...(unseen === 0
      ? []
      : [
          `In ${unseen} of them ether that contracts sent was not looked for: this node neither shows calls nor has the state of then.`,
        ]),
    ...takenBack.map((one) => `taken back ${named(one)}: no node shows it there any more`),
    ...isBack.map(
      (one) =>
        `recorded ${named(one)}, which has come to an address that payouts leave from, and which nodes had not shown, or no more`,
    ),
    ...notSought.map(
      ({ address, reason }) =>
        `At ${address}, which payouts leave from and which holds more than is known, nothing of that was looked for: ${reason}. Two nodes (the only one, where there is one) must say what it holds now: then say it again.`,
    ),
    ...doubted.map(
      (one) =>
        `NOT SHOWN ${named(one)}: it is taken back once two nodes (the only one, where there is one) show its block without it: ${one.reason}`,
    ),
    ...lost.map(
      (one) =>
        `LOST ${one.outpoint} in block ${one.height}, of ${one.transactionId}: the ledger holds ${one.entry}, and the row of that payment is gone. Nothing was changed: a block does not say what was decided about it. Restore the row from a backup.`,
    ),
  ]);
  process.exitCode = lost.length === 0 && doubted.length === 0 ? EXIT.done : EXIT.failed;
}

async function rescanAndJudge(ctx: Context, currency: CurrencyCode, fromHeight: number, isQuiet: boolean): Promise<Rescanned> {
  try {
    let progress: ((height: number) => void) | null = null;
    const onProgress = (height: number, toHeight: number): void => {
      progress ??= openProgress(`reading ${currency} again`, { from: fromHeight, to: toHeight }, isQuiet);
      progress(height);
    };
    const done = await rescan(ctx, currency, { fromHeight, onProgress, wait: () => setTimeout(ASKED_AGAIN_MS) });
    // the worker's judge would find them too; when none runs they are booked now
    for (const id of new Set(done.found.map((one) => one.transactionId))) await reconsider(ctx, id);
    if (done.found.length > 0) await beginAgain(ctx, currency, Math.max(0, fromHeight - 1));
    return done;
  } catch (error) {
    if (error instanceof RescanRefused) throw new CommandFailed(error.message);
    if (error instanceof Error && error.name === 'NodeTrouble') throw new CommandFailed(`the node failed: ${error.message}`);
    throw error;
  }
}

async function showChains({ json, currency }: JsonOption & { readonly currency?: PaymentMethod }): Promise<void> {
  const { chains, abandoned, breakers, rates, rateSources, problems, configured, unprotected, nowMs } = await withBooks(
    async (ctx) => {
      const currencies = watchedCodes(ctx).filter((code) => currency === undefined || code === currency);
      return {
        ...(await readReadiness(ctx, currencies)),
        configured: currencies,
        unprotected: await readUnprotected(ctx.db, UNPROTECTED_SHOWN),
        nowMs: ctx.ports.clock.now(),
      };
    },
  );
  const wanted = chains.filter((chain) => currency === undefined || chain.currency === currency);
  const seen = wanted.map((chain) => ({ ...chain, stale: chain.lookedAgoMs > LOOKED_RECENTLY_MS }));
  const head = ['currency', 'state', 'node', 'read', 'behind', 'looked', 'pushes', 'from', 'reason'];
  const rows = seen.map((chain) => [
    chain.currency,
    chain.stale ? `${chain.state} (stale)` : chain.contested === null ? chain.state : `${chain.state}, contested`,
    String(chain.nodeHeight ?? '-'),
    String(chain.height ?? '-'),
    String(behind(chain) ?? '-'),
    new Date(chain.checkedAtMs).toISOString(),
    chain.pushes ? 'on' : 'off',
    chain.node ?? '-',
    chain.stale ? 'no worker has looked since, so it is not sold' : remarks(chain),
  ]);
  const prices = { rates: pricesValue(rates), rate_sources: rateSources.map(sourceValue) };
  const stopped = { breakers: breakers.map(breakerValue), unprotected: unprotected.map(unprotectedValue) };
  print(json, { problems, chains: seen.map(chainValue), ...prices, ...stopped }, [
    ...(rows.length === 0 ? ['No worker has looked at a node yet.'] : table(head, rows)),
    ...priceLines(rates, rateSources, nowMs),
    ...breakers.map(breakerLine),
    ...unprotected.map(describeUnprotected),
    ...problems.map((problem) => `${verdict(false, 'problem')}  ${problem}`),
  ]);
  // a currency that was given up, with nothing open, is no trouble
  const due = seen.filter((chain) => configured.includes(chain.currency));
  const well =
    abandoned.length === 0 &&
    due.every((chain) => chain.state === 'ready' && chain.reason === null && !chain.stale && chain.contested === null);
  const priced = configured.every((code) => rates[balanceOf(code)] !== undefined);
  process.exitCode = seen.length > 0 && well && priced ? EXIT.done : EXIT.failed;
}

function chainValue(chain: ChainStatus & { readonly stale: boolean }): Record<string, unknown> {
  return {
    currency: chain.currency,
    state: chain.state,
    reason: chain.reason,
    stale: chain.stale,
    pushes: chain.pushes,
    node: chain.node,
    contested: chain.contested,
    others: chain.others,
    node_height: chain.nodeHeight,
    height: chain.height,
    hash: chain.hash,
    behind: behind(chain),
    caught_up_at: isoOf(chain.caughtUpAtMs),
    checked_at: isoOf(chain.checkedAtMs),
  };
}

/** What is wrong, the most important first. */
function remarks({ reason, contested, others }: ChainStatus): string {
  return [contested, reason, ...others].filter((one) => one !== null).join('; ');
}

/** An output at a script that is not ours on its chain, as `--json` shows it. */
export function unprotectedValue({ currency, outpoint, transactionId, amount, height, seenAtMs }: UnprotectedPayment): object {
  return {
    currency,
    outpoint,
    transaction_id: transactionId,
    amount: formatAmount(amount, currency),
    height,
    seen_at: isoOf(seenAtMs),
  };
}

/** How many blocks are not read yet; negative = the node has that many fewer than were read from it. */
const behind = (chain: ChainStatus): number | null =>
  chain.nodeHeight === null || chain.height === null ? null : chain.nodeHeight - chain.height;
const isoOf = (atMs: number | null): string | null => (atMs === null ? null : new Date(atMs).toISOString());
