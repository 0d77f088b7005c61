// A real node that is not what it was: restarted with an empty mempool, restored from an old copy (its tip is lower than what we have read),
// ahead of us after we were away. Nothing is lost, nothing is booked twice.
import { expect, test } from 'vitest';
import { formatAmount } from '../../src/core/money.ts';
import { createSimulatedNode } from '../../src/sandbox/utxo/served-node.ts';
import { readChainStatus } from '../../src/store/chain/node-conditions.ts';
import { runCli } from '../cli/run.ts';
import { startBitcoind } from '../support/bitcoind.ts';
import { openBursar } from './bursar.ts';

test('an empty mempool, an old copy, and far ahead', async () => {
  const daemon = await startBitcoind();
  const bursar = await openBursar('BTC', `m/84'/1'/0'`, [daemon.url]);
  try {
    await daemon.mine(110);
    let worker = bursar.worker(100);
    await bursar.settle(worker);
    const [booked, waiting] = [await bursar.owe(50_00n), await bursar.owe(60_00n)];
    await daemon.pay(booked.address, formatAmount(booked.amountDue, 'BTC'));
    await daemon.mine(3);
    await bursar.settle(worker);
    const done = { statuses: ['started', 'pending', 'confirmed', 'succeeded'], entries: 1 };
    expect(await bursar.story(booked.transactionId)).toEqual(done);

    // the mempool is empty after the restart: the payment waits, and is the same one when it is sent again
    const txid = await daemon.pay(waiting.address, formatAmount(waiting.amountDue, 'BTC'));
    const raw = await daemon.rpc<string>('getrawtransaction', txid);
    await bursar.settle(worker);
    await daemon.stop();
    await daemon.start({ extra: ['-persistmempool=0', '-walletbroadcast=0'] });
    await bursar.settle(worker);
    expect(await bursar.story(waiting.transactionId)).toEqual({ statuses: ['started', 'pending'], entries: 0 });
    expect(await states(waiting.transactionId)).toEqual(['gone']);
    await daemon.rpc('sendrawtransaction', raw);
    await bursar.settle(worker);
    expect(await states(waiting.transactionId)).toEqual(['mempool']);

    // an old copy of the node: its chain is ours, only shorter, and then it reads what it had not
    const lost = await daemon.rpc<string>('getblockhash', (await daemon.rpc<number>('getblockcount')) - 2);
    await daemon.rpc('invalidateblock', lost);
    for (let i = 0; i < 3; i++) {
      const pass = await worker.pass();
      expect(pass).toMatchObject({ state: 'ready', caughtUp: false });
      while (await bursar.judge());
    }
    expect(await bursar.story(booked.transactionId)).toEqual(done);
    await daemon.rpc('reconsiderblock', lost);
    // a currency that is not mature on the shorter chain took its transaction out of the mempool
    await daemon.rpc('sendrawtransaction', raw).catch(() => undefined);
    await bursar.settle(worker);
    expect(await bursar.story(booked.transactionId)).toEqual(done);

    // far ahead, after we were away
    await worker.close();
    await daemon.mine(30);
    worker = bursar.worker(7);
    await bursar.settle(worker);
    expect(await bursar.story(booked.transactionId)).toEqual(done);
    expect(await bursar.story(waiting.transactionId)).toEqual(done);
    expect(await bursar.available()).toBe(booked.amountDue + waiting.amountDue);
    expect(await bursar.findings()).toEqual([]);
  } finally {
    await bursar.close();
    await daemon.remove();
  }

  async function states(id: string): Promise<string[]> {
    const found = await bursar.ctx.db.query<{ state: string }>({
      text: 'select state from payments where transaction_id = $1',
      values: [id],
    });
    return found.rows.map((row) => row.state);
  }
}, 60_000);

test('a node that lost its newest blocks: it is reported, its mempool is recorded, nothing is taken as gone and no time passes', async () => {
  const node = await createSimulatedNode({ currency: 'BTC', folder: null, now: () => Date.now() });
  node.mine(5);
  const bursar = await openBursar('BTC', `m/84'/1'/0'`, [node.url]);
  try {
    const worker = bursar.worker(100);
    await bursar.settle(worker);
    const pay = async (owed: { transactionId: string; amountDue: bigint }) =>
      node.pay([{ minor: owed.amountDue, script: await bursar.scriptOf(owed.transactionId) }]);
    const payment = async (id: string) => {
      const text = 'select state, caught_up_at from payments where transaction_id = $1';
      const { rows } = await bursar.ctx.db.query<{ state: string; caught_up_at: Date }>({ text, values: [id] });
      return rows[0];
    };
    const status = async () => (await readChainStatus(bursar.ctx.db))[0];
    const [booked, before, during] = [await bursar.owe(50_00n), await bursar.owe(60_00n), await bursar.owe(70_00n)];
    await pay(booked);
    node.mine(4);
    const waiting = await pay(before);
    await bursar.settle(worker);
    const was = await status();
    expect(was).toMatchObject({ state: 'ready', reason: null, nodeHeight: 119, height: 119 });

    node.rewind(4);
    node.deny(waiting as never, true); // not in its mempool any more, and that says nothing while it is behind
    await pay(during);
    for (let i = 0; i < 3; i++) {
      const pass = await worker.pass();
      expect(pass).toMatchObject({ state: 'ready', caughtUp: false, behind: true, height: 119 });
      expect(pass.alarms).toEqual(['behind what was read: node 115, read 119']);
      while (await bursar.judge());
    }
    expect(await status()).toMatchObject({
      state: 'ready',
      reason: 'behind what was read: node 115, read 119',
      nodeHeight: 115,
      height: 119,
      caughtUpAtMs: was?.caughtUpAtMs,
    });
    expect((await bursar.story(during.transactionId)).statuses).toEqual(['started', 'pending']);
    expect(await payment(during.transactionId)).toMatchObject({
      state: 'mempool',
      caught_up_at: new Date(was?.caughtUpAtMs as number),
    });
    expect(await payment(before.transactionId)).toMatchObject({ state: 'mempool' });
    expect(await payment(booked.transactionId)).toMatchObject({ state: 'mined' });
    expect((await bursar.owe(10_00n)).transactionId).toMatch(/^txn_/);

    const ran = await runCli(['chain', 'status'], { DATABASE_URL: bursar.url });
    expect(ran).toMatchObject({
      code: 1,
      out: expect.stringMatching(/BTC +ready +115 +119 +-4 .*behind what was read: node 115, read 119/),
    });

    node.deny(waiting as never, false);
    node.mine(6);
    await bursar.settle(worker);
    expect(await status()).toMatchObject({ state: 'ready', reason: null });
    expect((await bursar.story(booked.transactionId)).entries).toBe(1);
    expect(await bursar.findings()).toEqual([]);
  } finally {
    await bursar.close();
    await node.stop();
  }
}, 60_000);
