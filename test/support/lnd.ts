// Two real LND nodes on a real bitcoind on regtest, for the tests that must not trust our own simulator: ours, and a customer's with open
// channels to it. lnd is built by scripts/peers/lnd.sh when it is not in the cache yet.
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { cpSync, existsSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import https from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import type { LndTarget } from '../../src/outside/lightning/lnd-rest.ts';
import { startBitcoind } from './bitcoind.ts';
import { type CoreDaemon, freePort } from './core-daemon.ts';

export type LndNode = {
  readonly identity: string;
  /** With the macaroon that may do everything. */
  readonly target: LndTarget;
  call<T = Record<string, unknown>>(verb: 'GET' | 'POST' | 'DELETE', path: string, body?: unknown): Promise<T>;
  /** Hex of a macaroon for these methods only. */
  bake(methods: readonly string[]): Promise<string>;
  /** Ends it as a crash does. */
  kill(): Promise<void>;
  /** Starts it again on the same folder and ports, and waits until it serves. */
  start(): Promise<void>;
  /** A copy of its folder, made while it is down; the function returned puts it back. */
  backup(): Promise<() => Promise<void>>;
  /** Its disk is lost: it begins anew from its words and the file that names its channels. Of a node with words only. */
  loseDisk(): Promise<void>;
};

export type LndPair = {
  /** Receives for the service. */
  readonly shop: LndNode;
  /** Pays. */
  readonly customer: LndNode;
  /** The customer pays an invoice; resolves with the final status. `msat` only for more than it asks for is not LND's to give. */
  pay(paymentRequest: string): Promise<string>;
  mine(blocks: number): Promise<void>;
  remove(): Promise<void>;
};

const WAIT_MS = 90_000;
const CHANNEL_SAT = 10_000_000;

/** Path of the executable; builds it the first time. */
export function lndPath(): string {
  const script = fileURLToPath(new URL('../../scripts/peers/lnd.sh', import.meta.url));
  return execFileSync(script, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }).trim();
}

async function until<T>(what: string, look: () => Promise<T | false | null | undefined>): Promise<T> {
  let last: unknown;
  for (const end = performance.now() + WAIT_MS; performance.now() < end; await delay(100)) {
    try {
      const found = await look();
      if (found) return found;
    } catch (error) {
      last = error;
    }
  }
  throw new Error(`not within ${WAIT_MS} ms: ${what}`, { cause: last });
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

async function openNode({
  folder,
  alias,
  bitcoind,
  zmq,
  hasWords,
}: Place): Promise<LndNode & { stop(): Promise<void>; readonly peer: string }> {
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
  let words: readonly string[] = [];
  /** @param channels the file that names them, in base64; null for a new node */
  async function makeWallet(channels: string | null): Promise<void> {
    await until(`${alias} asks for a wallet`, async () => {
      if (!existsSync(join(home, 'tls.cert'))) return false;
      certificate = readFileSync(join(home, 'tls.cert'), 'utf8');
      return (await call<{ state: string }>('GET', '/v1/state')).state === 'NON_EXISTING';
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
  async function start(made: () => Promise<void> = async () => undefined): Promise<void> {
    const running = spawn(lndPath(), args, { stdio: 'ignore', env: { PATH: process.env.PATH, HOME: folder } });
    child = running;
    ended = new Promise((resolve) => running.once('exit', () => resolve()));
    await made();
    await until(`${alias} serves`, async () => {
      if (running.exitCode !== null) throw new Error(`${alias} ended with ${running.exitCode}`);
      const files = [join(home, 'tls.cert'), join(home, 'data/chain/bitcoin/regtest/admin.macaroon')] as const;
      if (!files.every(existsSync)) return false;
      certificate = readFileSync(files[0], 'utf8');
      macaroon = readFileSync(files[1]).toString('hex');
      const { state } = await call<{ state: string }>('GET', '/v1/state');
      return state === 'SERVER_ACTIVE' && (await call<{ synced_to_chain: boolean }>('GET', '/v1/getinfo')).synced_to_chain;
    });
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
    stop: () => end('SIGTERM'),
    start: () => start(),
  };
}

/** Starts both and opens two channels between them, half of each on each side: one announced, one private. About 15 s. */
export async function startLndPair({ hasWords = false } = {}): Promise<LndPair> {
  const folder = mkdtempSync(join(tmpdir(), 'lnd-'));
  const zmq = [await freePort(), await freePort()];
  const bitcoind = await startBitcoind([`-zmqpubrawblock=tcp://127.0.0.1:${zmq[0]}`, `-zmqpubrawtx=tcp://127.0.0.1:${zmq[1]}`]);
  await bitcoind.mine(110);
  const [shop, customer] = (await Promise.all(
    ['shop', 'customer'].map((alias) => openNode({ folder, alias, bitcoind, zmq, hasWords: hasWords && alias === 'shop' })),
  )) as [Awaited<ReturnType<typeof openNode>>, Awaited<ReturnType<typeof openNode>>];

  async function mine(blocks: number): Promise<void> {
    await bitcoind.mine(blocks);
    const height = await bitcoind.rpc<number>('getblockcount');
    for (const node of [shop, customer]) {
      await until('the nodes follow the chain', async () => {
        const info = await node.call<{ block_height: number; synced_to_chain: boolean }>('GET', '/v1/getinfo');
        return info.block_height >= height && info.synced_to_chain;
      });
    }
  }
  const { address } = await shop.call<{ address: string }>('GET', '/v1/newaddress?type=WITNESS_PUBKEY_HASH');
  await bitcoind.pay(address, '2');
  await mine(3);
  await shop.call('POST', '/v1/peers', { addr: { pubkey: customer.identity, host: customer.peer }, perm: true });
  for (const isPrivate of [false, true]) {
    await until('money of the node', async () => {
      const { confirmed_balance: sat } = await shop.call<{ confirmed_balance: string }>('GET', '/v1/balance/blockchain');
      return Number(sat) > CHANNEL_SAT;
    });
    await until('a channel', async () => {
      const open = { node_pubkey: Buffer.from(customer.identity, 'hex').toString('base64'), private: isPrivate };
      await shop.call('POST', '/v1/channels', {
        ...open,
        local_funding_amount: String(CHANNEL_SAT),
        push_sat: String(CHANNEL_SAT / 2),
        sat_per_vbyte: '5',
      });
      return true;
    });
    await mine(6);
  }
  const usable = async (): Promise<boolean> => {
    for (const node of [shop, customer]) {
      const { channels = [] } = await node.call<{ channels?: { active: boolean }[] }>('GET', '/v1/channels');
      if (channels.length < 2 || channels.some(({ active }) => !active)) return false;
    }
    const { routes = [] } = await customer.call<{ routes?: unknown[] }>('GET', `/v1/graph/routes/${shop.identity}/1000`);
    return routes.length > 0;
  };
  await until('the channels are usable', usable);
  return {
    shop,
    customer,
    mine,
    async pay(paymentRequest) {
      const body = { payment_request: paymentRequest, timeout_seconds: 20, fee_limit_msat: '10000', no_inflight_updates: true };
      const said = await customer.call<{ result: { status: string } }>('POST', '/v2/router/send', body);
      return said.result.status;
    },
    async remove() {
      await Promise.all([shop.stop(), customer.stop()]);
      await bitcoind.remove();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
