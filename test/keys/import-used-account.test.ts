// An account that was used elsewhere before it is imported: the chain is searched, on a real bitcoind, and addresses continue above the
// last one that was paid. Through the command, as an operator uses it.
import { mkdtempSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { HDKey } from '@scure/bip32';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { createAddressDeriver } from '../../src/outside/utxo/derive.ts';
import { createUtxoNode } from '../../src/outside/utxo/node/node.ts';
import { listKeys } from '../../src/store/chain/xpubs.ts';
import { GAP, scanAccount } from '../../src/worker/rescan/account-scan.ts';
import { askCli, runCli } from '../cli/run.ts';
import { startBitcoind } from '../support/bitcoind.ts';
import type { CoreDaemon } from '../support/core-daemon.ts';
import { freshDatabase } from '../support/postgres.ts';
import { account, canonicalVersions } from './vectors.ts';

vi.setConfig({ testTimeout: 120_000, hookTimeout: 120_000 });

const root = account('BTC', 'regtest');
const derivers = ([0, 1] as const).map((chain) =>
  createAddressDeriver({ currency: 'BTC', network: 'regtest', xpub: root.publicExtendedKey, chain }),
);
const addressOf = (chain: 0 | 1, index: number): string => derivers[chain]!.derive(index).address;
type Imported = {
  next_index: number;
  outcome: string;
  asked: null | { by: string; to: number; last_receive_index: number | null };
};

describe.each([
  { node: 'that keeps block filters', extra: ['-blockfilterindex=1'], by: 'filters' },
  { node: 'without block filters', extra: [], by: 'blocks' },
])('on a bitcoind $node', ({ extra, by }) => {
  let node: CoreDaemon;
  let database: Awaited<ReturnType<typeof freshDatabase>>;
  let folder: string;
  let here: Record<string, string>;
  beforeAll(async () => {
    node = await startBitcoind(extra);
    database = await freshDatabase();
    folder = mkdtempSync(join(tmpdir(), 'bursar-import-'));
    here = { DATABASE_URL: database.url, BURSAR_DATA_DIR: folder, BURSAR_NETWORK: 'regtest', BURSAR_BTC_RPC_URL: node.url };
    await node.mine(101);
  });
  afterAll(async () => {
    await node?.remove();
    await database?.drop();
    await rm(folder, { recursive: true, force: true });
  });
  const importing = (...more: string[]) =>
    askCli<Imported>(['keys', 'import-xpub', '--currency', 'BTC', '--xpub', root.publicExtendedKey, ...more], here);

  test('goes on above the last index that was paid: spent or not, in a block or the mempool, whatever its order', async () => {
    expect(await importing()).toMatchObject({ next_index: 0, asked: { by, last_receive_index: null } });
    await node.pay(addressOf(0, 7), '1');
    await node.pay(addressOf(0, 2), '1');
    await node.pay(addressOf(1, 30), '1');
    await node.mine(1);
    expect(await importing()).toMatchObject({
      outcome: 'in_use',
      next_index: 8,
      asked: { by, to: 102, last_receive_index: 7, last_change_index: 30 },
    });
    await node.pay(addressOf(0, 12), '1');
    const imported = await runCli(['keys', 'import-xpub', '--currency', 'BTC', '--xpub', root.publicExtendedKey], here);
    expect(imported.out).toMatch(/blocks 0 to 102 .* and the mempool: the account was paid up to index 12, its change up to 30/);
    expect(imported.out).toMatch(/It does not show addresses that were given out and never paid/);
  });

  test('looks on behind what it found, also for what was paid before that', async () => {
    const port = createUtxoNode({ currency: 'BTC', url: node.url, network: 'regtest', clock: { now: () => Date.now() } });
    await node.pay(addressOf(0, 2 * GAP - 10), '1');
    await node.mine(1);
    await node.pay(addressOf(0, GAP - 5), '1');
    await node.mine(1);
    const scriptOf = (chain: 0 | 1, index: number) => derivers[chain]!.derive(index).script;
    const heights: number[] = [];
    const use = await scanAccount(port, { scriptOf, fromHeight: 0, onProgress: (height) => heights.push(height) });
    expect(use).toMatchObject({ receive: 2 * GAP - 10, change: 30, by });
    expect(Math.max(...heights)).toBe(await node.rpc('getblockcount'));
    await port.close();
  });

  test('finds what was mined while it read', async () => {
    const port = createUtxoNode({ currency: 'BTC', url: node.url, network: 'regtest', clock: { now: () => Date.now() } });
    const fresh = account('BCH', 'regtest').publicExtendedKey;
    const [receiving, change] = ([0, 1] as const).map((chain) =>
      createAddressDeriver({ currency: 'BTC', network: 'regtest', xpub: fresh, chain }),
    );
    const scriptOf = (chain: 0 | 1, index: number) => (chain === 0 ? receiving : change)!.derive(index).script;
    let isMined = false;
    const mined = {
      ...port,
      async mempool() {
        if (!isMined) {
          isMined = true;
          await node.pay(receiving!.derive(5).address, '1');
          await node.mine(1);
        }
        return port.mempool();
      },
    };
    const use = await scanAccount(mined, { scriptOf, fromHeight: 0 });
    expect(use).toMatchObject({ receive: 5, change: null, toHeight: await node.rpc('getblockcount'), by });
    await port.close();
  });

  test('takes the index of an operator who knows better, and never goes back', async () => {
    expect(await importing('--start', '20000')).toMatchObject({ next_index: 20_000, asked: null });
    expect(await importing('--start', '5')).toMatchObject({ next_index: 20_000 });
    const wrong = await runCli(['keys', 'import-xpub', '--currency', 'BTC', '--xpub', 'x', '--start', '-1'], here);
    expect(wrong).toMatchObject({ code: 2, err: expect.stringMatching(/Accepted: a whole number/) });
  });
});

test('a first index without room above it is refused with the limit, and the key in use stays', async () => {
  const database = await freshDatabase();
  const folder = mkdtempSync(join(tmpdir(), 'bursar-import-'));
  const here = { DATABASE_URL: database.url, BURSAR_DATA_DIR: folder, BURSAR_NETWORK: 'mainnet' };
  const importing = (xpub: string, start: number) =>
    runCli(['keys', 'import-xpub', '--currency', 'BTC', '--xpub', xpub, '--start', String(start), '--json'], here);
  const highest = 2 ** 31 - 10_000_000;
  const [inUse, other] = ['', 'another'].map((passphrase) => account('BTC', 'mainnet', passphrase).publicExtendedKey) as [
    string,
    string,
  ];
  const keys = () => listKeys(database.db);
  try {
    expect(await importing(inUse, highest)).toMatchObject({ code: 0 });
    const before = await keys();
    expect(before).toMatchObject([{ xpub: inUse, nextIndex: highest, retiredAt: null }]);
    for (const [xpub, start] of [
      [other, highest + 1],
      [other, 2 ** 31 - 5],
      [inUse, highest + 1],
    ] as const) {
      const { code, err } = await importing(xpub, start);
      expect(code).toBe(1);
      expect(err).toContain(`at index ${start} of this account`);
      expect(err).toContain(`Accepted: ${highest} or lower (--start)`);
      expect(await keys()).toEqual(before);
    }
    expect(await importing(inUse, 0)).toMatchObject({ code: 0 });
    expect(await importing(other, 0)).toMatchObject({ code: 0 });
    // one that comes back goes on where it stopped
    await database.db.query({ text: 'update account_xpubs set next_index = next_index + 1 where xpub = $1', values: [inUse] });
    expect((await importing(inUse, 0)).err).toContain(`at index ${highest + 1} of this account`);
    expect(await keys()).toMatchObject([{ xpub: inUse }, { xpub: other, retiredAt: null }]);
  } finally {
    await database.drop();
    await rm(folder, { recursive: true, force: true });
  }
});

test('an account that a wallet writes with another parent is the same account', async () => {
  const database = await freshDatabase();
  const folder = mkdtempSync(join(tmpdir(), 'bursar-import-'));
  const here = { DATABASE_URL: database.url, BURSAR_DATA_DIR: folder, BURSAR_NETWORK: 'regtest' };
  const { chainCode, publicKey, index } = root as { chainCode: Uint8Array; publicKey: Uint8Array; index: number };
  const parentless = { versions: canonicalVersions('regtest'), chainCode, publicKey, depth: 3 };
  const spelled = [index, 0x8000_0001].map((at) => new HDKey({ ...parentless, index: at }).publicExtendedKey);
  const importing = (currency: string, xpub: string, ...more: string[]) =>
    ['keys', 'import-xpub', '--currency', currency, '--xpub', xpub, ...more] as const;
  try {
    expect(new Set([root.publicExtendedKey, ...spelled]).size).toBe(3);
    expect(await askCli([...importing('BTC', root.publicExtendedKey, '--start', '40')], here)).toMatchObject({
      outcome: 'first',
    });
    for (const xpub of spelled) {
      const again = { outcome: 'in_use', next_index: 40, xpub: root.publicExtendedKey };
      expect(await askCli([...importing('BTC', xpub)], here)).toMatchObject(again);
      expect((await runCli([...importing('LTC', xpub)], here)).err).toMatch(/serves BTC already/);
    }
  } finally {
    await database.drop();
    await rm(folder, { recursive: true, force: true });
  }
});

test('where no node can be asked and payments are worth something, the first index must be said', async () => {
  const database = await freshDatabase();
  const folder = mkdtempSync(join(tmpdir(), 'bursar-import-'));
  const here = { DATABASE_URL: database.url, BURSAR_DATA_DIR: folder, BURSAR_NETWORK: 'mainnet' };
  const command = ['keys', 'import-xpub', '--currency', 'BTC', '--xpub', account('BTC').publicExtendedKey];
  try {
    expect(await runCli(command, here)).toMatchObject({
      code: 1,
      err: expect.stringMatching(
        /cannot be asked how far this account was used: no node of BTC is configured\. Give .* with --start/,
      ),
    });
    expect(await askCli([...command, '--start', '3'], here)).toMatchObject({ outcome: 'first', next_index: 3 });
    const down = { ...here, BURSAR_BTC_RPC_URL: 'http://user:password@127.0.0.1:9' };
    expect((await runCli(command, down)).err).toMatch(/cannot be asked how far this account was used: the node of BTC is down/);
  } finally {
    await database.drop();
    await rm(folder, { recursive: true, force: true });
  }
});
