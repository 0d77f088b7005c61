// The main job on real daemons: a payment from the wallet of a real bitcoind and of a real litecoind, to an address that the service
// derived, is credited exactly once, through restarts in the middle, a reorganisation and competing workers.
import { describe, expect, test } from 'vitest';
import type { UtxoCode } from '../../src/core/currency.ts';
import { formatAmount } from '../../src/core/money.ts';
import { startBitcoind } from '../support/bitcoind.ts';
import type { CoreDaemon } from '../support/core-daemon.ts';
import { startLitecoind } from '../support/litecoind.ts';
import { openBursar } from './bursar.ts';

const PEERS: readonly { readonly currency: UtxoCode; readonly account: string; start(): Promise<CoreDaemon> }[] = [
  { currency: 'BTC', account: `m/84'/1'/0'`, start: () => startBitcoind() },
  { currency: 'LTC', account: `m/84'/1'/1'`, start: () => startLitecoind({ mweb: false }) },
];

describe.each(PEERS)('$currency', ({ currency, account, start }) => {
  test('a payment from a real wallet is credited once, whatever happens in the middle', async () => {
    const daemon = await start();
    console.log(`credited once: ${currency} on ${daemon.version}`);
    const bursar = await openBursar(currency, account, [daemon.url]);
    try {
      await daemon.mine(110);
      let worker = bursar.worker();
      await bursar.settle(worker);
      const made = await bursar.owe(25_00n);
      expect(await daemon.rpc('validateaddress', made.address)).toMatchObject({ isvalid: true });
      const txid = await daemon.pay(made.address, formatAmount(made.amountDue, currency));
      await bursar.settle(worker);
      expect((await bursar.story(made.transactionId)).statuses).toEqual(['started', 'pending']);
      // the worker dies, blocks come, the next one stops in the middle of the catch-up, the daemon is restarted as well
      await worker.close();
      await daemon.mine(5);
      worker = bursar.worker();
      await worker.pass();
      const rival = bursar.worker();
      await Promise.all([worker.pass(), rival.pass(), bursar.judge()]);
      await worker.close();
      await daemon.stop();
      await daemon.start();
      await bursar.settle(rival);
      const story = await bursar.story(made.transactionId);
      expect(story).toEqual({ statuses: ['started', 'pending', 'confirmed', 'succeeded'], entries: 1 });
      expect(await bursar.available()).toBe(made.amountDue);
      // the blocks that held it are replaced, and it is mined again: same status, same entry
      const { blockhash } = await daemon.rpc<{ blockhash: string }>('getrawtransaction', txid, true);
      await daemon.rpc('invalidateblock', blockhash);
      for (let i = 0; i < 6; i++) await daemon.rpc('generateblock', await daemon.address(), []);
      await bursar.settle(rival);
      await daemon.mine(3);
      await bursar.settle(rival);
      expect(await bursar.story(made.transactionId)).toMatchObject({ entries: 1 });
      expect((await bursar.story(made.transactionId)).statuses.at(-1)).toBe('succeeded');
      expect(await bursar.available()).toBe(made.amountDue);
      expect(await bursar.findings()).toEqual([]);
    } finally {
      await bursar.close();
      await daemon.remove();
    }
  }, 60_000);
});
