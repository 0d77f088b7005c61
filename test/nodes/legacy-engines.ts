// The chains without segwit for the conformance suite: Dogecoin and Dash as dialects over a real bitcoind, Bitcoin Cash on a real bchd, and
// whatever real dogecoind or dashd the environment names. Where a chain has no replacement, a rival gets into the mempool the only way it
// can: the node forgets its mempool in a restart and sees the rival first.
import { type Bchd, payFrom, startBchd } from '../support/bchd.ts';
import type { UnspentOutput } from '../support/cash-wallet.ts';
import { type DialectNode, startDialect } from '../support/dialect/dialect.ts';
import { decimal, type Engine, freeUnspentOutput, keyHashAddress, type Paid } from './engine.ts';

const BCHD_FEE = 20_000n;

/** Dogecoin or Dash in front of a real bitcoind. */
export async function dialectEngine(currency: 'DOGE' | 'DASH'): Promise<Engine> {
  const node = await startDialect(currency);
  const doge = currency === 'DOGE';
  const maturity = doge ? 240 : 100;
  const fee = doge ? 2_000_000n : 20_000n;
  await node.mine(maturity + 40);
  const spent = new Map<string, UnspentOutput>();
  const used = new Set<string>();

  async function output(): Promise<UnspentOutput> {
    return freeUnspentOutput(await node.rpc('listunspent', maturity), used);
  }
  async function craft(from: UnspentOutput, outputs: readonly Paid[], feeMinor: bigint): Promise<string> {
    const change = from.minor - outputs.reduce((total, one) => total + one.minor, 0n) - feeMinor;
    const to: Record<string, string> = { [await node.rpc<string>('getnewaddress')]: decimal(change) };
    for (const one of outputs) to[keyHashAddress(currency, one.script)] = decimal(one.minor);
    const raw = await node.rpc('createrawtransaction', [{ txid: from.txid, vout: from.vout, sequence: 0xfffffffd }], to);
    const signed = await node.rpc<{ hex: string; complete: boolean }>(
      doge ? 'signrawtransaction' : 'signrawtransactionwithwallet',
      raw,
    );
    if (!signed.complete) throw new Error('the wallet could not sign');
    return signed.hex;
  }
  async function send(from: UnspentOutput, hex: string): Promise<string> {
    const txid = await node.rpc<string>('sendrawtransaction', hex);
    spent.set(txid, from);
    return txid;
  }
  async function rewind(depth: number): Promise<string[]> {
    const height = await node.rpc<number>('getblockcount');
    const lost: string[] = [];
    for (let i = 0; i < depth; i++) lost.push(...(await transactionsAt(node, height - i)));
    await node.rpc('invalidateblock', await node.rpc('getblockhash', height - depth + 1));
    return lost;
  }

  return {
    name: node.version,
    currency,
    url: node.url,
    unit: doge ? 100n : 1n,
    async pay(outputs) {
      const from = await output();
      return send(from, await craft(from, outputs, fee));
    },
    async replace(txid, outputs) {
      const from = spent.get(txid) as UnspentOutput;
      const rival = await craft(from, outputs, fee * 5n);
      if (!doge) await restart(node);
      return send(from, rival);
    },
    mine: (blocks) => node.mine(blocks),
    async rewind(depth) {
      await rewind(depth);
    },
    async reorg(depth, options = {}) {
      const lost = new Set(await rewind(depth));
      const rivals: string[] = [];
      for (const [txid, from] of spent) if (options.drop && lost.has(txid)) rivals.push(await craft(from, [], fee));
      await node.mineExactly(rivals);
      for (let i = 0; i < depth; i++) await node.mineExactly([]);
    },
    height: () => node.rpc('getblockcount'),
    ...(doge
      ? {}
      : { quorums: { lock: (txid) => node.lockTransaction(txid), lockChain: async (height) => node.lockChain(height) } }),
    stop: node.stop,
    start: node.start,
    remove: node.remove,
  };
}

async function transactionsAt(node: DialectNode, height: number): Promise<string[]> {
  return (await node.rpc<{ tx: string[] }>('getblock', await node.rpc('getblockhash', height), true)).tx;
}

async function restart(node: { stop(): Promise<void>; start(): Promise<void> }): Promise<void> {
  await node.stop();
  await node.start();
}

/** A real bchd; its blocks are made here where they must hold certain transactions. */
export async function bchdEngine(): Promise<Engine> {
  const node: Bchd = await startBchd();
  await node.rpc('generate', 160);
  const spent = new Map<string, UnspentOutput>();
  let next = 1;

  async function send(from: UnspentOutput, outputs: readonly Paid[], fee: bigint): Promise<string> {
    const { hex, txid } = payFrom(node, from, outputs, fee);
    await node.rpc('sendrawtransaction', hex);
    spent.set(txid, from);
    return txid;
  }
  const height = (): Promise<number> => node.rpc('getblockcount');

  return {
    name: node.version,
    currency: 'BCH',
    url: node.url,
    unit: 1n,
    pay: async (outputs) => send(await node.coinbaseOf(next++), outputs, BCHD_FEE),
    async replace(txid, outputs) {
      await restart(node);
      return send(spent.get(txid) as UnspentOutput, outputs, BCHD_FEE * 5n);
    },
    async mine(blocks) {
      await node.rpc('generate', blocks);
    },
    async rewind(depth) {
      await node.rpc('invalidateblock', await node.rpc('getblockhash', (await height()) - depth + 1));
    },
    async reorg(depth, options = {}) {
      const tip = await height();
      const lost = new Set<string>();
      for (let i = 0; i < depth; i++) {
        const block = await node.rpc<{ tx: string[] }>('getblock', await node.rpc('getblockhash', tip - i), 1);
        for (const txid of block.tx) lost.add(txid);
      }
      const rivals: string[] = [];
      for (const [txid, from] of spent) if (options.drop && lost.has(txid)) rivals.push(payFrom(node, from, [], BCHD_FEE).hex);
      let parent: string | number = tip - depth;
      for (let i = 0; i <= depth; i++) parent = await node.mineOn(parent, i === 0 ? rivals : []);
    },
    height,
    stop: node.stop,
    start: node.start,
    remove: node.remove,
  };
}
