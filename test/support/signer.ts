// The part of the signer that gives out addresses, as its process runs it, on a test's database: without it there are no addresses. Its
// journal is in its own folder unless one is named.
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { grantAddresses } from '../../src/main/wiring/address-grants.ts';
import { openJournal } from '../../src/signer/addresses/given-addresses.ts';
import type { Database } from '../../src/store/postgres/connect.ts';

export type RunningSigner = {
  readonly folder: string;
  /** What it reported to the operator. */
  readonly reported: readonly string[];
  close(): Promise<void>;
};

/** @param options.folder keeps the journal when the signer is closed */
export async function openSigner(
  db: Database,
  options: {
    readonly folder?: string;
    readonly owns?: (currency: string, xpub: string) => Promise<boolean>;
    readonly now?: () => number;
  } = {},
): Promise<RunningSigner> {
  const folder = options.folder ?? (await mkdtemp(join(tmpdir(), 'bursar-signer-')));
  const reported: string[] = [];
  const now = options.now ?? Date.now;
  const grants = await grantAddresses(db, await openJournal(folder, now), {
    now,
    owns: options.owns ?? (async () => true),
    report: (line) => reported.push(line),
  });
  return {
    folder,
    reported,
    async close() {
      await grants.close();
      if (options.folder === undefined) await rm(folder, { recursive: true, force: true });
    },
  };
}
