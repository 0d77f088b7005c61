// `bursar audit` (every invariant of the books, exit 1 when one is red) and `bursar chain status`.
import type { Command } from 'commander';
import { runAudit } from '../flow/audit.ts';
import { type ChainStatus, readChainStatus } from '../store/node-conditions.ts';
import { withBooks } from './cli-books.ts';
import { EXIT, group, leaf, print, table, verdict } from './cli-output.ts';

type JsonOption = { readonly json?: boolean };

/** A watcher looks at its node every few seconds: older than this means that none runs. */
const LOOKED_RECENTLY_MS = 60_000;

export function addAuditCommands(bursar: Command): void {
  leaf(bursar, 'audit', 'Checks every invariant of the books; exit code 1 when one is red.').action(
    async ({ json }: JsonOption) => {
      const { answers, ok, atMs } = await withBooks(runAudit);
      const red = answers.filter((answer) => answer.findings.length > 0);
      const lines = answers.flatMap(({ id, says, findings, more }) => [
        `${verdict(findings.length === 0, findings.length === 0 ? 'green' : 'red  ')}  ${id.padEnd(8)} ${says}`,
        ...findings.map((finding) => `         ${finding}`),
        ...(more ? ['         and more'] : []),
      ]);
      const summary = ok
        ? `All ${answers.length} invariants are green.`
        : `${red.length} of ${answers.length} invariants are red: ${red.map(({ id }) => id).join(', ')}`;
      print(
        json,
        { ok, at: new Date(atMs).toISOString(), invariants: answers.map((one) => ({ ...one, ok: one.findings.length === 0 })) },
        [...lines, summary],
      );
      process.exitCode = ok ? EXIT.done : EXIT.failed;
    },
  );
  const chain = group(bursar, 'chain', 'The chains that are watched.');
  leaf(
    chain,
    'status',
    'Shows what each node says of itself and how far its chain was read; exit code 1 when one is not ready.',
  ).action(showChains);
}

async function showChains({ json }: JsonOption): Promise<void> {
  const { chains, nowMs } = await withBooks(async (ctx) => ({
    chains: await readChainStatus(ctx.db),
    nowMs: ctx.ports.clock.now(),
  }));
  const seen = chains.map((chain) => ({ ...chain, stale: nowMs - chain.checkedAtMs > LOOKED_RECENTLY_MS }));
  const head = ['currency', 'state', 'node', 'read', 'behind', 'looked', 'reason'];
  const rows = seen.map((chain) => [
    chain.currency,
    chain.stale ? `${chain.state} (stale)` : chain.contested === null ? chain.state : `${chain.state}, contested`,
    String(chain.nodeHeight ?? '-'),
    String(chain.height ?? '-'),
    String(behind(chain) ?? '-'),
    new Date(chain.checkedAtMs).toISOString(),
    chain.stale ? 'no worker has looked for a while' : remarks(chain),
  ]);
  const value = seen.map((chain) => ({
    currency: chain.currency,
    state: chain.state,
    reason: chain.reason,
    stale: chain.stale,
    node: chain.node,
    contested: chain.contested,
    others: chain.others,
    node_height: chain.nodeHeight,
    height: chain.height,
    hash: chain.hash,
    behind: behind(chain),
    caught_up_at: isoOf(chain.caughtUpAtMs),
    checked_at: isoOf(chain.checkedAtMs),
  }));
  print(json, { chains: value }, rows.length === 0 ? ['No worker has looked at a node yet.'] : table(head, rows));
  const well = seen.every((chain) => chain.state === 'ready' && !chain.stale && chain.contested === null);
  process.exitCode = seen.length > 0 && well ? EXIT.done : EXIT.failed;
}

/** What is wrong, the most important first. */
function remarks({ reason, contested, others }: ChainStatus): string {
  return [contested, reason, ...others].filter((one) => one !== null).join('; ');
}

const behind = (chain: ChainStatus): number | null =>
  chain.nodeHeight === null || chain.height === null ? null : Math.max(0, chain.nodeHeight - chain.height);
const isoOf = (atMs: number | null): string | null => (atMs === null ? null : new Date(atMs).toISOString());
