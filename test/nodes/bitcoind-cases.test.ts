// What only a real daemon shows: a mempool that was lost in a restart, and a rival that leaves again; Litecoin's extension blocks (MWEB) on
// a real litecoind.
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { startBitcoind } from '../support/bitcoind.ts';
import type { CoreDaemon } from '../support/core-daemon.ts';
import { startLitecoind } from '../support/litecoind.ts';
import { segwitAddress } from './engine.ts';
import { type WatchedChain, watchChain } from './watched-chain.ts';

describe('a bitcoind that forgets its mempool', () => {
  let daemon: CoreDaemon;
  let chain: WatchedChain;
  const forgetful = ['-persistmempool=0', '-walletbroadcast=0'];
  beforeAll(async () => {
    daemon = await startBitcoind(forgetful);
    await daemon.mine(110);
    console.log(`bitcoind cases: ${daemon.version}`);
  });
  afterAll(() => daemon?.remove());
  beforeEach(async () => {
    chain = await watchChain('BTC', daemon.url);
    await chain.catchUp();
  });
  afterEach(() => chain?.close());

  async function craft(
    output: { txid: string; vout: number; amount: number },
    outputs: Record<string, string>,
    fee: number,
  ): Promise<string> {
    const sent = Object.values(outputs).reduce((total, value) => total + Number(value), 0);
    const change = (output.amount - sent - fee).toFixed(8);
    const raw = await daemon.rpc('createrawtransaction', [{ txid: output.txid, vout: output.vout, sequence: 0xfffffffd }], {
      ...outputs,
      [await daemon.address()]: change,
    });
    return (await daemon.rpc<{ hex: string }>('signrawtransactionwithwallet', raw)).hex;
  }
  const output = async () =>
    (await daemon.rpc<{ txid: string; vout: number; amount: number }[]>('listunspent'))[0] as {
      txid: string;
      vout: number;
      amount: number;
    };

  test('the payment is gone, comes back as the same payment, and is gone again without its output being lost from sight', async () => {
    const owed = await chain.owe();
    const hex = await craft(await output(), { [segwitAddress('bcrt', owed.script)]: '0.5' }, 0.0002);
    const txid = await daemon.rpc<string>('sendrawtransaction', hex);
    await chain.catchUp();
    await daemon.stop();
    await daemon.start();
    await chain.catchUp();
    expect(await chain.facts(owed)).toMatchObject([{ txid, state: 'gone', gone: true, conflictTxid: null }]);
    await daemon.rpc('sendrawtransaction', hex);
    await chain.catchUp();
    expect(await chain.facts(owed)).toMatchObject([{ txid, state: 'mempool', gone: false }]);
    await daemon.mine(1);
    await chain.catchUp();
    expect(await chain.facts(owed)).toMatchObject([{ txid, state: 'mined' }]);
  });

  test('a rival that leaves the mempool no longer conflicts', async () => {
    const owed = await chain.owe();
    const from = await output();
    const hex = await craft(from, { [segwitAddress('bcrt', owed.script)]: '0.5' }, 0.0002);
    const txid = await daemon.rpc<string>('sendrawtransaction', hex);
    await chain.catchUp();
    const rival = await daemon.rpc<string>('sendrawtransaction', await craft(from, {}, 0.002));
    await chain.catchUp();
    expect(await chain.facts(owed)).toMatchObject([{ state: 'conflicted', conflictTxid: rival }]);
    await daemon.stop();
    await daemon.start();
    await chain.catchUp();
    expect(await chain.facts(owed)).toMatchObject([{ txid, state: 'gone', conflictTxid: null }]);
    await daemon.rpc('sendrawtransaction', hex);
    await chain.catchUp();
    expect(await chain.facts(owed)).toMatchObject([{ txid, state: 'mempool', conflictTxid: null, gone: false }]);
  });

  test('pushed by ZMQ, a payment and a block call for a pass', async () => {
    const owed = await chain.owe();
    let hints = 0;
    chain.watcher.onHint(() => hints++);
    // a node publishes to nobody before its subscriber is connected: until the first block arrives, nothing can be expected
    const blocks = async (): Promise<number> => {
      await daemon.mine(1);
      return hints;
    };
    await expect.poll(blocks, { timeout: 10_000, interval: 200 }).toBeGreaterThan(0);
    await chain.catchUp();
    hints = 0;
    await daemon.rpc('sendrawtransaction', await craft(await output(), { [segwitAddress('bcrt', owed.script)]: '0.5' }, 0.0002));
    await expect.poll(() => hints, { timeout: 5_000 }).toBeGreaterThan(0);
    await chain.watcher.pass();
    await expect.poll(async () => (await chain.facts(owed))[0]?.state, { timeout: 5_000 }).toBe('mempool');
    const before = hints;
    await daemon.mine(1);
    await expect.poll(() => hints, { timeout: 5_000 }).toBeGreaterThan(before);
  });
});

describe('a litecoind with MWEB', () => {
  let daemon: CoreDaemon;
  let chain: WatchedChain;
  const wallet = (name: string, method: string, ...params: unknown[]) => daemon.walletRpc(name, method, ...params);
  const mine = async () => wallet('w', 'generatetoaddress', 1, await wallet('w', 'getnewaddress', '', 'bech32'));
  beforeAll(async () => {
    daemon = await startLitecoind({ mweb: true });
    await daemon.mine(431);
    await daemon.rpc('sendtoaddress', await daemon.rpc('getnewaddress', '', 'mweb'), 10);
    await daemon.mine(1);
    await daemon.rpc('createwallet', 'm');
    await wallet('w', 'sendtoaddress', await wallet('m', 'getnewaddress', '', 'mweb'), 7);
    await mine();
    chain = await watchChain('LTC', daemon.url);
    await chain.catchUp();
    console.log(`MWEB cases: ${daemon.version} at height ${await daemon.rpc('getblockcount')}`);
  });
  afterAll(async () => {
    await chain?.close();
    await daemon?.remove();
  });

  test('an ordinary payment, beside what happens in the extension', async () => {
    const owed = await chain.owe();
    await wallet('w', 'sendtoaddress', await wallet('m', 'getnewaddress', '', 'mweb'), 20);
    const txid = await wallet('w', 'sendtoaddress', segwitAddress('rltc', owed.script), 1.5);
    await wallet('m', 'sendtoaddress', await wallet('m', 'getnewaddress', '', 'mweb'), 1);
    expect(await chain.catchUp()).toMatchObject({ state: 'ready', caughtUp: true });
    expect(await chain.facts(owed)).toMatchObject([{ txid, state: 'mempool', amount: 150_000_000n }]);
    await mine();
    expect(await chain.catchUp()).toMatchObject({ blocksRead: 1, caughtUp: true });
    expect(await chain.facts(owed)).toMatchObject([{ txid, state: 'mined', amount: 150_000_000n }]);
  });

  test('outputs that leave the extension to our address (peg-out) are a payment from the mempool on, whatever block holds them', async () => {
    const owed = await chain.owe();
    const txid = await wallet('m', 'sendtoaddress', segwitAddress('rltc', owed.script), 2.5);
    await chain.catchUp();
    expect(await chain.facts(owed)).toMatchObject([{ txid, state: 'mempool', amount: 250_000_000n, foundMined: false }]);
    await mine();
    await chain.catchUp();
    const [mined] = await chain.facts(owed);
    expect(await chain.facts(owed)).toMatchObject([{ state: 'mined', amount: 250_000_000n, foundMined: false }]);
    expect(mined?.txid, 'the HogEx pays it').not.toBe(txid);

    await daemon.rpc('invalidateblock', await daemon.rpc('getbestblockhash'));
    // no miner wants it now: another branch grows without it
    await daemon.rpc('prioritisetransaction', txid, 0, -100_000_000);
    await mine();
    await mine();
    await daemon.rpc('prioritisetransaction', txid, 0, 100_000_000);
    await chain.catchUp();
    expect(await chain.facts(owed)).toMatchObject([{ txid, state: 'mempool', amount: 250_000_000n, gone: false }]);
    await mine();
    await chain.catchUp();
    expect(await chain.facts(owed)).toMatchObject([{ state: 'mined', height: mined!.height! + 2, conflictTxid: null }]);
  });

  test('two peg-outs of the same amount to the same address are two payments', async () => {
    const owed = await chain.owe();
    const address = segwitAddress('rltc', owed.script);
    for (let n = 0; n < 2; n++) await wallet('m', 'sendtoaddress', address, 0.5);
    await chain.catchUp();
    await mine();
    await chain.catchUp();
    await wallet('m', 'sendtoaddress', address, 0.5);
    await chain.catchUp();
    await mine();
    await chain.catchUp();
    expect((await chain.facts(owed)).map((fact) => fact.state)).toEqual(['mined', 'mined', 'mined']);
  });
});
