// A real litecoind (Debian's, without ZMQ) for tests, installed by scripts/peers/litecoind.sh when it is not there yet.
import { execFileSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { type CoreDaemon, startCoreDaemon } from './core-daemon.ts';

/** Path of the daemon; installs it the first time. */
export function litecoindPath(): string {
  return execFileSync(fileURLToPath(new URL('../../scripts/peers/litecoind.sh', import.meta.url)), {
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'ignore'],
  }).trim();
}

/** `mweb: true` leaves MWEB at its regtest default (it begins at height 432); otherwise it never begins. */
export async function startLitecoind(options: { mweb: boolean }): Promise<CoreDaemon> {
  const args = ['-mempoolreplacement=1', ...(options.mweb ? [] : ['-vbparams=mweb:-2:0'])];
  return startCoreDaemon({ binary: litecoindPath(), name: 'litecoind', args, zmq: false });
}
