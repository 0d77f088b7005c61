// Whose intents the signer acts on: public keys (Ed25519) of API processes, in a file of its own folder, never in the database. The first
// key that it finds is trusted while it knows none; every other only by an operator's command.
import { createPublicKey, verify } from 'node:crypto';
import { mkdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { approvalBytes, type PayoutIntent, signedForms } from '../core/payouts/intent.ts';
import { createOnce, replaceFile } from './own-files.ts';
import { SigningRefused } from './refused.ts';

const FILE = 'trusted-intent-keys.json';
const KEY = /^[0-9a-f]{64}$/;

/** The keys of a signer's folder in hex, oldest first; null while none was ever trusted. Throws when the file is damaged. */
export async function trustedIntentKeys(folder: string): Promise<readonly string[] | null> {
  const path = join(folder, FILE);
  let text: string;
  try {
    text = await readFile(path, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
    throw error;
  }
  const keys = parsed(text);
  if (keys === null)
    throw new Error(`${path} is damaged: put it back from a copy, or remove it and run "bursar keys trust-intent"`);
  return keys;
}

function parsed(text: string): readonly string[] | null {
  try {
    const { keys } = JSON.parse(text) as { keys: unknown };
    return Array.isArray(keys) && keys.every((key) => typeof key === 'string' && KEY.test(key)) ? (keys as string[]) : null;
  } catch {
    return null;
  }
}

const content = (keys: readonly string[]): string => `${JSON.stringify({ version: 1, keys }, null, 1)}\n`;

/** Trusts the first key of a folder that trusts none yet; returns what is trusted now. */
export async function trustFirstIntentKey(folder: string, key: string): Promise<readonly string[]> {
  await mkdir(folder, { recursive: true, mode: 0o700 });
  if (isIntentKey(key)) await createOnce(join(folder, FILE), content([key]));
  return (await trustedIntentKeys(folder)) ?? [];
}

/** Adds a key, or takes it away; returns what is trusted now. A folder from which the last was taken away trusts nobody. */
export async function changeTrust(folder: string, change: 'trust' | 'distrust', key: string): Promise<readonly string[]> {
  const before = (await trustedIntentKeys(folder)) ?? [];
  const others = before.filter((one) => one !== key);
  const after = change === 'trust' ? [...others, key] : others;
  await mkdir(folder, { recursive: true, mode: 0o700 });
  await replaceFile(join(folder, FILE), content(after));
  return after;
}

/** Whether a text is a public key in hex, 32 bytes. */
export function isIntentKey(text: string): boolean {
  return KEY.test(text);
}

/** Whether this key has signed this intent. */
export function isIntentSigned(intent: PayoutIntent, key: string, signature: Uint8Array): boolean {
  return signedForms(intent).some((bytes) => isSigned(bytes, key, signature));
}

/** Whether an operator has approved it by an API that is trusted, whether it needs that or not. */
export function isApproved(
  { network, payoutId, approval }: Pick<PayoutIntent, 'network' | 'payoutId' | 'approval'>,
  keys: readonly string[],
): boolean {
  return (
    approval != null &&
    keys.includes(approval.keyId) &&
    isSigned(approvalBytes(network, payoutId), approval.keyId, approval.signature)
  );
}

/** Whether an API that is trusted has signed an intent, and an operator has approved it where it needs that. */
export function isTrusted(keys: readonly string[], intent: PayoutIntent, key: string, signature: Uint8Array): boolean {
  if (!keys.includes(key) || !isIntentSigned(intent, key, signature)) return false;
  return intent.needsApproval !== true || isApproved(intent, keys);
}

/** Throws SigningRefused with the rule `intent` for what is not trusted. */
export function checkIntent(keys: readonly string[], intent: PayoutIntent, key: string, signature: Uint8Array): void {
  const refused = (what: string) => new SigningRefused('intent', `payout ${intent.payoutId} ${what}`);
  if (!keys.includes(key)) throw refused('is of an API that is not trusted (bursar keys trust-intent)');
  if (!isIntentSigned(intent, key, signature)) throw refused('is not what its API has signed');
  if (!isTrusted(keys, intent, key, signature))
    throw refused('needs an approval that an API that is trusted has signed (bursar payout approve)');
}

function isSigned(bytes: Uint8Array, key: string, signature: Uint8Array): boolean {
  if (!isIntentKey(key) || signature.length !== 64) return false;
  try {
    const x = Buffer.from(key, 'hex').toString('base64url');
    return verify(null, bytes, createPublicKey({ key: { kty: 'OKP', crv: 'Ed25519', x }, format: 'jwk' }), signature);
  } catch {
    return false;
  }
}
