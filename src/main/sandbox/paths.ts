// Where the sandbox of a data folder keeps its files, and its address: the service finds the simulated nodes and exchanges by the file that
// the sandbox's process writes.
import { mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { type CurrencyCode, nodesOf } from '../../core/currency.ts';
import type { RateSourceName } from '../../outside/rates/sources.ts';
import { httpGet } from '../process/http-get.ts';
import { isSupervised } from '../process/life.ts';
import { StartRefused } from '../process/start-refused.ts';

/** Base address of the sandbox's server, and the password of its nodes (user `bursar`). */
export type SandboxEndpoint = {
  readonly url: string;
  readonly secret: string;
  /** Where its Lightning node is, its certificate (PEM), a macaroon that permits receiving and one that permits paying (hex). */
  readonly lightning: {
    readonly url: string;
    readonly certificate: string;
    readonly macaroon: string;
    readonly payMacaroon: string;
  };
};

const FOLDER = 'sandbox';
const KNOWN_WITHIN_MS = 30_000;
/** Whoever has started us starts the sandbox too, and says so when it cannot: on a loaded machine a first start takes minutes. */
const KNOWN_WITHIN_STARTED_MS = 600_000;
const LOOK_EVERY_MS = 15;

/** Where the sandbox keeps its chains, nodes and bank; made where it is missing, for its user only. */
export function sandboxFolder(dataFolder: string): string {
  const folder = join(dataFolder, FOLDER);
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  return folder;
}

/** The file with the sandbox's offset of the clock, in milliseconds. */
export function clockFile(dataFolder: string): string {
  return join(sandboxFolder(dataFolder), 'clock-offset');
}

/** Waits until the sandbox of this data folder has written its address (at a first start it is being created meanwhile). */
export async function sandboxEndpoint(
  dataFolder: string,
  withinMs = isSupervised() ? KNOWN_WITHIN_STARTED_MS : KNOWN_WITHIN_MS,
): Promise<SandboxEndpoint> {
  const file = join(dataFolder, FOLDER, 'endpoints.json');
  const until = performance.now() + withinMs;
  for (;;) {
    try {
      const { url, secret, lightning } = JSON.parse(readFileSync(file, 'utf8')) as SandboxEndpoint;
      return { url, secret, lightning };
    } catch (error) {
      // the sandbox replaces an unusable one
      if (performance.now() > until) {
        throw new StartRefused(
          (error as NodeJS.ErrnoException).code === 'ENOENT'
            ? `no sandbox has run on ${dataFolder}: start one with npm start`
            : `${file} cannot be read: ${(error as Error).message}`,
        );
      }
    }
    await delay(20);
  }
}

/** Whether the sandbox at this address has opened its nodes and answers. */
async function sandboxAnswers({ url, secret }: SandboxEndpoint): Promise<boolean> {
  const authorization = `Basic ${Buffer.from(`bursar:${secret}`).toString('base64')}`;
  try {
    return (await httpGet(new URL('/alive', url), { authorization, withinMs: 1000 })).status === 204;
  } catch {
    return false;
  }
}

/** Waits for it, so that a later failure is real; not longer than this, because it may be down for reasons of its own. */
export async function untilSandboxAnswers(endpoint: () => Promise<SandboxEndpoint>, withinMs: number): Promise<void> {
  const until = performance.now() + withinMs;
  while (performance.now() < until && !(await sandboxAnswers(await endpoint()))) await delay(LOOK_EVERY_MS);
}

/** The RPC address of a simulated node. */
export function sandboxNodeUrl({ url, secret }: SandboxEndpoint, currency: CurrencyCode): string {
  const node = new URL(`/node/${nodesOf(currency).toLowerCase()}`, url);
  node.username = 'bursar';
  node.password = secret;
  return node.href;
}

/** Where the simulated exchange of this name answers. */
export function sandboxRateUrl({ url }: SandboxEndpoint, source: RateSourceName): string {
  return new URL(`/rates/${source}`, url).href;
}
