// A second URL that leads to another chain: it takes the place of no node, and nothing of it is read.
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createChainNodes } from '../../src/outside/utxo/by-currency.ts';
import { createWatchedScripts } from '../../src/worker/chain/watch-list.ts';
import { createChainWatcher } from '../../src/worker/chain/watcher.ts';
import { type Anvil, startAnvil } from '../support/evm/anvil.ts';
import { openAlteredNode } from '../support/nodes/altered-node.ts';
import { addressOf, watchChain } from './watched-chain.ts';

const TIMEOUT = 120_000;
/** The first account of anvil's own words. */
const RICH = '0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266';
let anvil: Anvil;
let other: Anvil;
beforeAll(async () => {
  [anvil, other] = await Promise.all([startAnvil(), startAnvil({ args: ['--chain-id', '1'] })]);
}, TIMEOUT);
afterAll(async () => {
  await anvil?.remove();
  await other?.remove();
});

test('a node of another chain reads nothing for one that fails, which goes on when it is back', {
  timeout: TIMEOUT,
}, async () => {
  const relay = await openAlteredNode(anvil.url);
  const chain = await watchChain('ETH', anvil.url);
  const clock = { now: () => Date.now(), steady: () => performance.now() };
  const urls = new Map([['ETH' as const, [relay.url, other.url]]]);
  const nodes = createChainNodes({ network: 'regtest', clock, urls, tokenContract: anvil.token });
  const ctx = { ...chain.ctx, ports: { ...chain.ctx.ports, chains: nodes.chains } };
  const watcher = createChainWatcher(ctx, 'ETH', { scripts: createWatchedScripts(ctx) });
  async function pass(until: (state: string | null) => boolean) {
    for (;;) {
      const result = await watcher.pass();
      if (until(result.state)) return result;
    }
  }
  try {
    await pass((state) => state === 'ready');
    const owed = await chain.owe();
    const address = addressOf(owed);
    const refusesAll = { error: { code: -32005, message: 'daily request count exceeded' } };
    relay.alter({ instead: () => refusesAll });
    await other.rpc('eth_sendTransaction', { from: RICH, to: address, value: '0x5' });
    await other.mine(20);
    const wrong = await pass((state) => state !== 'ready');
    expect(wrong.reason).toContain('daily request count exceeded');
    expect(await chain.facts(owed)).toEqual([]);
    relay.alter({});
    await anvil.send({ to: address, value: 7n });
    await anvil.mine();
    for (let result = await watcher.pass(); !result.caughtUp; ) result = await watcher.pass();
    expect(await chain.facts(owed)).toMatchObject([{ amount: 7n, state: 'mined' }]);
  } finally {
    await watcher.close();
    await nodes.close();
    await chain.close();
    relay.close();
  }
});
