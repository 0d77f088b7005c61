// The signer's seed at rest: 256 bits of BIP39 entropy, sealed with AES-256-GCM under a key that scrypt derives from a passphrase. Only the
// signer and the commands of `bursar keys` open this file.
import { createCipheriv, createDecipheriv, randomBytes, type ScryptOptions, scrypt } from 'node:crypto';
import { chmod, mkdir, readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { Network } from '../core/currency.ts';
import { createOnce } from './own-files.ts';

/** Something an operator must fix, as one clear sentence. */
export class SeedTrouble extends Error {
  readonly fault: 'exists' | 'absent' | 'passphrase' | 'damaged' | 'wrong-network';
  constructor(fault: SeedTrouble['fault'], message: string) {
    super(message);
    this.name = 'SeedTrouble';
    this.fault = fault;
  }
}

type Header = {
  readonly version: 1;
  readonly what: string;
  readonly network: Network;
  readonly kdf: { readonly name: 'scrypt'; readonly n: number; readonly r: number; readonly p: number; readonly salt: string };
  readonly cipher: { readonly name: 'aes-256-gcm'; readonly iv: string };
};
type SeedFile = Header & { readonly sealed: string; readonly tag: string };

const WHAT = 'the seed of a Bursar signer: BIP39 entropy, sealed with AES-256-GCM; the key is scrypt of the passphrase';
const ENTROPY_BYTES = 32;
/** 128 MiB and about half a second for a person's passphrase; a generated one has 256 bits already. */
const COST = { passphrase: 2 ** 17, generated: 2 ** 14 } as const;
const file = (folder: string): string => join(folder, 'seed.json');
const passphraseFile = (folder: string): string => join(folder, 'passphrase');

/**
 * Where the passphrase comes from: the operator, or a generated file beside the seed (sandbox and regtest, whose currencies are worth
 * nothing).
 */
export type Passphrase = { readonly kind: 'given'; readonly text: string } | { readonly kind: 'generated' };

/** Whether there is a file with a seed in the folder; not whether it opens. */
export async function hasSeed(folder: string): Promise<boolean> {
  return stat(file(folder)).then(
    () => true,
    () => false,
  );
}

/**
 * Makes a seed of 256 random bits and stores it sealed; returns the entropy. Never overwrites: throws SeedTrouble 'exists'.
 * @param beforeStored called with the entropy when everything is prepared and there is no seed yet; when it throws, none is stored
 */
export async function createSeed(
  folder: string,
  network: Network,
  passphrase: Passphrase,
  beforeStored: (entropy: Uint8Array) => Promise<void> = () => Promise.resolve(),
): Promise<Uint8Array> {
  const entropy = Uint8Array.from(randomBytes(ENTROPY_BYTES));
  await storeSeed(folder, network, passphrase, entropy, () => beforeStored(entropy));
  return entropy;
}

/** The same for a seed that is known already, 32 bytes of BIP39 entropy. */
export async function storeSeed(
  folder: string,
  network: Network,
  passphrase: Passphrase,
  entropy: Uint8Array,
  beforeStored: () => Promise<void>,
): Promise<void> {
  if (await hasSeed(folder)) throw alreadyThere(folder);
  await mkdir(folder, { recursive: true, mode: 0o700 });
  await chmod(folder, 0o700);
  const text = passphrase.kind === 'given' ? passphrase.text : await generatedPassphrase(folder);
  const header: Header = {
    version: 1,
    what: WHAT,
    network,
    kdf: {
      name: 'scrypt',
      n: COST[passphrase.kind === 'given' ? 'passphrase' : 'generated'],
      r: 8,
      p: 1,
      salt: randomBytes(16).toString('hex'),
    },
    cipher: { name: 'aes-256-gcm', iv: randomBytes(12).toString('hex') },
  };
  const key = await keyOf(text, header);
  const cipher = createCipheriv('aes-256-gcm', key, Buffer.from(header.cipher.iv, 'hex'));
  cipher.setAAD(Buffer.from(JSON.stringify(header)));
  const sealed = Buffer.concat([cipher.update(entropy), cipher.final()]);
  key.fill(0);
  const content: SeedFile = { ...header, sealed: sealed.toString('hex'), tag: cipher.getAuthTag().toString('hex') };
  const stored = await createOnce(file(folder), `${JSON.stringify(content, null, 2)}\n`, beforeStored);
  if (!stored) throw alreadyThere(folder);
}

/** Opens the stored seed; the caller must wipe it. Throws SeedTrouble. */
export async function openSeed(folder: string, network: Network, passphrase: Passphrase): Promise<Uint8Array> {
  const stored = await readSeedFile(folder);
  if (stored.network !== network) {
    throw new SeedTrouble(
      'wrong-network',
      `the seed in ${folder} was made for ${stored.network}, but BURSAR_NETWORK is ${network}`,
    );
  }
  const text = passphrase.kind === 'given' ? passphrase.text : await readPassphrase(folder);
  const { sealed, tag, ...header } = stored;
  const key = await keyOf(text, header);
  const decipher = createDecipheriv('aes-256-gcm', key, Buffer.from(header.cipher.iv, 'hex'), { authTagLength: 16 });
  key.fill(0);
  try {
    decipher.setAAD(Buffer.from(JSON.stringify(header)));
    decipher.setAuthTag(Buffer.from(tag, 'hex'));
    const opened = Buffer.concat([decipher.update(Buffer.from(sealed, 'hex')), decipher.final()]);
    const entropy = Uint8Array.from(opened);
    opened.fill(0);
    return entropy;
  } catch {
    const what = passphrase.kind === 'given' ? 'BURSAR_SIGNER_PASSPHRASE' : passphraseFile(folder);
    throw new SeedTrouble('passphrase', `the seed in ${folder} does not open: ${what} is another one, or the file is damaged`);
  }
}

/** The trouble of making a seed where there is one. */
export function alreadyThere(folder: string): SeedTrouble {
  return new SeedTrouble(
    'exists',
    `there is a seed in ${folder} already: it is never overwritten, because its addresses may have been paid`,
  );
}

async function readSeedFile(folder: string): Promise<SeedFile> {
  let text: string;
  try {
    text = await readFile(file(folder), 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
    throw new SeedTrouble('absent', `there is no seed in ${folder}: make one with "bursar keys init"`);
  }
  try {
    const stored = JSON.parse(text) as SeedFile;
    if (stored.version !== 1 || stored.kdf.name !== 'scrypt' || stored.cipher.name !== 'aes-256-gcm')
      throw new Error('unknown form');
    if (stored.kdf.n > 2 ** 20 || stored.kdf.r > 32 || stored.kdf.p > 16 || stored.tag.length !== 32)
      throw new Error('unknown form');
    return stored;
  } catch {
    throw new SeedTrouble('damaged', `${file(folder)} is not a seed file of this version`);
  }
}

function keyOf(passphrase: string, header: Header): Promise<Buffer> {
  const { n, r, p, salt } = header.kdf;
  const options: ScryptOptions = { N: n, r, p, maxmem: 256 * n * r };
  return new Promise((resolve, reject) => {
    const normal = passphrase.normalize('NFKC');
    scrypt(normal, Buffer.from(salt, 'hex'), 32, options, (error, key) => (error === null ? resolve(key) : reject(error)));
  });
}

/** The generated passphrase of this folder; creates it when there is none. */
async function generatedPassphrase(folder: string): Promise<string> {
  const content = [
    '# Opens the seed beside it. Generated, because this is a test network whose currencies are worth nothing.',
    '# On testnet and mainnet the operator sets BURSAR_SIGNER_PASSPHRASE instead, and no such file exists.',
    randomBytes(32).toString('hex'),
    '',
  ].join('\n');
  await createOnce(passphraseFile(folder), content);
  return readPassphrase(folder);
}

async function readPassphrase(folder: string): Promise<string> {
  const lines = await readFile(passphraseFile(folder), 'utf8').catch(() => {
    throw new SeedTrouble('passphrase', `${passphraseFile(folder)} is missing: it opens the seed beside it`);
  });
  return lines.split('\n').find((line) => line !== '' && !line.startsWith('#')) ?? '';
}
