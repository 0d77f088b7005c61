// Several nodes for one currency, of which one has blocks that no other has: nothing large is booked on its word, and it is not read before
// it has shown its blocks.
import { afterAll, beforeAll, expect, test } from 'vitest';
import { formatAmount } from '../../src/core/money.ts';
import { readChainStatus } from '../../src/store/chain/node-conditions.ts';
import { startBitcoind } from '../support/bitcoind.ts';
import type { CoreDaemon } from '../support/core-daemon.ts';
import { openBursar } from './bursar.ts';

let a: CoreDaemon;
let b: CoreDaemon;
beforeAll(async () => {
  [a, b] = await Promise.all([startBitcoind(), startBitcoind()]);
  await a.mine(110);
  await copyBlocks(a, b);
});
afterAll(() => Promise.all([a?.remove(), b?.remove()]));

const host = (url: string): string => new URL(url).host;

async function copyBlocks(from: CoreDaemon, to: CoreDaemon): Promise<void> {
  const [known, tip] = await Promise.all([to.rpc<number>('getblockcount'), from.rpc<number>('getblockcount')]);
  for (let height = known + 1; height <= tip; height++)
    await to.rpc('submitblock', await from.rpc('getblock', await from.rpc('getblockhash', height), 0));
}

test('blocks that only one node has: nothing above the limit is booked in them until another has them, at the required depth', async () => {
  const bursar = await openBursar('BTC', `m/84'/1'/0'`, [a.url, b.url]);
  try {
    const worker = bursar.worker(100);
    await bursar.settle(worker);
    const [large, small] = [await bursar.owe(2_500_00n), await bursar.owe(900_00n)];
    const txids: string[] = [];
    for (const made of [large, small]) txids.push(await a.pay(made.address, formatAmount(made.amountDue, 'BTC')));
    await b.rpc('generateblock', await b.address(), await Promise.all(txids.map((txid) => a.rpc('getrawtransaction', txid))));
    await b.mine(7);
    await bursar.settle(worker);
    const [status] = await readChainStatus(bursar.ctx.db);
    expect(status).toMatchObject({ node: host(b.url), height: 118, contested: null });
    expect(status?.others).toEqual([
      expect.stringMatching(new RegExp(`^behind: ${host(a.url)}: .*${host(b.url)} is at 118, 8 behind`)),
    ]);
    expect((await bursar.story(large.transactionId)).statuses).toEqual(['started', 'pending']);
    expect((await bursar.story(small.transactionId)).statuses).toEqual(['started', 'pending', 'confirmed', 'succeeded']);
    expect(await bursar.findings()).toEqual([]);
    // two of three confirmations, then the third
    for (const [height, statuses] of [
      [112, ['started', 'pending']],
      [113, ['started', 'pending', 'confirmed', 'succeeded']],
    ] as const) {
      while ((await a.rpc<number>('getblockcount')) < height) {
        const next = (await a.rpc<number>('getblockcount')) + 1;
        await a.rpc('submitblock', await b.rpc('getblock', await b.rpc('getblockhash', next), 0));
      }
      await bursar.settle(worker);
      expect((await bursar.story(large.transactionId)).statuses).toEqual(statuses);
    }
    expect((await bursar.story(large.transactionId)).entries).toBe(1);
  } finally {
    await bursar.close();
    await copyBlocks(b, a);
  }
}, 60_000);
