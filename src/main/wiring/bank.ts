// Our bank in this configuration, for the worker: how it is reached, where copies of its files are kept, and whose payouts count.
import { join } from 'node:path';
import { folderBank } from '../../outside/bank/folder-bank.ts';
import { keptFiles } from '../../outside/bank/kept-files.ts';
import { sandboxBank } from '../../outside/bank/sandbox-bank.ts';
import { SANDBOX_BANK } from '../../sandbox/bank/bank.ts';
import { isIntentSigned, trustedIntentKeys } from '../../signer/intent-trust.ts';
import type { Ach } from '../../worker/jobs.ts';
import type { Config } from '../config/table.ts';
import { sandboxEndpoint } from '../sandbox/sandbox-paths.ts';
import { readIntentPublicKey } from './intent-key.ts';
import { signerFolder } from './signer-paths.ts';
import { sealingOf } from './wire.ts';

/** How long a sandbox that is being started again may take to tell its address. */
const SANDBOX_WITHIN_MS = 1_000;

/** Null where no bank is configured. */
export function bankOf(config: Config): Ach | null {
  const { network, dataFolder, bankFolder, bankOrigin } = config;
  const files = keptFiles(join(dataFolder, 'bank'), sealingOf(config));
  const intents = () => trustIn(dataFolder);
  if (network === 'sandbox')
    return { bank: sandboxBank(() => sandboxEndpoint(dataFolder, SANDBOX_WITHIN_MS)), files, origin: SANDBOX_BANK, intents };
  return bankFolder === null || bankOrigin === null ? null : { bank: folderBank(bankFolder), files, origin: bankOrigin, intents };
}

/** The APIs that the signer trusts; while it trusts none, the one whose key lies in this data folder, which will be the first. */
async function trustIn(dataFolder: string): ReturnType<Ach['intents']> {
  const first = await readIntentPublicKey(dataFolder);
  const trusted = (await trustedIntentKeys(signerFolder(dataFolder))) ?? (first === null ? [] : [first]);
  return (intent, keyId, signature) => trusted.includes(keyId) && isIntentSigned(intent, keyId, signature);
}
