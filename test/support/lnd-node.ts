// A real LND on a real bitcoind on regtest; it is built by scripts/peers/lnd.sh when it is not in the cache yet.
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { cpSync, existsSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import https from 'node:https';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import type { LndTarget } from '../../src/outside/lightning/lnd-rest.ts';
import { type CoreDaemon, freePort } from './core-daemon.ts';

export type LndNode = {
  readonly identity: string;
  /** With the macaroon that may do everything. */
  readonly target: LndTarget;
  call<T = Record<string, unknown>>(verb: 'GET' | 'POST' | 'DELETE', path: string, body?: unknown): Promise<T>;
  /** Hex of a macaroon for these methods only. */
  bake(methods: readonly string[]): Promise<string>;
  /** Where others connect to it. */
  readonly peer: string;
  /** Ends it as a crash does. */
  kill(): Promise<void>;
  /** It hangs, and its connections stay, until the function returned is called. */
  freeze(): () => void;
  /** Starts it again on the same folder and ports, and waits until it serves. */
  start(): Promise<void>;
  /** Starts it again with its wallet locked; the function returned unlocks it, and waits until it serves. Of a node with words only. */
  startLocked(): Promise<() => Promise<void>>;
  /** A copy of its folder, made while it is down; the function returned puts it back. */
  backup(): Promise<() => Promise<void>>;
  /** Its disk is lost: it begins anew from its words and the file that names its channels. Of a node with words only. */
  loseDisk(): Promise<void>;
};

/** Long enough for a machine that has ten times as much to do as it has processors: what has ended is not waited for. */
const WAIT_MS = 240_000;

/** The LND has ended: a wait for it ends at once. */
class Ended extends Error {}

/** Path of the executable; builds it the first time. */
export function lndPath(): string {
  const script = fileURLToPath(new URL('../../scripts/peers/lnd.sh', import.meta.url));
  return execFileSync(script, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }).trim();
}

/** What a look finds, once it finds something; at once what it throws as {@link Ended}. */
export async function until<T>(what: string, look: () => Promise<T | false | null | undefined>): Promise<T> {
  let last: unknown;
  for (const end = performance.now() + WAIT_MS; performance.now() < end; await delay(100)) {
    try {
      const found = await look();
      if (found) return found;
    } catch (error) {
      if (error instanceof Ended) throw error;
      last = error;
    }
  }
  throw new Error(`not within ${WAIT_MS} ms: ${what}`, { cause: last });
}

/** What LND refuses to open a channel with while it, its wallet or the other side is not ready; nothing is begun then. */
const NOT_YET = /is not online|wallet is fully synced|not enough witness outputs|[Ss]ynchronizing blockchain/;

/** Opens a channel. A node that has just connected to another, or was started, refuses that until it says that it is there. @param of what LND is asked besides */
export async function openChannel(
  from: LndNode,
  to: Pick<LndNode, 'identity'>,
  of: Readonly<Record<string, unknown>>,
): Promise<void> {
  const asked = { node_pubkey: Buffer.from(to.identity, 'hex').toString('base64'), ...of };
  const opened = await until('the other side of a channel is there', () =>
    from.call('POST', '/v1/channels', asked).then(
      () => 'opened' as const,
      (error: Error) => {
        if (NOT_YET.test(error.message)) throw error;
        return error;
      },
    ),
  );
  if (opened !== 'opened') throw opened;
}

type Place = {
  readonly folder: string;
  readonly alias: string;
  readonly bitcoind: CoreDaemon;
  readonly zmq: readonly number[];
  /** Its wallet has words from which it can be made again. */
  readonly hasWords: boolean;
};

const PASSWORD = 'correct horse battery';
const base64 = (text: string): string => Buffer.from(text).toString('base64');
/** More keys than any of these wallets has used. */
const RECOVERY_WINDOW = 200;

/** Starts a new one. */
export async function openNode({ folder, alias, bitcoind, zmq, hasWords }: Place): Promise<LndNode & { stop(): Promise<void> }> {
  const home = join(folder, alias);
  const [rest, grpc, peer] = [await freePort(), await freePort(), await freePort()];
  const { host, username, password } = new URL(bitcoind.url);
  const passwordFile = join(folder, `${alias}-password`);
  writeFileSync(passwordFile, PASSWORD);
  const args = [
    ...(hasWords ? [`--wallet-unlock-password-file=${passwordFile}`, '--wallet-unlock-allow-create'] : ['--noseedbackup']),
    ...[`--lnddir=${home}`, `--alias=${alias}`, '--bitcoin.regtest', '--bitcoin.node=bitcoind'],
    ...['--bitcoin.defaultchanconfs=1', `--bitcoind.rpchost=${host}`, `--bitcoind.rpcuser=${username}`],
    ...[`--bitcoind.rpcpass=${decodeURIComponent(password)}`, `--bitcoind.zmqpubrawblock=tcp://127.0.0.1:${zmq[0]}`],
    ...[`--bitcoind.zmqpubrawtx=tcp://127.0.0.1:${zmq[1]}`, `--listen=127.0.0.1:${peer}`, `--rpclisten=127.0.0.1:${grpc}`],
    ...[
      `--restlisten=127.0.0.1:${rest}`,
      '--nobootstrap',
      '--accept-keysend',
      '--accept-amp',
      '--tlsdisableautofill',
      '--trickledelay=50',
      '--debuglevel=error',
      '--protocol.option-scid-alias',
      '--protocol.zero-conf',
    ],
  ];
  let child: ChildProcess | null = null;
  let ended: Promise<void> = Promise.resolve();
  let certificate = '';
  let macaroon = '';

  async function call<T>(verb: string, path: string, body?: unknown): Promise<T> {
    return new Promise((resolve, reject) => {
      const request = https.request(
        { host: '127.0.0.1', port: rest, method: verb, path, ca: certificate, agent: false, timeout: 30_000 },
        (response) => {
          let text = '';
          response.setEncoding('utf8').on('data', (part: string) => (text += part));
          response.on('end', () => {
            // of a stream the first line
            if (response.statusCode === 200) resolve(JSON.parse(text.split('\n')[0] ?? '') as T);
            else reject(new Error(`${path}: ${response.statusCode} ${text}`));
          });
        },
      );
      request.on('timeout', () => request.destroy(new Error('timeout')));
      request.on('error', reject);
      request.setHeader('Grpc-Metadata-macaroon', macaroon);
      request.end(body === undefined ? undefined : JSON.stringify(body));
    });
  }
  const untilIt = (what: string, look: () => Promise<boolean>): Promise<boolean> =>
    until(`${alias} ${what}`, async () => {
      const how = child?.exitCode ?? child?.signalCode ?? null;
      if (how !== null) throw new Ended(`${alias} ended with ${how}`);
      return look();
    });
  let words: readonly string[] = [];
  /** @param channels the file that names them, in base64; null for a new node */
  async function makeWallet(channels: string | null): Promise<void> {
    await untilIt('asks for a wallet', async () => {
      if (!existsSync(join(home, 'tls.cert'))) return false;
      certificate = readFileSync(join(home, 'tls.cert'), 'utf8');
      return (await state()) === 'NON_EXISTING';
    });
    if (channels === null)
      words = (await call<{ cipher_seed_mnemonic: readonly string[] }>('GET', '/v1/genseed')).cipher_seed_mnemonic;
    await call('POST', '/v1/initwallet', {
      wallet_password: base64(PASSWORD),
      cipher_seed_mnemonic: words,
      ...(channels === null
        ? {}
        : { recovery_window: RECOVERY_WINDOW, channel_backups: { multi_chan_backup: { multi_chan_backup: channels } } }),
    });
  }
  async function loseDisk(): Promise<void> {
    const channels = readFileSync(join(home, 'data/chain/bitcoin/regtest/channel.backup')).toString('base64');
    await end('SIGKILL');
    rmSync(home, { recursive: true });
    await start(() => makeWallet(channels));
  }
  function launch(given: readonly string[]): void {
    const running = spawn(lndPath(), given, { stdio: 'ignore', env: { PATH: process.env.PATH, HOME: folder } });
    child = running;
    ended = new Promise((resolve) => running.once('exit', () => resolve()));
  }
  const state = async () => (await call<{ state: string }>('GET', '/v1/state')).state;
  async function start(made: () => Promise<void> = async () => undefined): Promise<void> {
    launch(args);
    await made();
    await serves();
  }
  async function serves(): Promise<void> {
    await untilIt('serves', async () => {
      const files = [join(home, 'tls.cert'), join(home, 'data/chain/bitcoin/regtest/admin.macaroon')] as const;
      if (!files.every(existsSync)) return false;
      certificate = readFileSync(files[0], 'utf8');
      macaroon = readFileSync(files[1]).toString('hex');
      const serving = (await state()) === 'SERVER_ACTIVE';
      return serving && (await call<{ synced_to_chain: boolean }>('GET', '/v1/getinfo')).synced_to_chain;
    });
  }
  async function startLocked(): Promise<() => Promise<void>> {
    launch(args.filter((arg) => !arg.startsWith('--wallet-unlock-')));
    await untilIt('is locked', async () => (await state()) === 'LOCKED');
    return async () => {
      await call('POST', '/v1/unlockwallet', { wallet_password: base64(PASSWORD) });
      await serves();
    };
  }
  async function end(signal: NodeJS.Signals): Promise<void> {
    child?.kill(signal);
    await ended;
  }
  async function backup(): Promise<() => Promise<void>> {
    await end('SIGTERM');
    cpSync(home, `${home}-copy`, { recursive: true });
    await start();
    return async () => {
      await end('SIGKILL');
      rmSync(home, { recursive: true });
      renameSync(`${home}-copy`, home);
      await start();
    };
  }
  await start(hasWords ? () => makeWallet(null) : undefined);
  const { identity_pubkey: identity } = await call<{ identity_pubkey: string }>('GET', '/v1/getinfo');
  return {
    identity,
    peer: `127.0.0.1:${peer}`,
    get target() {
      return { url: `https://127.0.0.1:${rest}`, certificate, macaroon };
    },
    call,
    async bake(methods) {
      const permissions = methods.map((action) => ({ entity: 'uri', action }));
      return (await call<{ macaroon: string }>('POST', '/v1/macaroon', { permissions })).macaroon;
    },
    backup,
    loseDisk,
    kill: () => end('SIGKILL'),
    freeze() {
      const frozen = child;
      frozen?.kill('SIGSTOP');
      return () => void frozen?.kill('SIGCONT');
    },
    startLocked,
    stop: () => end('SIGTERM'),
    start: () => start(),
  };
}
