// The signer's process: it alone opens the seed. It gives the database the account keys that it has, confirms those that are there, and
// answers on its unix socket. Started by `npm start`, or alone by `bursar signer`.

import type { SignerAccount } from '../core/signer-wire.ts';
import { compareKeys, mismatchMessage } from '../signer/confirm-keys.ts';
import { firstIndexOfNewDatabase } from '../signer/databases.ts';
import { createKeyring } from '../signer/keyring.ts';
import { SeedTrouble } from '../signer/seed-file.ts';
import { serveSigner } from '../signer/server.ts';
import { connect } from '../store/connect.ts';
import { type Opened, open } from './opened.ts';
import { tryLock } from './process-identity.ts';
import { type Running, runProcess } from './process-life.ts';
import { keyringOptions, signerSocket } from './signer-place.ts';
import { StartRefused } from './start-refused.ts';

async function start(): Promise<Running> {
  const { config, database } = await open();
  try {
    return await serve(config, config.dataFolder);
  } finally {
    // the socket's questions need no database
    await database.close();
  }
}

async function serve(config: Opened['config'], dataFolder: string): Promise<Running> {
  const options = keyringOptions(config, dataFolder);
  const lock = await tryLock(dataFolder, 'signer');
  if (lock === null) throw new StartRefused(`a signer already runs on ${dataFolder}`);
  const keyring = createKeyring(options);
  const accounts = await keyring.accounts().catch((error: unknown) => {
    throw error instanceof SeedTrouble ? new StartRefused(`signer: ${error.message}`) : error;
  });
  if (accounts === null) {
    const how = 'make one with "bursar keys init", or receive to keys kept elsewhere with "bursar keys import-xpub"';
    console.error(`signer: there is no seed in ${options.folder}: ${how}`);
  } else await confirmStoredKeys(config.databaseUrl, accounts, options.folder);
  const socket = signerSocket(dataFolder);
  const server = await serveSigner(socket, keyring, (error) => console.error(`signer: ${(error as Error).message}`));
  return {
    note: socket,
    async stop() {
      await server.close();
      await lock.release();
    },
  };
}

/** Throws StartRefused, loudly, when the database calls a key ours that is not. */
async function confirmStoredKeys(url: string, accounts: readonly SignerAccount[], folder: string): Promise<void> {
  const db = connect({ url, role: 'bursar_app', maxConnections: 1, applicationName: 'bursar signer' });
  try {
    const comparison = await compareKeys(db, accounts, new Date(), () => firstIndexOfNewDatabase(folder));
    const mismatch = mismatchMessage(comparison);
    if (mismatch !== null) throw new StartRefused(`signer: ${mismatch}`);
    if (comparison.retiredMismatched.length > 0) {
      console.error(`signer: earlier account keys of ${comparison.retiredMismatched.join(', ')} are not of this seed`);
    }
  } finally {
    await db.close();
  }
}

await runProcess('signer', start);
