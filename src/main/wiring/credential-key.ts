// The key that seals users, sign-ins and guards of payouts: outside the database, so that whoever can write there cannot sign in as a merchant.
// It is set, or made in the data folder when it is first needed.
import { randomBytes } from 'node:crypto';
import { closeSync, existsSync, fsyncSync, linkSync, openSync, readFileSync, rmSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import type { RowSeals } from '../../core/row-seals.ts';
import { type Sealing, sealExisting } from '../../flow/merchants/seals.ts';
import { createRowSeals } from '../../outside/row-seals.ts';
import { createOnce } from '../../signer/own-files.ts';
import { hasVersions } from '../../store/merchants/seals.ts';
import { hexKey } from '../config/value-readers.ts';
import type { Config } from '../config/variables.ts';
import { StartRefused } from '../process/start-refused.ts';

type Folder = Pick<Config, 'credentialKey' | 'dataFolder'>;
const keyFile = (dataFolder: string): string => join(dataFolder, 'credential-key');
/** It is there once the rows of before were sealed: from then on a row without a seal is foreign. */
const sealedFile = (dataFolder: string): string => join(dataFolder, 'credentials-sealed');

/** The key is opened when it is first needed; then StartRefused for a file that holds none. */
export function rowSeals(config: Folder): RowSeals {
  return createRowSeals(
    () => openKey(config),
    (what) => console.error(`alarm: ${what}`),
    () => config.credentialKey !== null || existsSync(keyFile(config.dataFolder)),
  );
}

function openKey({ credentialKey, dataFolder }: Folder): Uint8Array {
  if (credentialKey !== null) return credentialKey;
  const path = keyFile(dataFolder);
  if (!existsSync(path)) make(path, dataFolder);
  try {
    return hexKey(readFileSync(path, 'utf8').trim());
  } catch {
    // its own message could repeat what is in the file
    throw new StartRefused(`${path} holds no key (64 hexadecimal digits): put it back from a copy, or set BURSAR_CREDENTIAL_KEY`);
  }
}

/** Whole and on disk before anything is sealed with it; of several processes that make it one is first, and all read that one's. */
function make(path: string, dataFolder: string): void {
  const making = `${path}.${process.pid}.${randomBytes(4).toString('hex')}`;
  const file = openSync(making, 'wx', 0o600);
  try {
    writeSync(file, `${randomBytes(32).toString('hex')}\n`);
    fsyncSync(file);
    linkSync(making, path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
  } finally {
    closeSync(file);
    rmSync(making, { force: true });
  }
  const folder = openSync(dataFolder, 'r');
  fsyncSync(folder);
  closeSync(folder);
}

/**
 * Before the first process of this version serves: seals the rows that were there before there were seals, once for ever. Afterwards it costs
 * a look at two files.
 * @throws StartRefused when another key has sealed this database; outside the sandbox also when the key that did is gone: a new one would vouch
 *   for prices while no user could sign in by it
 */
export async function prepareSeals(config: Folder & Pick<Config, 'network'>, ctx: Sealing): Promise<void> {
  const { dataFolder, network } = config;
  const path = sealedFile(dataFolder);
  const isKnown = ctx.ports.seals.isKnown();
  if (existsSync(path)) {
    if (!isKnown && network !== 'sandbox' && (await hasVersions(ctx.db)))
      throw new StartRefused(
        `${keyFile(dataFolder)} is gone, which has sealed users, settings and prices: put it back from a copy or from the other server, or set BURSAR_CREDENTIAL_KEY as it was; without it, "bursar merchant seal" shows what it would vouch for`,
      );
    return;
  }
  // a folder that says that its rows are sealed has the key, also where there was none
  ctx.ports.seals.seal([]);
  const { outcome, sealed } = await sealExisting(ctx);
  if (outcome === 'other_key')
    throw new StartRefused(
      `the users of this database were sealed with another key, or somebody has removed their seals: put ${keyFile(dataFolder)} back from a copy or from the other server, or set BURSAR_CREDENTIAL_KEY as there; without it, "bursar merchant seal" shows what it would vouch for`,
    );
  await createOnce(path, `${new Date(ctx.ports.clock.now()).toISOString()}\n`);
  if (sealed > 0)
    console.error(
      `users, sign-ins and settings that were there already are sealed now (${sealed}): nobody has vouched for them, so look through "bursar merchant list", and compare allow-lists and approval limits with the merchants`,
    );
}
