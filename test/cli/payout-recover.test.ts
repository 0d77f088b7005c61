// `bursar payout recover` of a transaction that was signed here: refused while it is what the books say, and booked once what it pays had failed.
import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { clearAfterAudit, runAudit } from '../../src/flow/audit.ts';
import { progress } from '../../src/flow/payouts/progress.ts';
import { openBreakers } from '../../src/store/ledger/breakers.ts';
import { batchesOf } from '../support/batches.ts';
import { tellFee } from '../support/funded.ts';
import { openServiceOnDatabase, type ServiceOnDatabase } from '../support/service-on-database.ts';
import { askCli, type Environment, runCli } from './run.ts';

// each command is a process of its own
vi.setConfig({ testTimeout: 90_000 });

let world: ServiceOnDatabase;
let here: Environment;
const folder = mkdtempSync(join(tmpdir(), 'bursar-recover-cli-'));
beforeAll(async () => {
  world = await openServiceOnDatabase();
  here = { DATABASE_URL: world.url, BURSAR_DATA_DIR: folder, BURSAR_NETWORK: 'regtest' };
  await tellFee(world.ctx);
});
afterAll(async () => {
  await world.drop();
  rmSync(folder, { recursive: true, force: true });
});

test('a failed payout that is mined after all is completed, once', async () => {
  const batches = batchesOf(world);
  await batches.earn();
  const id = await batches.request();
  const batch = await batches.formed();
  const transaction = await batches.signed(batch);
  const refused = async (): Promise<string> => {
    const { code, err } = await runCli(['payout', 'recover', transaction.txid, '--json'], here);
    expect([code, JSON.parse(err).error]).toEqual([1, 'not_resolvable']);
    return JSON.parse(err).message;
  };
  expect(await refused()).toContain(`is booked as batch ${batch.id}, which is signed`);
  world.spend(randomBytes(32).toString('hex'), batch.inputs);
  await world.mine(6);
  expect(await progress(world.ctx, batch.id)).toBe('failed');
  await world.vanish('BTC', 6);
  await batches.mined(batch, transaction, 6);
  await progress(world.ctx, batch.id);
  await world.admin.query('update outgoing_batches set due_at = null, lease_until = null');
  const named = (await runCli(['audit'], here)).out;
  expect(named).toContain(`${id} has failed and is paid by ${transaction.txid} (bursar payout recover)`);
  expect(await askCli<object>(['payout', 'recover', transaction.txid], here)).toMatchObject({
    txid: transaction.txid,
    currency: 'BTC',
    payout_ids: [id],
    lost: '0.00000000',
  });
  expect((await batches.row(id)).status).toBe('completed');
  expect(await refused()).toContain('which is final');
  await world.admin.query('update outgoing_batches set due_at = null, lease_until = null');
  await clearAfterAudit(world.ctx, await runAudit(world.ctx), 'test');
  expect(await openBreakers(world.ctx.db)).toEqual([]);
});
