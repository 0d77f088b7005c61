// A rescan repairs what was missed, and a red result stops payouts until an operator's green full audit: through the commands, as an operator
// uses them.
import { mkdtempSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, test, vi } from 'vitest';
import { runReconciliation, tripIfRed } from '../../src/flow/audit.ts';
import { openBreakers } from '../../src/store/ledger/breakers.ts';
import { RescanRefused, rescan } from '../../src/worker/rescan/rescan-all.ts';
import { askCli, runCli } from '../cli/run.ts';
import { bursar, eachWithReadChain, forget, node, paid, proxy, readOn, worker } from './read-twice.ts';

vi.setConfig({ testTimeout: 60_000 });
eachWithReadChain();

describe('a rescan refuses by name', () => {
  test('what it cannot do', async () => {
    const at = (fromHeight: number) => rescan(bursar.ctx, 'BTC', { fromHeight });
    await expect(rescan(bursar.ctx, 'DOGE', { fromHeight: 1 })).rejects.toThrow(/no node is configured for DOGE/);
    await expect(at(5_000)).rejects.toThrow(/was read up to block \d+: block 5000/);
    proxy.lie = (call, honest) =>
      call.method === 'getblockchaininfo' ? { ...(honest as object), pruned: true, pruneheight: 2 } : honest;
    await expect(at(1)).rejects.toThrow(/is pruned: it has no block below 2, so 1 to 1 cannot be read; rescan from 2/);
    proxy.lie = null;
    node.setTrouble({ down: true, fault: null, left: null });
    await expect(at(1)).rejects.toThrow(RescanRefused);
  });
});

test('the commands: a red audit stops payouts, a rescan repairs, and only a green full audit lets them go on', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'bursar-audit-'));
  const here = { DATABASE_URL: bursar.url, BURSAR_DATA_DIR: folder, BURSAR_NETWORK: 'regtest', BURSAR_BTC_RPC_URL: proxy.url };
  const missed = await paid(7);
  for (let i = 0; i < 5; i++) await worker.pass();
  await forget(missed.txid);
  await bursar.settle(worker);
  await readOn();
  await tripIfRed(bursar.ctx, await runReconciliation(bursar.ctx, 2_000));
  expect(await openBreakers(bursar.ctx.db)).toMatchObject([{ name: 'payouts', trippedBy: ['RECON-1'] }]);
  type Audit = { ok: boolean; breakers: { name: string }[]; cleared: number; chains: { received: string; booked: string }[] };
  expect(await askCli<Audit>(['audit', '--clear'], here, 1)).toMatchObject({
    ok: false,
    breakers: [{ name: 'payouts' }],
    cleared: 0,
  });
  const refused = await runCli(['chain', 'rescan', '--currency', 'XYZ', '--from', '1'], here);
  expect(refused).toMatchObject({ code: 2, err: expect.stringMatching(/^bursar: --currency: XYZ is not one of BTC/) });
  expect((await runCli(['chain', 'rescan', '--currency', 'BTC', '--from', '99999'], here)).err).toMatch(/was read up to block/);
  const done = await runCli(['chain', 'rescan', '--currency', 'btc', '--from', '1'], here);
  expect(done).toMatchObject({ code: 0, out: expect.stringMatching(/found 1 payments that were missed/) });
  expect((await bursar.story(missed.id)).statuses).toEqual(['started', 'pending', 'confirmed', 'succeeded']);
  expect(await askCli<Audit>(['audit'], here)).toMatchObject({ ok: true, breakers: [{ name: 'payouts' }] });
  const cleared = await askCli<Audit>(['audit', '--clear'], here);
  expect(cleared).toMatchObject({ ok: true, breakers: [], cleared: 1 });
  expect(cleared.chains[0]?.received).toBe(cleared.chains[0]?.booked);
  expect(await bursar.available()).toBe(missed.minor);
  await rm(folder, { recursive: true, force: true });
}, 180_000);
