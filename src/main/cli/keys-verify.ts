// `bursar keys verify`: whether the keys in the database are those of the signer (or of the 24 words on paper), and whether other libraries derive the same addresses.
import type { CurrencyCode } from '../../core/currency.ts';
import type { SignerAccount } from '../../core/signer-wire.ts';
import { verifyAddresses } from '../../flow/addresses/check.ts';
import type { Context } from '../../flow/context.ts';
import { createSignerClient, SignerTrouble } from '../../outside/signer-client.ts';
import { accountsOf } from '../../signer/accounts.ts';
import { firstIndexOfNewDatabase } from '../../signer/addresses/database-count.ts';
import { compareKeys, mismatchMessage } from '../../signer/confirm-keys.ts';
import { createKeyring } from '../../signer/keyring.ts';
import { SeedTrouble } from '../../signer/seed-file.ts';
import { readSignerStatus, type SignerStatus } from '../../store/chain/signer-status.ts';
import { listKeys, type StoredKey } from '../../store/chain/xpubs.ts';
import type { Opened } from '../process/setup.ts';
import { keyringOptions, signerFolder, signerSocketOf } from '../wiring/signer-paths.ts';
import { readEntropy } from './keys-restore.ts';
import { CommandFailed, EXIT, print, verdict } from './output.ts';
import { withBooks } from './service-access.ts';

type Config = Opened['config'];
const CHECKED_ADDRESSES = 1_000;

export type Asked = {
  /** Who answered for the signer's keys: the running signer, its seed, opened here, or the words that were typed; null when neither could. */
  readonly by: 'signer' | 'seed' | 'words' | null;
  readonly accounts: readonly SignerAccount[];
  /** Why neither could. */
  readonly trouble: string | null;
};

type KeyVerdict = {
  readonly currency: CurrencyCode;
  readonly in_use: boolean;
  readonly origin: string;
  /** `unknown`: neither could be asked. */
  readonly verdict: 'confirmed' | 'imported' | 'mismatch' | 'unknown';
};

/** The action of the command. */
export async function verify({ json, words = false }: { readonly json?: boolean; readonly words?: boolean }): Promise<void> {
  await withBooks(async (ctx, config) => {
    const asked = words ? await askWords(config) : await askSigner(config);
    const grants = await readSignerStatus(ctx.db);
    const verdicts = (await listKeys(ctx.db)).map((key) => judge(key, asked));
    const addresses = await verifyAddresses(ctx, CHECKED_ADDRESSES);
    const isBad = (one: KeyVerdict) => one.in_use && (one.verdict === 'mismatch' || one.verdict === 'unknown');
    const ok = !verdicts.some(isBad) && addresses.wrong.length === 0;
    // a wrong paper says nothing about the keys in use
    if (!words && verdicts.some((one) => one.in_use && one.verdict === 'mismatch'))
      await noteMismatch(ctx, config, asked.accounts);
    const lines = [
      ...signerLines(asked, grants),
      ...verdicts.map(
        (one) =>
          `${verdict(one.verdict === 'confirmed' || one.verdict === 'imported', one.verdict.padEnd(9))} ${one.currency.padEnd(5)} ${one.origin}${one.in_use ? '' : ', no longer in use'}`,
      ),
      `${addresses.checked} addresses derived again, ${addresses.wrong.length} wrong`,
      ...addresses.wrong.map((one) => `  ${one.transactionId}: no key of ${one.currency} gives ${one.address}`),
    ];
    const wrong = addresses.wrong.map((one) => ({
      transaction_id: one.transactionId,
      currency: one.currency,
      address: one.address,
    }));
    const signer = { runs: grants.runs, asked: asked.by, trouble: asked.trouble };
    print(json, { ok, signer, keys: verdicts, addresses: { checked: addresses.checked, wrong } }, lines);
    if (asked.trouble !== null && verdicts.some((one) => one.verdict === 'unknown'))
      process.stderr.write(`bursar: the signer's keys could not be confirmed: ${asked.trouble}\n`);
    process.exitCode = ok ? EXIT.done : EXIT.failed;
  });
}

function signerLines({ by }: Asked, { runs }: SignerStatus): string[] {
  const who =
    by === 'signer'
      ? 'the running signer'
      : by === 'seed'
        ? 'its seed, opened here: no signer runs on this data folder'
        : by === 'words'
          ? 'the words that were typed'
          : 'nobody';
  const grants = runs
    ? []
    : ['No signer runs on this database: only addresses that are ready already are given out. Start one with "bursar signer".'];
  return [`Asked for the signer's keys: ${who}.`, ...grants];
}

function judge(key: StoredKey, { by, accounts }: Asked): KeyVerdict {
  const of = { currency: key.currency, in_use: key.retiredAt === null, origin: key.origin };
  if (key.origin === 'imported') return { ...of, verdict: 'imported' };
  if (by === null) return { ...of, verdict: 'unknown' };
  const isOurs = accounts.some(({ currency, xpub }) => currency === key.currency && xpub === key.xpub);
  return { ...of, verdict: isOurs ? 'confirmed' : 'mismatch' };
}

/** A mismatch found here takes effect at once: nothing is derived from that key any more. */
async function noteMismatch(ctx: Context, config: Config, accounts: readonly SignerAccount[]): Promise<void> {
  const folder = signerFolder(config.dataFolder);
  const at = new Date(ctx.ports.clock.now());
  const message = mismatchMessage(await compareKeys(ctx.db, accounts, at, () => firstIndexOfNewDatabase(folder)));
  if (message !== null) process.stderr.write(`bursar: ${message}\n`);
}

/** The signer's own accounts: from the running signer, or from its seed when none runs. */
export async function askSigner(config: Config): Promise<Asked> {
  const client = createSignerClient(signerSocketOf(config));
  try {
    const { accounts } = await client.ask({ op: 'xpubs' });
    return { by: 'signer', accounts, trouble: null };
  } catch (error) {
    if (!(error instanceof SignerTrouble)) throw error;
    return error.fault === 'unreachable' || error.fault === 'no_keys' ? openSeedHere(config) : unknown(error.message);
  } finally {
    client.close();
  }
}

/** The accounts of the 24 words on paper; nothing of them is kept. */
async function askWords({ network }: Config): Promise<Asked> {
  const entropy = await readEntropy();
  if (entropy === null)
    throw new CommandFailed(
      'these are not the 24 words of a seed (BIP39, English): one is misspelt, missing or in another place',
    );
  const accounts = accountsOf(entropy, network);
  entropy.fill(0);
  return { by: 'words', accounts, trouble: null };
}

async function openSeedHere(config: Config): Promise<Asked> {
  const options = keyringOptions(config, config.dataFolder);
  try {
    const accounts = await createKeyring({ ...options, makesItsOwn: false }).accounts();
    if (accounts !== null) return { by: 'seed', accounts, trouble: null };
    return unknown(`no signer runs on this data folder, and there is no seed in ${options.folder}`);
  } catch (error) {
    if (error instanceof SeedTrouble) return unknown(`no signer runs on this data folder, and ${error.message}`);
    throw error;
  }
}

const unknown = (trouble: string): Asked => ({ by: null, accounts: [], trouble });
