// The key by which the API process signs each payout that it takes (Ed25519, RFC 8032): made at the first start, and never in the database,
// so that whoever can write to the database still cannot make the signer pay. The signer knows its public half.
import { createPrivateKey, createPublicKey, generateKeyPairSync, type KeyObject, sign } from 'node:crypto';
import { chmod, mkdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { IntentKey } from '../../core/payouts/intent.ts';
import { createOnce, replaceFile } from '../../signer/own-files.ts';
import { StartRefused } from '../process/start-refused.ts';

const privateFile = (dataFolder: string): string => join(dataFolder, 'api', 'intent-key');
/** The public half, as one line of hex. */
export const intentPublicFile = (dataFolder: string): string => join(dataFolder, 'intent-key.pub');

/** Opens the key of a data folder, and makes it when there is none; any number of processes may do so at once. Throws StartRefused. */
export async function openIntentKey(dataFolder: string): Promise<IntentKey> {
  const path = privateFile(dataFolder);
  const text = (await contentOf(path)) ?? (await made(dataFolder, path));
  const key = readKey(path, text);
  const keyId = publicHex(key);
  const known = await contentOf(intentPublicFile(dataFolder));
  if (known?.trim() !== keyId) await replaceFile(intentPublicFile(dataFolder), `${keyId}\n`, 0o644);
  return { sign: (bytes) => ({ keyId, signature: sign(null, bytes, key) }) };
}

/** The public half in hex; null while no API process has made a key. */
export async function readIntentPublicKey(dataFolder: string): Promise<string | null> {
  const text = (await contentOf(intentPublicFile(dataFolder)))?.trim() ?? null;
  return text !== null && /^[0-9a-f]{64}$/.test(text) ? text : null;
}

async function made(dataFolder: string, path: string): Promise<string> {
  const folder = join(dataFolder, 'api');
  await mkdir(folder, { recursive: true, mode: 0o700 });
  await chmod(folder, 0o700);
  const pem = generateKeyPairSync('ed25519').privateKey.export({ type: 'pkcs8', format: 'pem' }) as string;
  await createOnce(path, pem);
  // another process may have been first
  return readFile(path, 'utf8');
}

function readKey(path: string, text: string): KeyObject {
  try {
    const key = createPrivateKey(text);
    if (key.asymmetricKeyType === 'ed25519') return key;
  } catch {
    // its own message could repeat what is in the file
  }
  throw new StartRefused(
    `${path} holds no Ed25519 key (PKCS8, PEM): put it back from a copy, or remove it, start again and run "bursar keys trust-intent"`,
  );
}

function publicHex(key: KeyObject): string {
  const { x } = createPublicKey(key).export({ format: 'jwk' });
  return Buffer.from(x ?? '', 'base64url').toString('hex');
}

async function contentOf(path: string): Promise<string | null> {
  try {
    return await readFile(path, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
    throw error;
  }
}
