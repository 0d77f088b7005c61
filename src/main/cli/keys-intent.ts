// `bursar keys show-intent|trust-intent|distrust-intent`: whose payout requests the signer of this data folder acts on.
import { changeTrust, isIntentKey, trustedIntentKeys } from '../../signer/intent-trust.ts';
import { readConfig } from '../config/read-config.ts';
import { makeDataFolder } from '../process/data-folder.ts';
import { readIntentPublicKey } from '../wiring/intent-key.ts';
import { signerFolder } from '../wiring/signer-paths.ts';
import { CommandFailed, print } from './output.ts';

type JsonOption = { readonly json?: boolean };

/** The action of `keys show-intent`. */
export async function showIntent({ json }: JsonOption): Promise<void> {
  const dataFolder = makeDataFolder(readConfig().dataFolder);
  const own = await readIntentPublicKey(dataFolder);
  const trusted = await trustedIntentKeys(signerFolder(dataFolder));
  const lines = [
    own === null
      ? 'The API of this data folder has no key yet: it makes one when it starts.'
      : `The API of this data folder signs with ${own}`,
    ...(trusted === null ? ['The signer trusts no key yet: it trusts the first that it finds here.'] : trustLines(trusted)),
  ];
  print(json, { api: own, trusted: trusted ?? [] }, lines);
}

/** The action of `keys trust-intent` and `keys distrust-intent`. A running signer acts on it with its next signature. */
export function changeIntent(change: 'trust' | 'distrust'): (key: string, options: JsonOption) => Promise<void> {
  return async (key, { json }) => {
    if (!isIntentKey(key)) throw new CommandFailed('accepted is a public key as "keys show-intent" shows it: 64 digits of hex');
    const folder = signerFolder(makeDataFolder(readConfig().dataFolder));
    const trusted = await changeTrust(folder, change, key);
    print(json, { trusted }, trustLines(trusted));
  };
}

function trustLines(trusted: readonly string[]): readonly string[] {
  if (trusted.length === 0) return ['The signer trusts nobody: it signs no payout.'];
  return trusted.map((key) => `The signer acts on payouts that are signed with ${key}`);
}
