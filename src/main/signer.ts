// The signer's process: only it opens the seed. It stores its account keys in the database, confirms those that are there, gives out
// address indexes, and answers on its unix socket: with signatures of transactions that its rules allow. `npm start` runs it, or `bursar signer` by itself.
import type { SignerAccount } from '../core/signer-wire.ts';
import { firstIndexOfNewDatabase } from '../signer/addresses/database-count.ts';
import { openJournal } from '../signer/addresses/given-addresses.ts';
import { compareKeys, mismatchMessage } from '../signer/confirm-keys.ts';
import { createForgotten } from '../signer/forgotten.ts';
import { trustedIntentKeys, trustFirstIntentKey } from '../signer/intent-trust.ts';
import { createKeyring, type Keyring } from '../signer/keyring.ts';
import { openKnownChannels } from '../signer/lightning/known-channels.ts';
import { createPaying } from '../signer/lightning/paying.ts';
import { openPaymentJournal } from '../signer/lightning/payment-journal.ts';
import { SeedTrouble } from '../signer/seed-file.ts';
import { serveSigner } from '../signer/server.ts';
import { openSignatureJournal } from '../signer/signature-journal.ts';
import { createSigning } from '../signer/signing.ts';
import { createTurns } from '../signer/turns.ts';
import { connect, type Database } from '../store/postgres/connect.ts';
import { tokenContractAtNodes } from './config/configured-nodes.ts';
import { tryLock } from './process/identity.ts';
import { type Running, runProcess } from './process/life.ts';
import { type Opened, onOpened } from './process/setup.ts';
import { StartRefused } from './process/start-refused.ts';
import { failpoints } from './sandbox/failpoints.ts';
import { grantAddresses } from './wiring/address-grants.ts';
import { readIntentPublicKey } from './wiring/intent-key.ts';
import { lightningPayerOf } from './wiring/lightning-payer.ts';
import { keyringOptions, listeningSocket } from './wiring/signer-paths.ts';

const DATABASE_SESSIONS = 2;
/** A worker waits 15 seconds for a signature. */
const ANSWERS_WITHIN_MS = 5_000;
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
  const signatures = openSigning(config, keyring, options.folder);
  const socket = listeningSocket(config);
  const { signing, paying } = signatures;
  const server = await serveSigner(socket, { keyring, signing, paying, onTrouble: sayOnce });
  return {
    note: socket.path,
    async stop() {
      await server.close();
      await grants.close();
      await signatures.close();
      await db.close();
      await database.close();
      await lock.release();
    },
  };
}

/** A worker asks again and again for what is refused. */
let lastSaid = '';
function sayOnce(error: unknown): void {
  const { message } = error as Error;
  if (message !== lastSaid) say(message);
  lastSaid = message;
}

/** Opens something when it is first needed, and again after a failure: a damaged file stops what needs it, and may be mended while this runs. */
function once<T>(open: () => Promise<T>): { opened(): Promise<T>; ifOpened(): Promise<T> | null } {
  let made: Promise<T> | null = null;
  return {
    async opened() {
      made ??= open();
      try {
        return await made;
      } catch (error) {
        made = null;
        throw error;
      }
    },
    ifOpened: () => made,
  };
}

/** Signing and paying, with a connection of their own that may only read what the rules compare. */
function openSigning(config: Opened['config'], keyring: Keyring, folder: string) {
  const { network, dataFolder, signerLimits, databaseUrl } = config;
  const db = connect({
    url: databaseUrl,
    role: 'bursar_signer',
    maxConnections: 2,
    applicationName: 'bursar signer',
    answersWithinMs: ANSWERS_WITHIN_MS,
  });
  const now = (): number => Date.now();
  const signatures = once(() => openSignatureJournal(folder, network, { now }));
  const payments = once(() => openPaymentJournal(folder, network, { now }));
  const channels = once(() => openKnownChannels(folder, network));
  const payer = lightningPayerOf(config);
  async function intentKeys(): Promise<readonly string[]> {
    const trusted = await trustedIntentKeys(folder);
    if (trusted !== null) return trusted;
    const first = await readIntentPublicKey(dataFolder);
    if (first === null) return [];
    say(`payouts that are signed with ${first} count from now on: it is the first key of an API that was found`);
    return trustFirstIntentKey(folder, first);
  }
  const forgotten = createForgotten({ db, signatures: signatures.opened, payments: payments.opened, now, report: say });
  const reached = failpoints(network, dataFolder);
  const common = {
    db,
    intentKeys,
    limits: signerLimits ?? {},
    tokenContract: tokenContractAtNodes(config),
    now,
    countedAlone: createTurns(),
    ...(reached === undefined ? {} : { reached }),
  };
  const signing = createSigning({
    ...common,
    keyring,
    journal: signatures.opened,
    leftBesides: async () => [...(await payments.opened()).leaving(), ...(await forgotten())],
    giveBackFailed: () => paying.giveBackFailed(),
  });
  const paying = createPaying({
    ...common,
    network,
    payer,
    journal: payments.opened,
    channels: channels.opened,
    leftBesides: async () => [...(await signatures.opened()).index.leaving(), ...(await forgotten())],
  });
  return {
    signing,
    paying,
    async close() {
      await (await signatures.ifOpened())?.close();
      await (await payments.ifOpened())?.close();
      await (await channels.ifOpened())?.close();
      payer?.close();
      await db.close();
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
