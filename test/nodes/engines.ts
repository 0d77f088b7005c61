// The chains that the conformance suite runs on: real daemons and the sandbox's simulated node, driven in the same way. The actions of
// customer and miners are done here; the product reads the chain through its own adapter.
import type { CurrencyCode, UtxoCode } from '../../src/core/currency.ts';
import { DIALECTS } from '../../src/sandbox/utxo/dialects.ts';
import { createSimulatedNode } from '../../src/sandbox/utxo/served-node.ts';
import { startBitcoind } from '../support/bitcoind.ts';
import type { UnspentOutput } from '../support/cash-wallet.ts';
import type { CoreDaemon } from '../support/core-daemon.ts';
import { startLitecoind } from '../support/litecoind.ts';
import { decimal, type Engine, freeUnspentOutput, type Paid, segwitAddress } from './engine.ts';
import { EVM_ENGINES } from './evm-engines.ts';
import { bchdEngine, dialectEngine } from './legacy-engines.ts';
import { remoteEngines } from './remote-engine.ts';

/** Engines by the name under which the suite prints them. */
export const ENGINES: readonly { readonly title: string; readonly currency: CurrencyCode; start(): Promise<Engine> }[] = [
  { title: 'bitcoind (real)', currency: 'BTC', start: async () => coreEngine('BTC', 'bcrt', await startBitcoind()) },
  {
    title: 'litecoind (real)',
    currency: 'LTC',
    start: async () => coreEngine('LTC', 'rltc', await startLitecoind({ mweb: false })),
  },
  { title: 'bchd (real)', currency: 'BCH', start: bchdEngine },
  { title: 'Dash dialect over a real bitcoind', currency: 'DASH', start: () => dialectEngine('DASH') },
  { title: 'Dogecoin dialect over a real bitcoind', currency: 'DOGE', start: () => dialectEngine('DOGE') },
  ...remoteEngines(),
  ...EVM_ENGINES,
  ...[...DIALECTS.keys()].map((currency) => ({ title: `sandbox ${currency}`, currency, start: () => sandboxEngine(currency) })),
];

const FEE = 20_000n;

/** A real daemon: unspent of its wallet, transactions made by hand so that they can be replaced. */
async function coreEngine(currency: UtxoCode, prefix: string, daemon: CoreDaemon): Promise<Engine> {
  await daemon.mine(130);
  const spent = new Map<string, UnspentOutput>();
  const used = new Set<string>();

  async function output(): Promise<UnspentOutput> {
    return freeUnspentOutput(await daemon.rpc('listunspent', 1), used);
  }
  async function craft(from: UnspentOutput, outputs: readonly Paid[], fee: bigint): Promise<string> {
    const change = from.minor - outputs.reduce((total, one) => total + one.minor, 0n) - fee;
    const to = [
      ...outputs.map((one) => ({ [segwitAddress(prefix, one.script)]: decimal(one.minor) })),
      { [await daemon.address()]: decimal(change) },
    ];
    const raw = await daemon.rpc('createrawtransaction', [{ txid: from.txid, vout: from.vout, sequence: 0xfffffffd }], to);
    const signed = await daemon.rpc<{ hex: string; complete: boolean }>('signrawtransactionwithwallet', raw);
    if (!signed.complete) throw new Error('the wallet could not sign');
    return signed.hex;
  }
  async function rewind(depth: number): Promise<void> {
    const height = await daemon.rpc<number>('getblockcount');
    await daemon.rpc('invalidateblock', await daemon.rpc('getblockhash', height - depth + 1));
  }

  return {
    name: daemon.version,
    currency,
    url: daemon.url,
    unit: 1n,
    async pay(outputs) {
      const from = await output();
      const txid = await daemon.rpc<string>('sendrawtransaction', await craft(from, outputs, FEE));
      spent.set(txid, from);
      return txid;
    },
    async replace(txid, outputs) {
      const from = spent.get(txid) as UnspentOutput;
      const rival = await daemon.rpc<string>('sendrawtransaction', await craft(from, outputs, FEE * 5n));
      spent.set(rival, from);
      return rival;
    },
    async mine(blocks) {
      await daemon.mine(blocks);
    },
    rewind,
    async reorg(depth, options = {}) {
      const height = await daemon.rpc<number>('getblockcount');
      const lost = new Set<string>();
      for (let i = 0; i < depth; i++) {
        const block = await daemon.rpc<{ tx: string[] }>('getblock', await daemon.rpc('getblockhash', height - i));
        for (const txid of block.tx) lost.add(txid);
      }
      await rewind(depth);
      const rivals: string[] = [];
      for (const [txid, from] of spent) if (options.drop && lost.has(txid)) rivals.push(await craft(from, [], FEE));
      const address = await daemon.address();
      await daemon.rpc('generateblock', address, rivals);
      for (let i = 0; i < depth; i++) await daemon.rpc('generateblock', address, []);
    },
    height: () => daemon.rpc('getblockcount'),
    stop: daemon.stop,
    start: () => daemon.start(),
    remove: daemon.remove,
  };
}

/** The sandbox's node behind its real JSON-RPC; a stop cuts the connection, the chain goes on. */
async function sandboxEngine(currency: UtxoCode): Promise<Engine> {
  const node = await createSimulatedNode({ currency, folder: null, now: () => Date.now() });
  node.mine(2);
  const transactions = new Map<string, NonNullable<ReturnType<typeof node.pay>>>();
  const remember = (transaction: ReturnType<typeof node.pay>): string => {
    if (transaction === null) throw new Error('the faucet has not enough');
    transactions.set(transaction.txid, transaction);
    return transaction.txid;
  };
  return {
    name: `sandbox ${currency}`,
    currency,
    url: node.url,
    unit: currency === 'DOGE' ? 100n : 1n,
    pay: async (outputs) => remember(node.pay(outputs)),
    replace: async (txid, outputs) =>
      remember(node.replace(transactions.get(txid) as NonNullable<ReturnType<typeof node.pay>>, outputs)),
    async mine(blocks) {
      node.mine(blocks);
    },
    async rewind(depth) {
      node.rewind(depth);
    },
    async reorg(depth, options = {}) {
      node.reorg(depth, { drop: options.drop ?? false });
    },
    height: async () => node.state.active.length - 1,
    async stop() {
      node.setTrouble({ down: true, fault: null, left: null });
    },
    async start() {
      node.setTrouble({ down: false, fault: null, left: null });
    },
    remove: node.stop,
  };
}
