// Where the signer of a data folder keeps its seed and its socket, and what opens the seed.
import { createHash } from 'node:crypto';
import { lstatSync, mkdirSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { KeyringOptions } from '../signer/keyring.ts';
import { readSignerSecrets } from './config/config.ts';
import type { Config } from './config/table.ts';
import { StartRefused } from './start-refused.ts';

/** sun_path holds 108 bytes with the closing zero. */
const LONGEST_SOCKET_PATH = 107;
const SOCKET = 'signer.sock';

/** The seed's folder of a data folder. */
export function signerFolder(dataFolder: string): string {
  return join(dataFolder, 'signer');
}

/**
 * The socket's path, in a folder of mode 700 that belongs to us (created when missing). Where the data folder's own path is too long for a
 * socket, it is a short path under the system's temporary folder that is computed from the data folder's.
 * @param dataFolder a real path
 */
export function signerSocket(dataFolder: string): string {
  const own = join(signerFolder(dataFolder), SOCKET);
  if (Buffer.byteLength(own) <= LONGEST_SOCKET_PATH) return inOwnFolder(signerFolder(dataFolder));
  const name = `bursar-signer-${createHash('sha256').update(dataFolder).digest('hex').slice(0, 16)}`;
  const short = [tmpdir(), '/tmp']
    .map((base) => join(base, name))
    .find((folder) => Buffer.byteLength(join(folder, SOCKET)) <= LONGEST_SOCKET_PATH);
  if (short === undefined) throw new StartRefused(`BURSAR_DATA_DIR: ${dataFolder} is too long a path for the signer's socket`);
  return inOwnFolder(short);
}

function inOwnFolder(folder: string): string {
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const found = lstatSync(folder);
  const uid = process.getuid?.();
  if (!found.isDirectory() || (uid !== undefined && found.uid !== uid) || (found.mode & 0o077) !== 0) {
    throw new StartRefused(`${folder} must be a folder of this user with mode 700: the signer's socket lies there`);
  }
  return join(folder, SOCKET);
}

/**
 * How the seed of this configuration is opened, and whether the signer itself creates a missing one. Reads the passphrase: for the signer's
 * process and the key commands only.
 */
export function keyringOptions({ network }: Pick<Config, 'network'>, dataFolder: string): KeyringOptions {
  const { signerPassphrase: text } = readSignerSecrets();
  const worthless = network === 'sandbox' || network === 'regtest';
  return {
    folder: signerFolder(dataFolder),
    network,
    passphrase: text !== null ? { kind: 'given', text } : worthless ? { kind: 'generated' } : null,
    makesItsOwn: network === 'sandbox',
  };
}
