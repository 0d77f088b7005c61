// The Lightning node of this configuration: the operator's LND, or the sandbox's own.
import { readFileSync, statSync } from 'node:fs';
import { chainNetwork } from '../../core/currency.ts';
import type { LightningPort } from '../../core/lightning/port.ts';
import { createLnd } from '../../outside/lightning/lnd.ts';
import type { LndTarget } from '../../outside/lightning/lnd-rest.ts';
import type { Config } from '../config/variables.ts';
import { StartRefused } from '../process/start-refused.ts';
import { sandboxEndpoint } from '../sandbox/paths.ts';

/** The sandbox's address is read again after this time: another run of it may have another port. */
const REREAD_MS = 1_000;

const HEX = /^(?:[0-9a-fA-F]{2})+$/;
const isPem = (given: string): boolean => given.includes('-----BEGIN');

/** Null where none is configured. Nothing is opened: whoever asks connects. */
export function lightningOf(config: Config): LightningPort | null {
  const { network, dataFolder } = config;
  const target = network === 'sandbox' ? sandboxTarget(dataFolder) : configuredTarget(config);
  return target === null ? null : createLnd(target, { chain: chainNetwork(network) });
}

/** @param which of its macaroons: the one that may receive, or the one that may pay */
export function sandboxTarget(dataFolder: string, which: 'macaroon' | 'payMacaroon' = 'macaroon'): () => Promise<LndTarget> {
  let read: { readonly atMs: number; readonly target: Promise<LndTarget> } | null = null;
  return () => {
    const nowMs = performance.now();
    if (read === null || nowMs - read.atMs > REREAD_MS)
      read = {
        atMs: nowMs,
        target: sandboxEndpoint(dataFolder, 0).then(({ lightning }) => ({ ...lightning, macaroon: lightning[which] })),
      };
    return read.target;
  };
}

/** @throws StartRefused for files that cannot be read */
function configuredTarget({ lndUrl, lndCert, lndMacaroon }: Config): (() => Promise<LndTarget>) | null {
  if (lndUrl === null || lndMacaroon === null) return null;
  return targetOf(lndUrl, lndCert, lndMacaroon, 'BURSAR_LND_MACAROON');
}

/**
 * A node whose certificate and macaroon may be in files of its own: they are read again when they have changed, for LND makes another certificate when the
 * one before has expired.
 * @param name of the variable that names the macaroon. Throws StartRefused for files that cannot be read now; later what was read before counts until they can
 */
export function targetOf(url: string, cert: string | null, macaroon: string, name: string): () => Promise<LndTarget> {
  const read = (): LndTarget => ({
    url,
    certificate: cert === null ? null : certificateOf(cert),
    macaroon: macaroonOf(macaroon, name),
  });
  const files = [...(cert === null || isPem(cert) ? [] : [cert]), ...(HEX.test(macaroon) ? [] : [macaroon])];
  let target = read();
  let seen = stampOf(files);
  return async () => {
    const stamp = stampOf(files);
    if (stamp === seen) return target;
    try {
      target = read();
      seen = stamp;
    } catch {}
    return target;
  };
}

/** Another text when one of the files is another one, or was written. */
function stampOf(files: readonly string[]): string {
  return files
    .map((file) => {
      try {
        const { ino, size, mtimeMs } = statSync(file);
        return `${ino} ${size} ${mtimeMs}`;
      } catch {
        return '';
      }
    })
    .join();
}

/**
 * The certificate that LND is pinned to.
 * @param given PEM (with line breaks or `\n`) or the path of a file with it. Throws StartRefused where there is none.
 */
export function certificateOf(given: string): string {
  const text = isPem(given) ? given.replaceAll('\\n', '\n') : readOf('BURSAR_LND_CERT', given).toString('utf8');
  if (/-----BEGIN CERTIFICATE-----[\s\S]*-----END CERTIFICATE-----/.test(text)) return text;
  throw new StartRefused(`BURSAR_LND_CERT: there is no certificate (PEM) in ${given}`);
}

/**
 * Hex, or the path of the file that LND wrote.
 * @param name of the variable
 */
export function macaroonOf(given: string, name = 'BURSAR_LND_MACAROON'): string {
  return HEX.test(given) ? given : readOf(name, given).toString('hex');
}

function readOf(name: string, path: string): Buffer {
  try {
    return readFileSync(path);
  } catch (error) {
    throw new StartRefused(`${name}: the file that it names cannot be read (${(error as NodeJS.ErrnoException).code})`);
  }
}
