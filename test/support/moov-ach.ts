// moov-io/ach, the reader of NACHA files that others trust, as a judge of ours; built by scripts/peers/achcheck.sh when it is not in the cache.
import { execFileSync, spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';

export type MoovReport = {
  readonly valid: boolean;
  readonly errors: readonly string[];
  readonly creditCents: number;
  readonly hash: number;
  readonly count: number;
  readonly batches: readonly {
    readonly effectiveDate: string;
    readonly entries: readonly {
      readonly transactionCode: number;
      readonly routing: string;
      readonly account: string;
      readonly cents: number;
      readonly id: string;
      readonly name: string;
      readonly trace: string;
      readonly category: string;
      readonly return?: { readonly code: string; readonly originalTrace: string };
      readonly change?: { readonly code: string; readonly originalTrace: string; readonly corrected: string };
    }[];
  }[];
};

let program: string | null = null;

function achcheck(): string {
  const script = fileURLToPath(new URL('../../scripts/peers/achcheck.sh', import.meta.url));
  program ??= execFileSync(script, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }).trim();
  return program;
}

/** What it says of a file, by its path or (`-`) its text. */
export function checkedByMoov(path: string, input?: string): MoovReport {
  const { stdout, error } = spawnSync(achcheck(), [path], { encoding: 'utf8', maxBuffer: 64 * 1024 * 1024, input: input ?? '' });
  if (error !== undefined) throw error;
  return JSON.parse(stdout) as MoovReport;
}
