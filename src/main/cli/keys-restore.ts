// `bursar keys restore`: puts the seed back into the signer's folder, from the 24 words that `keys init` showed: for an operator who lost
// that folder and still has the database.
import { createInterface } from 'node:readline/promises';
import { Writable } from 'node:stream';
import { accountsOf, entropyOf } from '../../signer/accounts.ts';
import { countDatabasesUpTo } from '../../signer/addresses/database-count.ts';
import type { KeyringOptions } from '../../signer/keyring.ts';
import { alreadyThere, hasSeed, type Passphrase, storeSeed } from '../../signer/seed-file.ts';
import { listKeys } from '../../store/chain/xpubs.ts';
import type { Opened } from '../process/setup.ts';
import { keyringOptions } from '../wiring/signer-paths.ts';
import { CommandFailed, print } from './output.ts';
import { withBooks } from './service-access.ts';

const LONGEST_INPUT = 4_096;

/** Where the seed of a configuration is stored, and what seals it. Refused when nothing seals it. */
export function sealing(config: Opened['config']): KeyringOptions & { readonly passphrase: Passphrase } {
  const { passphrase, ...rest } = keyringOptions(config, config.dataFolder);
  if (passphrase !== null) return { ...rest, passphrase };
  throw new CommandFailed(
    `BURSAR_SIGNER_PASSPHRASE (or _FILE) is not set: on ${rest.network} it seals the seed; accepted is 12 to 128 characters`,
  );
}

/**
 * The action of the command. Accepts only the seed that this database receives to: the addresses of any other seed were given out by
 * another database, and nobody knows how many.
 */
export async function restoreSeed({ json }: { readonly json?: boolean }): Promise<void> {
  await withBooks(async (ctx, config) => {
    const { folder, network, passphrase } = sealing(config);
    if (await hasSeed(folder)) throw alreadyThere(folder);
    const entropy = await readEntropy();
    if (entropy === null)
      throw new CommandFailed(
        'these are not the 24 words of a seed (BIP39, English): one is misspelt, missing or in another place; nothing was stored',
      );
    const accounts = accountsOf(entropy, network);
    const keys = (await listKeys(ctx.db)).filter((key) => key.origin === 'signer');
    const own = keys.filter((key) => accounts.some(({ currency, xpub }) => key.currency === currency && key.xpub === xpub));
    if (own.length === 0 || keys.some((key) => key.retiredAt === null && !own.includes(key)))
      throw new CommandFailed(
        'the database does not receive to the seed of these words: restore the database first, or spend from it with another wallet; nothing was stored',
      );
    const highest = Math.max(...own.map(({ startIndex }) => startIndex));
    await storeSeed(folder, network, passphrase, entropy, () => countDatabasesUpTo(folder, highest));
    entropy.fill(0);
    const currencies = own.filter((key) => key.retiredAt === null).map(({ currency }) => currency);
    print(json, { folder, currencies }, [
      `The seed of ${currencies.join(', ')} lies in ${folder}, sealed.`,
      'Without its journal the signer continues 1,000,000 indexes further, and logs that: "bursar keys show-descriptors" has the ranges.',
    ]);
  });
}

/** The entropy of 24 words from standard input; what is typed at a terminal is not echoed. Null when they are not those of a seed. */
export async function readEntropy(): Promise<Uint8Array | null> {
  return entropyOf(await readWords());
}

async function readWords(): Promise<string> {
  if (process.stdin.isTTY) {
    process.stderr.write('The 24 words (not shown): ');
    const silent = new Writable({ write: (_chunk, _encoding, done) => done() });
    const lines = createInterface({ input: process.stdin, output: silent, terminal: true });
    const answer = await lines.question('');
    lines.close();
    process.stderr.write('\n');
    return answer;
  }
  let text = '';
  for await (const chunk of process.stdin.setEncoding('utf8')) {
    text += chunk;
    if (text.length > LONGEST_INPUT) break;
  }
  return text;
}
