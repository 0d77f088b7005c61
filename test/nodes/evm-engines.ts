// Ethereum's chain for the conformance suite: a real geth, a real anvil and the sandbox's, each for ether and for the token.
import { setTimeout as delay } from 'node:timers/promises';
import { type EvmCode, isUtxo } from '../../src/core/currency.ts';
import { createServedEvm } from '../../src/sandbox/evm/served-evm.ts';
import { addressOf, type EvmTransaction } from '../../src/sandbox/evm/transaction.ts';
import { type Anvil, callData, rawOf, startAnvil } from '../support/evm/anvil.ts';
import { FORWARDER, QUIRKY_TOKEN } from '../support/evm/compiled.ts';
import { startGeth } from '../support/evm/geth.ts';
import { openSeverableProxy } from '../support/evm/severable-proxy.ts';
import type { Engine, Paid } from './engine.ts';

export const EVM_ENGINES: readonly { readonly title: string; readonly currency: EvmCode; start(): Promise<Engine> }[] = (
  ['ETH', 'USDT'] as const
).flatMap((currency) => [
  { title: `anvil (real) ${currency}`, currency, start: () => realEngine(currency, anvilNode) },
  { title: `geth (real) ${currency}`, currency, start: () => realEngine(currency, gethNode) },
  { title: `sandbox ${currency}`, currency, start: () => sandboxEngine(currency) },
]);

/** Five seconds and more. */
const MOST_OFFERS = 1_000;
const addressIn = (script: Buffer): string => `0x${script.subarray(3).toString('hex')}`;

/** A real node, and what the suite does to its chain. */
type RealNode = Pick<Anvil, 'version' | 'url' | 'token' | 'forwarder' | 'rpc' | 'mine' | 'send' | 'secretOf' | 'remove'> & {
  /** Takes the top blocks away. */
  rewind(depth: number): Promise<void>;
  /** Empty blocks in the place of the top ones; the pool forgets everything. */
  replaceTop(depth: number): Promise<void>;
  /** Has the contract that sends tokens on have some. */
  fund(): Promise<void>;
};

async function anvilNode(): Promise<RealNode> {
  const anvil = await startAnvil();
  const { rpc, forwarder } = anvil;
  return {
    ...anvil,
    async rewind(depth) {
      await rpc('anvil_rollback', depth);
    },
    async replaceTop(depth) {
      await rpc('anvil_reorg', depth, []);
      await rpc('anvil_dropAllTransactions');
    },
    async fund() {
      await anvil.deal(forwarder, 10n ** 15n);
    },
  };
}

async function gethNode(): Promise<RealNode> {
  const geth = await startGeth();
  return {
    ...geth,
    async replaceTop(depth) {
      await geth.rewind(depth);
      await geth.forget();
      await geth.mine(depth);
    },
    fund: async () => undefined,
  };
}

/** Removed transactions are sent again after the blocks of the new branch, as peers would. */
async function realEngine(currency: EvmCode, start: () => Promise<RealNode>): Promise<Engine> {
  const node = await start();
  const proxy = await openSeverableProxy(Number(new URL(node.url).port));
  const { rpc, token, forwarder } = node;
  const made = new Map<string, EvmTransaction>();

  function callFor(outputs: readonly Paid[]): { readonly to: string; readonly value: bigint; readonly input: string } {
    const [only] = outputs;
    const total = outputs.reduce((sum, { minor }) => sum + minor, 0n);
    const payees = outputs.map(({ script }) => addressIn(script));
    const amounts = outputs.map(({ minor }) => minor);
    if (only === undefined) return { to: addressOf(Buffer.alloc(32, 7)), value: 1n, input: '0x' };
    if (currency === 'ETH') {
      if (outputs.length === 1) return { to: payees[0] as string, value: total, input: '0x' };
      return { to: forwarder, value: total, input: callData(FORWARDER, 'spread(address[],uint256[])', payees, amounts) };
    }
    if (outputs.length === 1)
      return { to: token, value: 0n, input: callData(QUIRKY_TOKEN, 'transfer(address,uint256)', payees[0] as string, total) };
    const input = callData(FORWARDER, 'spreadTokens(address,address[],uint256[])', token, payees, amounts);
    return { to: forwarder, value: 0n, input };
  }
  const height = async (): Promise<number> => Number(await rpc<string>('eth_blockNumber'));
  async function lostIn(depth: number): Promise<readonly EvmTransaction[]> {
    const top = await height();
    const lost: EvmTransaction[] = [];
    for (let at = top - depth + 1; at <= top; at++) {
      const block = await rpc<{ transactions: string[] }>('eth_getBlockByNumber', `0x${at.toString(16)}`, false);
      for (const hash of block.transactions) lost.push(...[made.get(hash)].filter((one) => one !== undefined));
    }
    return lost;
  }
  async function sendAgain(lost: readonly EvmTransaction[]): Promise<void> {
    for (const one of lost) await offerAgain(one);
  }
  /** One that a rival has replaced, or that the node kept, is refused; geth's pool follows its head back a little later, and refuses until then. */
  async function offerAgain(lost: EvmTransaction): Promise<void> {
    const isUsed = async (): Promise<boolean> =>
      Number(await rpc<string>('eth_getTransactionCount', lost.from, 'latest')) > lost.nonce;
    for (let n = 0; n < MOST_OFFERS; n++) {
      const refusal = await rpc('eth_sendRawTransaction', rawOf(lost)).then(
        () => '',
        (error: Error) => error.message,
      );
      if (!refusal.includes('nonce too low') || (await isUsed())) return;
      await delay(5);
    }
    throw new Error(`${lost.hash} is refused as if its nonce were used`);
  }
  async function rival(original: EvmTransaction, outputs: readonly Paid[]): Promise<EvmTransaction> {
    const next = { ...callFor(outputs), nonce: original.nonce, maxFee: original.maxFee * 2n, tip: original.tip * 2n };
    const sent = await node.send(next, { secret: node.secretOf(original.hash) });
    made.set(sent.hash, sent);
    return sent;
  }

  return {
    name: node.version,
    currency,
    url: proxy.url,
    contract: currency === 'USDT' ? token : null,
    unit: 1n,
    async pay(outputs) {
      if (currency === 'USDT' && outputs.length > 1) await node.fund();
      const sent = await node.send(callFor(outputs), { units: currency === 'USDT' ? 10n ** 15n : 0n });
      made.set(sent.hash, sent);
      return sent.hash;
    },
    replace: async (txid, outputs) => (await rival(made.get(txid) as EvmTransaction, outputs)).hash,
    mine: (blocks) => node.mine(blocks),
    async rewind(depth) {
      const lost = await lostIn(depth);
      await node.rewind(depth);
      await sendAgain(lost);
    },
    async reorg(depth, options = {}) {
      const lost = await lostIn(depth);
      await node.replaceTop(depth);
      if (options.drop) for (const one of lost) await rival(one, []);
      await node.mine(1);
      await sendAgain(lost);
    },
    height,
    async stop() {
      proxy.shut();
    },
    async start() {
      proxy.open();
    },
    async remove() {
      proxy.close();
      await node.remove();
    },
  };
}

/** The sandbox's chain behind its real JSON-RPC; a stop cuts the connection, the chain goes on. */
async function sandboxEngine(currency: EvmCode): Promise<Engine> {
  if (isUtxo(currency)) throw new Error(`${currency} is not on Ethereum's chain`);
  const chain = await createServedEvm({ folder: null, now: () => Date.now() });
  const shares = (outputs: readonly Paid[]) => outputs.map(({ script, minor }) => ({ to: addressIn(script), minor }));
  const known = (txid: string): EvmTransaction => chain.state.known.get(txid) as EvmTransaction;
  return {
    name: `sandbox ${currency}`,
    currency,
    url: chain.url,
    contract: currency === 'USDT' ? '0x5fbdb2315678afecb367f032d93f642f64180aa3' : null,
    unit: 1n,
    pay: async (outputs) => (chain.pay(currency, shares(outputs), null) as EvmTransaction).hash,
    async replace(txid, outputs) {
      if (outputs.length === 0) return (chain.doubleSpend([known(txid)])[0] as EvmTransaction).hash;
      return (chain.replace(known(txid), currency, shares(outputs)) as EvmTransaction).hash;
    },
    async mine(blocks) {
      chain.mine(blocks);
    },
    async rewind(depth) {
      chain.rewind(depth);
    },
    async reorg(depth, options = {}) {
      chain.reorg(depth, options.drop ?? false);
    },
    height: async () => chain.state.active.length - 1,
    async stop() {
      chain.setTrouble({ down: true, fault: null, left: null });
    },
    async start() {
      chain.setTrouble({ down: false, fault: null, left: null });
    },
    remove: chain.stop,
  };
}
