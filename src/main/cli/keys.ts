// `bursar keys init|show-xpubs|verify` and the registration of the other key commands: the signer's seed and the account keys that
// addresses are derived from.
import { type Command, InvalidArgumentError } from 'commander';
import type { CurrencyCode, Network } from '../../core/currency.ts';
import { ACCOUNT_CODES, accountPath, accountsOf, mnemonicOf } from '../../signer/accounts.ts';
import { firstIndexOfNewDatabase } from '../../signer/addresses/database-count.ts';
import { compareKeys } from '../../signer/confirm-keys.ts';
import { createSeed, hasSeed } from '../../signer/seed-file.ts';
import { describeSkipped, readSkipped } from '../../store/chain/signer-status.ts';
import { listKeys } from '../../store/chain/xpubs.ts';
import { showDescriptors } from './keys-descriptors.ts';
import { importXpub } from './keys-import.ts';
import { changeIntent, showIntent } from './keys-intent.ts';
import { restoreSeed, sealing } from './keys-restore.ts';
import { verify } from './keys-verify.ts';
import { CommandFailed, group, leaf, print, table, writeOut } from './output.ts';
import { withBooks } from './service-access.ts';

type JsonOption = { readonly json?: boolean };

function utxoCode(text: string): CurrencyCode {
  const code = text.toUpperCase() as CurrencyCode;
  if (ACCOUNT_CODES.includes(code)) return code;
  throw new InvalidArgumentError(`Accepted: ${ACCOUNT_CODES.join(', ')}.`);
}

function wholeNumber(text: string): number {
  if (/^\d{1,10}$/.test(text) && Number(text) < 2 ** 31) return Number(text);
  throw new InvalidArgumentError('Accepted: a whole number from 0 to 2147483647.');
}

/** Adds `keys …`: seed, account keys, descriptors, and whose payouts the signer acts on. */
export function addKeyCommands(bursar: Command): void {
  const keys = group(bursar, 'keys', 'The seed of the signer, and the keys that addresses are derived from.');
  leaf(keys, 'init', 'Makes the seed of the signer, 256 random bits, and shows its 24 words once. Never overwrites.').action(
    init,
  );
  leaf(
    keys,
    'restore',
    'Puts the seed of this database back from its 24 words, read from standard input, after the folder of the signer was lost.',
  ).action(restoreSeed);
  leaf(keys, 'show-xpubs', 'Shows the account keys in use, and earlier ones.')
    .option('--currency <code>', `only one of ${ACCOUNT_CODES.join(', ')}`, utxoCode)
    .action(showXpubs);
  leaf(
    keys,
    'show-descriptors',
    'Shows the output descriptors of our addresses with the ranges that were given out, for a wallet.',
  ).action(showDescriptors);
  leaf(keys, 'import-xpub', 'Receives a currency to a key that is kept elsewhere, from now on.')
    .requiredOption('--currency <code>', `one of ${ACCOUNT_CODES.join(', ')}`, utxoCode)
    .requiredOption('--xpub <key>', "the account's extended public key (depth 3), never a private one")
    .option(
      '--start <index>',
      'the first index to give out; without it the chain is asked how far the account was used',
      wholeNumber,
    )
    .option('--from <height>', 'the first block to search (default 0)', wholeNumber)
    .action(importXpub);
  leaf(
    keys,
    'verify',
    'Asks the signer for each key, and derives the newest addresses again with other libraries; exit code 1 when one is wrong.',
  )
    .option('--words', 'compares with the 24 words on paper instead, read from standard input')
    .action(verify);
  addIntentCommands(keys);
}

function addIntentCommands(keys: Command): void {
  leaf(
    keys,
    'show-intent',
    'Shows the key with which the API here signs payouts, and the keys that the signer here acts on.',
  ).action(showIntent);
  leaf(keys, 'trust-intent', 'Makes the signer act on payouts that are signed with a key, from now on.')
    .argument('<key>', 'the public key of an API, as "keys show-intent" shows it')
    .action(changeIntent('trust'));
  leaf(keys, 'distrust-intent', 'Makes the signer act no longer on payouts that are signed with a key.')
    .argument('<key>', 'the public key')
    .action(changeIntent('distrust'));
}

async function init({ json }: JsonOption): Promise<void> {
  await withBooks(async (ctx, config) => {
    const { folder, network, passphrase } = sealing(config);
    const foreign = (await listKeys(ctx.db)).filter((key) => key.origin === 'signer' && key.retiredAt === null);
    if (!(await hasSeed(folder)) && foreign.length > 0) {
      const codes = foreign.map((key) => key.currency).join(', ');
      throw new CommandFailed(
        `the database receives ${codes} to a seed that is not in ${folder}: put that seed.json back, or its words with "bursar keys restore", or receive to other keys with "bursar keys import-xpub"`,
      );
    }
    const entropy = await shownThenStored(json === true, network, (show) => createSeed(folder, network, passphrase, show));
    const accounts = accountsOf(entropy, network);
    entropy.fill(0);
    const lines = accounts.map(({ currency, path, xpub }) => `${currency.padEnd(5)} ${path.padEnd(14)} ${xpub}`);
    if (json !== true) print(false, null, [`The seed lies in ${folder}, sealed.`, ...lines]);
    await compareKeys(ctx.db, accounts, new Date(ctx.ports.clock.now()), () => firstIndexOfNewDatabase(folder));
  });
}

/**
 * Prints the words before the seed is stored: there is never a seed whose words nobody has seen. In JSON everything is one value, so all of
 * it comes before; exit code 0 means that the seed is stored.
 */
async function shownThenStored(
  json: boolean,
  network: Network,
  store: (show: (entropy: Uint8Array) => Promise<void>) => Promise<Uint8Array>,
): Promise<Uint8Array> {
  let isShown = false;
  const show = async (entropy: Uint8Array): Promise<void> => {
    const words = network === 'sandbox' ? null : mnemonicOf(entropy);
    const accounts = accountsOf(entropy, network).map(({ currency, path, xpub }) => ({ currency, path, xpub }));
    const text = json ? `${JSON.stringify({ ...(words === null ? {} : { mnemonic: words }), accounts })}\n` : wordsToKeep(words);
    await writeOut(text).catch((error: Error) => {
      throw new CommandFailed(`the 24 words could not be written out (${error.message}): no seed was stored`);
    });
    isShown = words !== null;
  };
  try {
    return await store(show);
  } catch (error) {
    if (!isShown) throw error;
    throw new CommandFailed(`${(error as Error).message}; the 24 words above are VOID: no seed of theirs was stored`);
  }
}

function wordsToKeep(words: string | null): string {
  if (words === null) return '';
  return [
    '',
    words,
    '',
    'These 24 words are shown once: whoever has them can spend everything. Keep them on paper, in two places.',
    'They are void unless the next line says that the seed is stored.',
    '',
    '',
  ].join('\n');
}

async function showXpubs({ json, currency }: JsonOption & { readonly currency?: CurrencyCode }): Promise<void> {
  const isWanted = (one: { readonly currency: CurrencyCode }): boolean => currency === undefined || one.currency === currency;
  await withBooks(async (ctx, { network }) => {
    const keys = (await listKeys(ctx.db)).filter(isWanted).map((key) => ({
      currency: key.currency,
      in_use: key.retiredAt === null,
      origin: key.origin,
      path: key.origin === 'signer' ? accountPath(key.currency, network) : null,
      xpub: key.xpub,
      next_index: key.nextIndex,
      first_address: ctx.ports.addresses.of(key.currency, key.xpub).derive(0).address,
      confirmed_at: key.confirmedAt?.toISOString() ?? null,
    }));
    const head = ['currency', 'in use', 'origin', 'path', 'next', 'first address', 'xpub'];
    const rows = keys.map((key) => [
      key.currency,
      key.in_use ? 'yes' : 'no',
      key.origin,
      key.path ?? '-',
      String(key.next_index),
      key.first_address,
      key.xpub,
    ]);
    const none = 'No keys yet: the signer brings its own when it starts, or import one with "bursar keys import-xpub".';
    const skipped = (await readSkipped(ctx.db)).filter(isWanted);
    const value = skipped.map((one) => ({
      currency: one.currency,
      xpub: one.xpub,
      first_index: one.firstIndex,
      last_index: one.endIndex - 1,
      cause: one.cause,
      noticed_at: one.noticedAt.toISOString(),
    }));
    print(json, { keys, skipped: value }, [
      ...(keys.length === 0 ? [none] : table(head, rows)),
      ...skipped.map((one) => `${one.noticedAt.toISOString()}  ${describeSkipped(one)}`),
    ]);
  });
}
