// The signer's process: only it opens the seed. It stores its account keys in the database, confirms those that are there, gives out
// address indexes, and answers on its unix socket. `npm start` runs it, or `bursar signer` by itself.
import type { SignerAccount } from '../core/signer-wire.ts';
import { compareKeys, mismatchMessage } from '../signer/confirm-keys.ts';
import { firstIndexOfNewDatabase } from '../signer/databases.ts';
import { openJournal } from '../signer/journal.ts';
import { createKeyring, type Keyring } from '../signer/keyring.ts';
import { SeedTrouble } from '../signer/seed-file.ts';
import { serveSigner } from '../signer/server.ts';
import { connect, type Database } from '../store/postgres/connect.ts';
import { grantAddresses } from './address-grants.ts';
import { type Opened, onOpened } from './opened.ts';
import { tryLock } from './process-identity.ts';
import { type Running, runProcess } from './process-life.ts';
import { keyringOptions, signerSocket } from './signer-place.ts';
import { StartRefused } from './start-refused.ts';

const DATABASE_SESSIONS = 2;
const say = (line: string): void => console.error(`signer: ${line}`);

async function start({ config, database }: Opened): Promise<Running> {
  const { dataFolder } = config;
  const options = keyringOptions(config, dataFolder);
  const lock = await tryLock(dataFolder, 'signer');
  if (lock === null) throw new StartRefused(`a signer already runs on ${dataFolder}`);
  const keyring = createKeyring(options);
  const accounts = await keyring.accounts().catch((error: unknown) => {
    throw error instanceof SeedTrouble ? new StartRefused(`signer: ${error.message}`) : error;
  });
  if (accounts === null) {
    const how = 'make one with "bursar keys init", or receive to keys kept elsewhere with "bursar keys import-xpub"';
    say(`there is no seed in ${options.folder}: ${how}`);
  }
  const db = connect({
    url: config.databaseUrl,
    role: 'bursar_app',
    maxConnections: DATABASE_SESSIONS,
    applicationName: 'bursar signer',
  });
  if (accounts !== null) await confirmStoredKeys(db, accounts, options.folder);
  const now = (): number => Date.now();
  const grants = await grantAddresses(db, await openJournal(options.folder, now), { owns: ownsKeys(keyring), report: say, now });
  const socket = signerSocket(dataFolder);
  const server = await serveSigner(socket, keyring, (error) => say((error as Error).message));
  return {
    note: socket,
    async stop() {
      await server.close();
      await grants.close();
      await db.close();
      await database.close();
      await lock.release();
    },
  };
}

/** Whether a key is of the seed that the signer has now; a seed may be made while it runs. */
function ownsKeys(keyring: Keyring): (currency: string, xpub: string) => Promise<boolean> {
  return async (currency, xpub) =>
    (await keyring.accounts())?.some((own) => own.currency === currency && own.xpub === xpub) ?? false;
}

/** Throws StartRefused, loudly, when a key that the database calls ours is not. */
async function confirmStoredKeys(db: Database, accounts: readonly SignerAccount[], folder: string): Promise<void> {
  const comparison = await compareKeys(db, accounts, new Date(), () => firstIndexOfNewDatabase(folder));
  const mismatch = mismatchMessage(comparison);
  if (mismatch !== null) throw new StartRefused(`signer: ${mismatch}`);
  if (comparison.retiredMismatched.length > 0) {
    say(`earlier account keys of ${comparison.retiredMismatched.join(', ')} are not of this seed`);
  }
}

await runProcess('signer', () => onOpened(start));
