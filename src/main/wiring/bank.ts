// Our bank in this configuration, for the worker: how it is reached, where copies of its files are kept, and whose payouts count.
import { join } from 'node:path';
import { folderBank } from '../../outside/bank/folder-bank.ts';
import { keptFiles } from '../../outside/bank/kept-files.ts';
import { sandboxBank } from '../../outside/bank/sandbox-bank.ts';
import { SignerTrouble } from '../../outside/signer-client.ts';
import { SANDBOX_BANK } from '../../sandbox/bank/bank.ts';
import { isIntentSigned } from '../../signer/intent-trust.ts';
import type { Ach } from '../../worker/jobs.ts';
import type { Config } from '../config/table.ts';
import { sandboxEndpoint } from '../sandbox/sandbox-paths.ts';
import { sealingOf } from './wire.ts';

/** How long a sandbox that is being started again may take to tell its address. */
const SANDBOX_WITHIN_MS = 1_000;

/**
 * Null where no bank is configured.
 * @param trusted the keys of APIs that the signer trusts; throws SignerTrouble
 */
export function bankOf(config: Config, trusted: () => Promise<readonly string[]>): Ach | null {
  const { network, dataFolder, bankFolder, bankOrigin } = config;
  const files = keptFiles(join(dataFolder, 'bank'), sealingOf(config));
  const intents = () => trustOf(trusted);
  if (network === 'sandbox')
    return { bank: sandboxBank(() => sandboxEndpoint(dataFolder, SANDBOX_WITHIN_MS)), files, origin: SANDBOX_BANK, intents };
  return bankFolder === null || bankOrigin === null ? null : { bank: folderBank(bankFolder), files, origin: bankOrigin, intents };
}

/** Null while the signer does not say: it may be another user's, and its folder cannot be read. */
async function trustOf(trusted: () => Promise<readonly string[]>): ReturnType<Ach['intents']> {
  try {
    const keys = await trusted();
    return (intent, keyId, signature) => keys.includes(keyId) && isIntentSigned(intent, keyId, signature);
  } catch (error) {
    if (!(error instanceof SignerTrouble)) throw error;
    return null;
  }
}
