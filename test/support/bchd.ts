// A real Bitcoin Cash node (bchd) on regtest, built by scripts/peers/bchd.sh when it is not in the cache yet. It has no wallet: unspent are
// mined to a key of ours, signed by libauth, and blocks with chosen transactions on a chosen parent are made here (bchd's own `generate`
// always mines its whole mempool on the tip).
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type CashKey, cashKey, signedPayment, type UnspentOutput } from './cash-wallet.ts';
import { freePort } from './core-daemon.ts';
import { callDaemon, untilUp } from './daemon-rpc.ts';
import { merkleRoot, p2pkh, rawTransaction, type Sealed } from './raw-blocks.ts';
import { compactSize, hash256, i32, reversed, u32 } from './raw-bytes.ts';

export type Bchd = {
  readonly version: string;
  readonly url: string;
  /** The key that `generate` pays to. */
  readonly key: CashKey;
  rpc<T = unknown>(method: string, ...params: unknown[]): Promise<T>;
  /** The coinbase of a block as an output of the key. */
  coinbaseOf(height: number): Promise<UnspentOutput>;
  /** One block on `parent` (a height of the main chain, or the hash of a block made here) with exactly these transactions; its hash. */
  mineOn(parent: number | string, transactions: readonly string[]): Promise<string>;
  stop(): Promise<void>;
  start(): Promise<void>;
  remove(): Promise<void>;
};

const USER = 'user';
const PASSWORD = 'pa%ss';
const CTOR_ABOVE = 1000;

/** Path of the executable; builds it the first time. */
export function bchdPath(): string {
  const script = fileURLToPath(new URL('../../scripts/peers/bchd.sh', import.meta.url));
  return execFileSync(script, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }).trim();
}

export async function startBchd(extra: readonly string[] = []): Promise<Bchd> {
  const folder = mkdtempSync(join(tmpdir(), 'bchd-'));
  const [port, peerPort] = [await freePort(), await freePort()];
  const key = cashKey(0);
  writeFileSync(join(folder, 'bchd.conf'), ''); // else it writes one into the home folder
  const args = [
    ...['--regtest', '--regtestnoreset', '--notls', '--nodnsseed', '--txindex', '--addrindex'],
    ...[`--configfile=${folder}/bchd.conf`, `--datadir=${folder}/data`, `--logdir=${folder}/log`],
    ...[`--rpccert=${folder}/rpc.cert`, `--rpckey=${folder}/rpc.key`, `--rpcuser=${USER}`, `--rpcpass=${PASSWORD}`],
    ...[`--rpclisten=127.0.0.1:${port}`, `--listen=127.0.0.1:${peerPort}`, `--miningaddr=${key.address}`, ...extra],
  ];
  let child: ChildProcess | null = null;
  let ended: Promise<void> = Promise.resolve();

  const url = `http://${USER}:${encodeURIComponent(PASSWORD)}@127.0.0.1:${port}`;
  const rpc = <T>(method: string, ...params: unknown[]): Promise<T> => callDaemon(url, method, params);
  async function start(): Promise<void> {
    const running = spawn(bchdPath(), args, { stdio: 'ignore' });
    child = running;
    ended = new Promise((resolve) => running.once('exit', () => resolve()));
    await untilUp('bchd', running, url);
  }
  async function stop(): Promise<void> {
    child?.kill('SIGTERM');
    await ended;
    child = null;
  }

  await start();
  const info = await rpc<{ subversion: string }>('getnetworkinfo');
  const made = new Map<string, { height: number; time: number }>();
  return {
    version: info.subversion.replaceAll('/', ''),
    url,
    key,
    rpc,
    async coinbaseOf(height) {
      const block = await rpc<{ rawtx: { txid: string; vout: { value: number }[] }[] }>(
        'getblock',
        await rpc('getblockhash', height),
        2,
      );
      const [first] = block.rawtx;
      if (first === undefined) throw new Error('a block without a coinbase');
      return { txid: first.txid, vout: 0, minor: BigInt(Math.round((first.vout[0]?.value ?? 0) * 1e8)) };
    },
    async mineOn(parent, transactions) {
      const hash = typeof parent === 'number' ? await rpc<string>('getblockhash', parent) : parent;
      const known = made.get(hash) ?? (await rpc<{ height: number; time: number }>('getblockheader', hash));
      const block = minedBlock(hash, known, transactions);
      const refused = await rpc<string | null>('submitblock', block.bytes.toString('hex'));
      if (refused !== null) throw new Error(`submitblock: ${refused}`);
      made.set(block.hash, { height: known.height + 1, time: block.time });
      return block.hash;
    },
    stop,
    start,
    async remove() {
      await stop();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** A worked block on a parent; above height 1000 its transactions are put into canonical order. */
function minedBlock(
  parent: string,
  below: { readonly height: number; readonly time: number },
  transactions: readonly string[],
): { bytes: Buffer; hash: string; time: number } {
  const height = below.height + 1;
  const rest = transactions.map((hex): Sealed => {
    const bytes = Buffer.from(hex, 'hex');
    return { bytes, txid: hash256(bytes).reverse().toString('hex') };
  });
  if (height > CTOR_ABOVE) rest.sort((a, b) => (a.txid < b.txid ? -1 : 1));
  const script = Buffer.concat([
    Buffer.from([2]),
    Buffer.from([height & 255, height >> 8]),
    Buffer.from([60]),
    Buffer.alloc(60, 1),
  ]);
  const minor = 50_0000_0000n >> BigInt(Math.floor(height / 150));
  const coinbase = rawTransaction({
    version: 1,
    inputs: [{ txid: '00'.repeat(32), vout: 0xffffffff, script: Buffer.concat([script, Buffer.from(String(Math.random()))]) }],
    outputs: [{ minor, script: p2pkh(Buffer.alloc(20, 9)) }],
  });
  const all = [coinbase, ...rest];
  const root = merkleRoot(all.map((one) => one.txid));
  const time = Math.max(Math.floor(Date.now() / 1000), below.time + 1);
  for (let nonce = 0; ; nonce++) {
    const header = Buffer.concat([i32(0x20000000), reversed(parent), root, u32(time), u32(0x207fffff), u32(nonce)]);
    const hash = hash256(header).reverse();
    if ((hash[0] as number) > 0x7f) continue;
    const bytes = Buffer.concat([header, compactSize(all.length), ...all.map((one) => one.bytes)]);
    return { bytes, hash: hash.toString('hex'), time };
  }
}

/** A payment of unspent outputs of the node's key to output scripts, what is left to the key again. */
export function payFrom(
  { key }: Bchd,
  output: UnspentOutput,
  outputs: readonly { readonly script: Buffer; readonly minor: bigint }[],
  fee: bigint,
): { hex: string; txid: string } {
  const change = output.minor - outputs.reduce((total, one) => total + one.minor, 0n) - fee;
  return signedPayment(key, [output], [...outputs, { script: key.script, minor: change }]);
}
