// The key that seals the secrets of webhooks in the database: whoever reads a dump of it must not be able to sign in our name. It is set, or
// made in the data folder at the first start; the API seals with it and the worker opens.
import { randomBytes } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Sealing } from '../../core/ports.ts';
import { createSealing, unsealed } from '../../outside/sealing.ts';
import { createOnce } from '../../signer/own-files.ts';
import { hexKey } from '../config/value-readers.ts';
import type { Config } from '../config/variables.ts';
import { StartRefused } from '../process/start-refused.ts';

/** In the sandbox nothing is sealed. Throws StartRefused for a file that holds no key. */
export async function openWebhookSealing({ network, webhookKey, dataFolder }: Config): Promise<Sealing> {
  if (network === 'sandbox') return unsealed;
  if (webhookKey !== null) return createSealing(webhookKey);
  const path = join(dataFolder, 'webhook-key');
  // of several processes that make it one is first, and all read that one's
  await createOnce(path, `${randomBytes(32).toString('hex')}\n`);
  const text = (await readFile(path, 'utf8')).trim();
  try {
    return createSealing(hexKey(text));
  } catch {
    // its own message could repeat what is in the file
    throw new StartRefused(`${path} holds no key (64 hexadecimal digits): put it back from a copy, or set BURSAR_WEBHOOK_KEY`);
  }
}
