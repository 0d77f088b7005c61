// The adapter on a real bitcoind as a whole: one that is starting, guarded by another password, or of another chain, and one that pushes.
import { setTimeout as pause } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createUtxoNode } from '../../src/outside/utxo/node/node.ts';
import { startBitcoind } from '../support/bitcoind.ts';
import type { CoreDaemon } from '../support/core-daemon.ts';

const clock = { now: () => Date.now() };

describe('a real bitcoind', () => {
  let daemon: CoreDaemon;
  beforeAll(async () => {
    daemon = await startBitcoind();
    console.log(`node trouble: ${daemon.version}`);
  });
  afterAll(() => daemon?.remove());

  test('another password is unauthorized, another currency is the wrong network', async () => {
    const guarded = createUtxoNode({ currency: 'BTC', url: daemon.url.replace('user:', 'thief:'), network: 'regtest', clock });
    expect(await guarded.condition()).toMatchObject({ state: 'unauthorized' });
    const litecoin = createUtxoNode({ currency: 'LTC', url: daemon.url, network: 'regtest', clock });
    expect(await litecoin.condition()).toMatchObject({ state: 'wrong_network' });
    const mainnet = createUtxoNode({ currency: 'BTC', url: daemon.url, network: 'mainnet', clock });
    expect(await mainnet.condition()).toMatchObject({ state: 'wrong_network' });
    for (const node of [guarded, litecoin, mainnet]) await node.close();
  });

  test('its pushes arrive as hints and as transactions', async () => {
    const node = createUtxoNode({ currency: 'BTC', url: daemon.url, network: 'regtest', clock });
    let hints = 0;
    let transactions = 0;
    const subscription = await node.subscribe({ onHint: () => hints++, onTransactions: (raws) => (transactions += raws.length) });
    expect(subscription).not.toBeNull();
    const within = { timeout: 10_000, interval: 100 };
    await expect.poll(() => subscription?.isLive(), within).toBe(true);
    hints = 0;
    const blockAnnounced = async () => {
      await daemon.mine(101);
      return hints;
    };
    await expect.poll(blockAnnounced, within).toBeGreaterThan(0);
    // not those of a block: its announcement replaces them
    const paymentAnnounced = async () => {
      await daemon.pay(await daemon.address(), '0.001');
      return transactions;
    };
    await expect.poll(paymentAnnounced, within).toBeGreaterThan(0);
    await subscription?.close();
    await node.close();
  });

  test('stopped it is down, starting it warms up, and then it is ready', async () => {
    const node = createUtxoNode({ currency: 'BTC', url: daemon.url, network: 'regtest', clock });
    expect(await node.condition()).toMatchObject({ state: 'ready' });
    await daemon.stop();
    expect(await node.condition()).toMatchObject({ state: 'down' });
    await daemon.start({ wait: false });
    const states: string[] = [];
    for (const deadline = Date.now() + 20_000; states.at(-1) !== 'ready' && Date.now() < deadline; await pause(2)) {
      const { state } = await node.condition();
      if (states.at(-1) !== state) states.push(state);
    }
    expect(states.filter((state) => state !== 'warming_up')).toEqual(['down', 'ready']);
    expect(states).toContain('warming_up');
    await node.close();
  });
});
