// The main job on real daemons: a payment made with the wallet of a real bitcoind and of a real litecoind, to an address that the service
// derived, is credited exactly once, through restarts in the middle, a reorganisation and workers that stand in each other's way.
import { HDKey } from '@scure/bip32';
import { mnemonicToSeedSync } from '@scure/bip39';
import { describe, expect, test } from 'vitest';
import type { UtxoCode } from '../../src/core/currency.ts';
import { formatAmount } from '../../src/core/money.ts';
import type { Ports } from '../../src/core/ports.ts';
import { parseRate, type Rate } from '../../src/core/rate.ts';
import { createAddressPool } from '../../src/flow/address-pool.ts';
import { runAudit } from '../../src/flow/audit.ts';
import type { Context } from '../../src/flow/context.ts';
import { createDesk } from '../../src/flow/desk.ts';
import { addMerchant } from '../../src/flow/merchants.ts';
import { createTransaction } from '../../src/flow/transaction-life.ts';
import { createAddressDerivers } from '../../src/outside/address-derivers.ts';
import { createTokens } from '../../src/outside/jwt.ts';
import { createPasswords } from '../../src/outside/password.ts';
import { systemRng } from '../../src/outside/rng.ts';
import { createUtxoNode } from '../../src/outside/utxo-node.ts';
import { readAvailable } from '../../src/store/balances.ts';
import { saveRates } from '../../src/store/rates.ts';
import { addSignerKey } from '../../src/store/xpubs.ts';
import { type ChainWatcher, createChainWatcher } from '../../src/worker/chain-watcher.ts';
import { createJudgeDue } from '../../src/worker/judge-due.ts';
import { createWatchedScripts } from '../../src/worker/watch-list.ts';
import { canonicalVersions, MNEMONIC } from '../keys/vectors.ts';
import { startBitcoind } from '../support/bitcoind.ts';
import type { CoreDaemon } from '../support/core-daemon.ts';
import { startLitecoind } from '../support/litecoind.ts';
import { freshDatabase } from '../support/postgres.ts';

const PEERS: readonly { readonly currency: UtxoCode; readonly account: string; start(): Promise<CoreDaemon> }[] = [
  { currency: 'BTC', account: `m/84'/1'/0'`, start: () => startBitcoind() },
  { currency: 'LTC', account: `m/84'/1'/1'`, start: () => startLitecoind({ mweb: false }) },
];

async function house(currency: UtxoCode, account: string, nodeUrl: string) {
  const { db, drop } = await freshDatabase();
  const clock = { now: () => Date.now() };
  const node = createUtxoNode({ currency, url: nodeUrl, network: 'regtest', clock });
  const ports: Ports = {
    clock,
    rng: systemRng,
    passwords: createPasswords(),
    tokens: createTokens({ clock, audience: 'regtest' }),
    chains: new Map([[currency, node]]),
    rateFeeds: [],
    addresses: createAddressDerivers('regtest'),
  };
  const pool = createAddressPool({ db, ports }, currency, { rangeSize: 10 });
  const ctx: Context = {
    db,
    ports,
    network: 'regtest',
    feeBps: 0,
    settlementSeconds: 86_400,
    desk: createDesk(db, async () => pool.next()),
  };
  const root = HDKey.fromMasterSeed(mnemonicToSeedSync(MNEMONIC), canonicalVersions('regtest'));
  await addSignerKey(db, { currency, xpub: root.derive(account).publicExtendedKey, at: new Date() });
  const usd = parseRate('50000.00') as Rate;
  await saveRates(db, [{ currency, usd, used: [{ source: 'kraken', usd, atMs: Date.now() }], leftOut: [] }] as never, Date.now());
  const { affiliateId } = await addMerchant(ctx, {
    username: 'shop',
    password: 'correct horse battery',
    email: 'shop@example.com',
    businessName: 'Shop',
  });
  const { rows } = await db.query<{ id: bigint }>({
    text: 'select id from merchants where affiliate_id = $1',
    values: [affiliateId],
  });
  const judge = createJudgeDue(ctx, (id, error) => {
    throw new Error(`judge ${id}: ${String(error)}`);
  });
  const watchers: ChainWatcher[] = [];
  return {
    ctx,
    merchantId: (rows[0] as { id: bigint }).id,
    /** A worker that starts. */
    worker() {
      const watcher = createChainWatcher(ctx, currency, { scripts: createWatchedScripts(ctx), blocksPerPass: 2 });
      watchers.push(watcher);
      return watcher;
    },
    async settle(watcher: ChainWatcher) {
      for (let i = 0; i < 40; i++) {
        const result = await watcher.pass();
        while (await judge());
        if (result.caughtUp) return;
      }
      throw new Error('the watcher did not catch up');
    },
    judge,
    async story(id: string) {
      const events = await db.query<{ status: string }>({
        text: 'select status from events where object_id = $1 order by sequence',
        values: [id],
      });
      const deposits = await db.query<{ n: bigint }>({
        text: 'select count(*) as n from ledger.entry where transaction_id = $1',
        values: [id],
      });
      return { statuses: events.rows.map((row) => row.status), entries: Number(deposits.rows[0]?.n) };
    },
    async close() {
      for (const watcher of watchers) await watcher.close();
      await node.close();
      await drop();
    },
  };
}

describe.each(PEERS)('$currency', ({ currency, account, start }) => {
  test('a payment from a real wallet is credited once, whatever happens in the middle', async () => {
    const daemon = await start();
    console.log(`credited once: ${currency} on ${daemon.version}`);
    const bursar = await house(currency, account, daemon.url);
    try {
      await daemon.mine(110);
      let worker = bursar.worker();
      await bursar.settle(worker);
      const made = await createTransaction(bursar.ctx, {
        merchantId: bursar.merchantId,
        usdMinor: 25_00n,
        method: currency,
        label: null,
        email: null,
      });
      expect(await daemon.rpc('validateaddress', made.address)).toMatchObject({ isvalid: true });
      const txid = await daemon.pay(made.address, formatAmount(made.cryptoMinor, currency));
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
      expect((await readAvailable(bursar.ctx.db, bursar.merchantId)).get(currency)).toBe(made.cryptoMinor);
      // the blocks that held it are replaced, and it is mined again: same status, same entry
      const { blockhash } = await daemon.rpc<{ blockhash: string }>('getrawtransaction', txid, true);
      await daemon.rpc('invalidateblock', blockhash);
      for (let i = 0; i < 6; i++) await daemon.rpc('generateblock', await daemon.address(), []);
      await bursar.settle(rival);
      await daemon.mine(3);
      await bursar.settle(rival);
      expect(await bursar.story(made.transactionId)).toMatchObject({ entries: 1 });
      expect((await bursar.story(made.transactionId)).statuses.at(-1)).toBe('succeeded');
      expect((await readAvailable(bursar.ctx.db, bursar.merchantId)).get(currency)).toBe(made.cryptoMinor);
      const report = await runAudit(bursar.ctx);
      expect(report.answers.flatMap((answer) => answer.findings)).toEqual([]);
    } finally {
      await bursar.close();
      await daemon.remove();
    }
  }, 60_000);
});
