// A real bitcoind (Bitcoin Knots) for tests, fetched by scripts/peers/bitcoind.sh when it is not in the cache yet.
import { execFileSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { type CoreDaemon, startCoreDaemon } from './core-daemon.ts';

/** Path of the executable; fetches it the first time. */
export function bitcoindPath(): string {
  return execFileSync(fileURLToPath(new URL('../../scripts/peers/bitcoind.sh', import.meta.url)), {
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'ignore'],
  }).trim();
}

export async function startBitcoind(extra: readonly string[] = []): Promise<CoreDaemon> {
  return startCoreDaemon({ binary: bitcoindPath(), name: 'bitcoind', args: ['-natpmp=0', ...extra], zmq: true });
}
