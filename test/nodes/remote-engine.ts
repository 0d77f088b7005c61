// A real dogecoind or dashd on regtest that the environment names (DOGE_RPC_URL, DASH_RPC_URL, with user and password): the conformance suite
// runs on it as on the others. It must have a wallet with some 40 mature unspent, or be new: then they are mined. It is never stopped, so the
// cases that need a restart are left out.
import type { UnspentOutput } from '../support/cash-wallet.ts';
import { callDaemon } from '../support/daemon-rpc.ts';
import { decimal, type Engine, freeUnspentOutput, keyHashAddress, type Paid } from './engine.ts';

type Remote = { readonly title: string; readonly currency: 'DOGE' | 'DASH'; start(): Promise<Engine> };

/** Those that the environment names. */
export function remoteEngines(): readonly Remote[] {
  const named = [
    { currency: 'DOGE', url: process.env.DOGE_RPC_URL },
    { currency: 'DASH', url: process.env.DASH_RPC_URL },
  ] as const;
  return named.flatMap(({ currency, url }) =>
    url === undefined || url === ''
      ? []
      : [{ title: `${currency} at ${new URL(url).host} (real)`, currency, start: () => remoteEngine(currency, url) }],
  );
}

const MATURITY = { DOGE: 240, DASH: 100 };
const HEAVY_MALUS = -100_000_000;

async function remoteEngine(currency: 'DOGE' | 'DASH', url: string): Promise<Engine> {
  const doge = currency === 'DOGE';
  const fee = doge ? 2_000_000n : 20_000n;
  const rpc = <T>(method: string, ...params: unknown[]): Promise<T> => callDaemon(url, method, params);
  const address = (): Promise<string> => rpc('getnewaddress');
  async function mine(blocks: number): Promise<void> {
    await rpc('generatetoaddress', blocks, await address());
  }
  const missing = MATURITY[currency] + 40 - (await rpc<number>('getblockcount'));
  if (missing > 0) await mine(missing);
  const { subversion } = await rpc<{ subversion: string }>('getnetworkinfo');

  const spent = new Map<string, UnspentOutput>();
  const used = new Set<string>();
  async function output(): Promise<UnspentOutput> {
    return freeUnspentOutput(await rpc('listunspent', MATURITY[currency]), used);
  }
  async function send(from: UnspentOutput, outputs: readonly Paid[], feeMinor: bigint): Promise<string> {
    const change = from.minor - outputs.reduce((total, one) => total + one.minor, 0n) - feeMinor;
    const to: Record<string, string> = { [await address()]: decimal(change) };
    for (const one of outputs) to[keyHashAddress(currency, one.script)] = decimal(one.minor);
    const raw = await rpc('createrawtransaction', [{ txid: from.txid, vout: from.vout, sequence: 0xfffffffd }], to);
    const signed = await rpc<{ hex: string }>(doge ? 'signrawtransaction' : 'signrawtransactionwithwallet', raw);
    const txid = await rpc<string>('sendrawtransaction', signed.hex);
    spent.set(txid, from);
    return txid;
  }
  async function rewind(depth: number): Promise<void> {
    const height = await rpc<number>('getblockcount');
    await rpc('invalidateblock', await rpc('getblockhash', height - depth + 1));
  }
  /** Keeps what is in the mempool out of the next blocks, or lets it in again. */
  async function weigh(txids: readonly string[], delta: number): Promise<void> {
    for (const txid of txids) await rpc('prioritisetransaction', txid, ...(doge ? [0, delta] : [delta]));
  }

  return {
    name: subversion.replaceAll('/', ''),
    currency,
    url,
    unit: doge ? 100n : 1n,
    foreign: true,
    replaces: doge,
    pay: async (outputs) => send(await output(), outputs, fee),
    replace: (txid, outputs) => send(spent.get(txid) as UnspentOutput, outputs, fee * 5n),
    mine,
    rewind,
    async reorg(depth, options = {}) {
      await rewind(depth);
      const back = await rpc<string[]>('getrawmempool');
      if (options.drop) {
        for (const txid of back) if (spent.has(txid)) await send(spent.get(txid) as UnspentOutput, [], fee * 10n);
        return mine(depth + 1);
      }
      await weigh(back, HEAVY_MALUS);
      await mine(depth + 1);
      await weigh(back, -HEAVY_MALUS);
    },
    height: () => rpc('getblockcount'),
    stop: () => Promise.reject(new Error('the environment names the daemon: it is not ours to stop')),
    start: () => Promise.resolve(),
    remove: () => Promise.resolve(),
  };
}
