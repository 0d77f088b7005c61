// Starts a real bitcoind or litecoind on free ports of the loopback, in a folder of its own, with a wallet; for the tests that must not
// trust our own simulator.
import { type ChildProcess, spawn } from 'node:child_process';
import { randomInt } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { callDaemon, untilUp } from './daemon-rpc.ts';

export type CoreDaemon = {
  /** What it says it is, e.g. `Satoshi:29.4.3`. */
  readonly version: string;
  /** With user and password, as the configuration wants it. */
  readonly url: string;
  readonly pid: number;
  /** Calls the node (its wallet's methods too); throws with the node's text. */
  rpc<T = unknown>(method: string, ...params: unknown[]): Promise<T>;
  /** Calls one of several wallets. */
  walletRpc<T = unknown>(wallet: string, method: string, ...params: unknown[]): Promise<T>;
  /** A new address of its wallet. */
  address(): Promise<string>;
  /** Mines to its own wallet; the hashes of the blocks. */
  mine(blocks: number): Promise<string[]>;
  /** Sends an amount (decimal string) to an address; the txid. */
  pay(address: string, amount: string): Promise<string>;
  /** Stops it and keeps its folder. */
  stop(): Promise<void>;
  /** Starts it again on the same folder and port; `wait: false` returns at once, while it may still be warming up. */
  start(options?: { wait?: boolean; extra?: readonly string[] }): Promise<void>;
  /** Stops it and removes its folder. */
  remove(): Promise<void>;
};

export type CoreDaemonOptions = {
  readonly binary: string;
  readonly name: string;
  readonly args: readonly string[];
  readonly zmq: boolean;
};

/** Below those that the system gives to connections on their way out: a daemon takes its port seconds after it was chosen, and again when it is started again. */
const PORTS = { from: 12_000, to: 32_000 };

/** A port of this machine that nobody listens on. */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = randomInt(PORTS.from, PORTS.to);
    const server = createServer();
    const isFree = await new Promise<boolean>((resolve) => {
      server.once('error', () => resolve(false));
      server.listen(port, '127.0.0.1', () => server.close(() => resolve(true)));
    });
    if (isFree) return port;
  }
}

export async function startCoreDaemon(options: CoreDaemonOptions): Promise<CoreDaemon> {
  const folder = mkdtempSync(join(tmpdir(), `${options.name}-`));
  const port = await freePort();
  const zmqPorts = options.zmq ? [await freePort(), await freePort()] : [];
  const args = [
    ...['-regtest', `-datadir=${folder}`, '-txindex=1', '-server=1', '-listen=0', '-dnsseed=0', '-discover=0', '-upnp=0'],
    ...[
      '-rpcbind=127.0.0.1',
      '-rpcallowip=127.0.0.1',
      `-rpcport=${port}`,
      '-rpcuser=user',
      '-rpcpassword=pa%ss',
      '-fallbackfee=0.0001',
    ],
    ...(options.zmq ? [`-zmqpubrawtx=tcp://127.0.0.1:${zmqPorts[0]}`, `-zmqpubhashblock=tcp://127.0.0.1:${zmqPorts[1]}`] : []),
    ...options.args,
  ];
  let child: ChildProcess | null = null;
  let ended: Promise<void> = Promise.resolve();
  const url = `http://user:pa%25ss@127.0.0.1:${port}`;

  const rpc = <T>(method: string, ...params: unknown[]): Promise<T> => callDaemon(url, method, params);
  async function start(how: { wait?: boolean; extra?: readonly string[] } = {}): Promise<void> {
    child = spawn(options.binary, [...args, ...(how.extra ?? [])], { stdio: 'ignore' });
    const running = child;
    ended = new Promise((resolve) => running.once('exit', () => resolve()));
    if (how.wait === false) return;
    await untilUp(options.name, running, url);
    const wallets = await rpc<string[]>('listwallets');
    if (wallets.length === 0) await rpc('loadwallet', 'w').catch(() => rpc('createwallet', 'w'));
  }
  async function stop(): Promise<void> {
    child?.kill('SIGTERM');
    await ended;
    child = null;
  }

  await start();
  const info = await rpc<{ subversion: string }>('getnetworkinfo');
  const address = (): Promise<string> => rpc('getnewaddress', '', 'bech32');
  return {
    version: info.subversion.replaceAll('/', ''),
    url,
    get pid() {
      return child?.pid ?? 0;
    },
    rpc,
    walletRpc: (wallet, method, ...params) => callDaemon(`${url}/wallet/${wallet}`, method, params),
    address,
    mine: async (blocks) => rpc('generatetoaddress', blocks, await address()),
    pay: (to, amount) => rpc('sendtoaddress', to, amount),
    stop,
    start,
    async remove() {
      await stop();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
