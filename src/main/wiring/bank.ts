// Our bank in this configuration, for the worker: how it is reached, and where copies of its files are kept.
import { join } from 'node:path';
import type { AskTrust } from '../../core/payouts/intent.ts';
import { folderBank } from '../../outside/bank/folder-bank.ts';
import { keptFiles } from '../../outside/bank/kept-files.ts';
import { sandboxBank } from '../../outside/bank/sandbox-bank.ts';
import { SANDBOX_BANK } from '../../sandbox/bank/bank.ts';
import type { Ach } from '../../worker/jobs.ts';
import type { Config } from '../config/variables.ts';
import { sandboxEndpoint } from '../sandbox/paths.ts';
import { sealingOf } from './wire.ts';

/** How long a sandbox that is being started again may take to tell its address. */
const SANDBOX_WITHIN_MS = 1_000;

/**
 * Null where no bank is configured.
 * @param intents whose payouts count
 */
export function bankOf(config: Config, intents: AskTrust): Ach | null {
  const { network, dataFolder, bankFolder, bankOrigin } = config;
  const files = keptFiles(join(dataFolder, 'bank'), sealingOf(config));
  if (network === 'sandbox')
    return { bank: sandboxBank(() => sandboxEndpoint(dataFolder, SANDBOX_WITHIN_MS)), files, origin: SANDBOX_BANK, intents };
  return bankFolder === null || bankOrigin === null ? null : { bank: folderBank(bankFolder), files, origin: bankOrigin, intents };
}
