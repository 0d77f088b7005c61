// Where the signer of a data folder keeps its seed and its socket, and what opens the seed.
import { createHash } from 'node:crypto';
import { lstatSync, mkdirSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import type { KeyringOptions } from '../../signer/keyring.ts';
import type { ListeningSocket } from '../../signer/server.ts';
import { readSignerSecrets } from '../config/read-config.ts';
import type { Config } from '../config/variables.ts';
import { StartRefused } from '../process/start-refused.ts';

/** sun_path holds 108 bytes with the closing zero. */
const LONGEST_SOCKET_PATH = 107;
const SOCKET = 'signer.sock';

/** The seed's folder of a data folder. */
export function signerFolder(dataFolder: string): string {
  return join(dataFolder, 'signer');
}

/** Where the signer is found: by the path that is set, or in the data folder. */
export function signerSocketOf({ dataFolder, signerSocket: shared }: Pick<Config, 'dataFolder' | 'signerSocket'>): string {
  return shared ?? signerSocket(dataFolder);
}

/**
 * Where the signer listens. A path that is set is for a worker of another user: the folder belongs to the signer's user and is open to its
 * group at most, and so is the socket.
 * @throws StartRefused when others could open the folder or put a socket of theirs into it
 */
export function listeningSocket(config: Pick<Config, 'dataFolder' | 'signerSocket'>): ListeningSocket {
  const { signerSocket: shared } = config;
  if (shared === null) return { path: signerSocket(config.dataFolder), mode: 0o600 };
  const refused = (what: string): StartRefused => new StartRefused(`BURSAR_SIGNER_SOCKET: ${what}`);
  if (Buffer.byteLength(shared) > LONGEST_SOCKET_PATH)
    throw refused(`${shared} is too long; a socket's path has at most ${LONGEST_SOCKET_PATH} bytes`);
  const folder = dirname(shared);
  const found = lstatSync(folder, { throwIfNoEntry: false });
  if (found === undefined) throw refused(`there is no folder ${folder}`);
  if (!found.isDirectory() || found.uid !== process.getuid?.() || (found.mode & 0o027) !== 0)
    throw refused(`${folder} must be a folder of the signer's user that its group may enter and nobody else may (mode 750)`);
  return { path: shared, mode: 0o660 };
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
