// The real `npm start` in the sandbox while its processes are killed: whatever dies at whatever moment of a payout, it is paid exactly once.
// And a database that was put back to before its last payouts: what the signer has signed since is written back, nothing is paid twice.
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { runCli } from '../cli/run.ts';
import { payoutClient, until } from '../support/payout-client.ts';
import { dataFolderFor, type Service, startService } from '../support/service.ts';

const TIMEOUT = 600_000;
const environment = { BURSAR_SANDBOX_BLOCK_SECONDS: '0' };
const { folder, remove } = dataFolderFor();
let service: Service;
let base = '';
const { ask, signIn, mine, earn, address, payout, request, sent, becomes, received, arrival, isGreen } = payoutClient({
  base: () => base,
  folder,
});

beforeAll(async () => {
  service = startService({ dataFolder: folder, environment });
  base = await service.ready;
  await signIn();
  await earn('5000.00');
}, TIMEOUT);
afterAll(async () => {
  await service.stop();
  remove();
}, TIMEOUT);

const kill = (pid: number | null): void => {
  if (pid !== null) process.kill(pid, 'SIGKILL');
};

test('kill -9 of worker, signer, API and PostgreSQL in any order: each payout arrives once', { timeout: TIMEOUT }, async () => {
  const made: { readonly id: string; readonly to: string }[] = [];
  const victims = ['worker', 'signer', 'worker', 'postgres', 'worker', 'signer'] as const;
  for (const [at, victim] of victims.entries()) {
    const to = await until(address, 'an address');
    // the next batch need not wait for others
    await until(() => ask('/sandbox/clock', { advance_seconds: 11 }), 'the clock is moved');
    const id = await until(() => request(to), 'a payout is taken');
    made.push({ id, to });
    // a little later each time: before it is signed, while it is, after it was sent
    await delay(40 * at);
    kill(victim === 'postgres' ? service.postgres() : service.processOf(victim));
    await until(() => sent(id), `${id} is sent although ${victim} was killed`);
    await until(() => mine(), 'a block');
  }
  // it is shown as sent once it is signed: the node may get it after the block that was mined then
  for (const { id } of made)
    await until(async () => {
      await mine();
      return (await payout(id)).status === 'completed' ? true : null;
    }, `${id} is completed`);
  for (const { to } of made) expect(await received(to)).toMatchObject({ received: '0.00100000', payments: [{}] });
  await isGreen();
});

/** The database's folder: beside the data folder where PostgreSQL may not enter that. */
function databaseFolder(): string {
  const marker = join(folder, 'postgres-elsewhere');
  return existsSync(marker) ? readFileSync(marker, 'utf8').trim() : join(folder, 'postgres');
}
async function restarted(meanwhile: () => void): Promise<void> {
  await service.stop();
  meanwhile();
  service = startService({ dataFolder: folder, environment });
  base = await service.ready;
  await signIn();
}

test('a database put back to before payouts were sent: what was signed, and the bank files of our folder, are written back; nothing is paid twice', {
  timeout: TIMEOUT,
}, async () => {
  await ask('/set_settings', { payout_approval_above: '1.00' });
  const to = await address();
  const { payout: waiting } = await ask('/request_payout', { method: 'bitcoin', amount: '0.001', destination: to });
  const { id } = waiting as { id: string };
  expect(waiting).toMatchObject({ status: 'pending' });
  const accounts = ['ach:021000021:70001', 'ach:021000021:70002'];
  const byBank = [];
  for (const destination of accounts) {
    const { payout: made } = await ask('/request_payout', { method: 'ach', amount: '100', destination });
    byBank.push((made as { id: string }).id);
  }
  const [paid = '', sentBack = ''] = byBank;
  const copy = `${databaseFolder()}-copy`;
  await restarted(() => execFileSync('cp', ['-a', databaseFolder(), copy]));
  for (const one of [id, paid, sentBack]) await runCli(['payout', 'approve', one], { BURSAR_DATA_DIR: folder });
  const { txid } = await sent(id);
  // signed is not sent yet
  await arrival(to);
  await mine();
  await becomes(id, 'completed');
  await ask('/sandbox/bank', { action: 'settle' });
  const { trace } = await becomes(paid, 'completed');
  await ask('/sandbox/bank', { action: 'return', payout_id: sentBack });
  await becomes(sentBack, 'failed');
  // what else was asked for since is lost with the copy: its money must not leave either
  await restarted(() => {
    rmSync(databaseFolder(), { recursive: true });
    renameSync(copy, databaseFolder());
  });
  const again = await becomes(id, 'completed');
  expect(again).toMatchObject({ txid, error: null });
  expect(await becomes(paid, 'completed')).toMatchObject({ trace });
  expect(await becomes(sentBack, 'failed')).toMatchObject({ error: 'R03' });
  await ask('/sandbox/bank', { action: 'settle' });
  const inAccounts = await Promise.all(accounts.map((account) => ask('/sandbox/receive', { currency: 'USD', address: account })));
  expect(inAccounts).toEqual([
    { received: '99.00', payments: [{ txid: trace, amount: '99.00', confirmations: 1 }] },
    { received: '0.00', payments: [] },
  ]);
  await mine(7);
  expect(await received(to)).toMatchObject({ received: '0.00100000', payments: [{ txid }] });
  await isGreen();
});

test('database and signer put back together: the chain shows what both have forgotten, and nothing is paid twice', {
  timeout: TIMEOUT,
}, async () => {
  await ask('/set_settings', { payout_approval_above: '1.00' });
  const to = await address();
  const { id } = (await ask('/request_payout', { method: 'bitcoin', amount: '0.001', destination: to })).payout as { id: string };
  const places = [databaseFolder(), join(folder, 'signer')];
  await restarted(() => {
    for (const place of places) execFileSync('cp', ['-a', place, `${place}-copy`]);
  });
  await runCli(['payout', 'approve', id], { BURSAR_DATA_DIR: folder });
  const { txid } = await sent(id);
  // signed is not sent yet
  await arrival(to);
  await mine();
  await becomes(id, 'completed');
  await restarted(() => {
    for (const place of places) {
      rmSync(place, { recursive: true });
      renameSync(`${place}-copy`, place);
    }
  });
  const held = await until(async () => {
    const now = await payout(id);
    return now.held_reason === 'unknown_outcome' ? now : null;
  }, 'it is held');
  expect(held).toMatchObject({ status: 'processing', txid: null });
  await expect(ask('/cancel_payout', { payout_id: id })).rejects.toThrow('payout_not_cancellable');
  const { problems } = (await (await fetch(`${base}/readyz`)).json()) as { problems: string[] };
  expect(problems.join()).toContain(`transaction ${txid} spends outputs of ours and pays what ${id} ask for`);
  const elsewhere = await address();
  const asked = await ask('/request_payout', { method: 'bitcoin', amount: '0.001', destination: elsewhere });
  const next = (asked.payout as { id: string }).id;
  expect(await payout(next)).toMatchObject({ status: 'pending', held_reason: 'breaker' });
  await mine(7);
  expect(await received(to)).toMatchObject({ received: '0.00100000', payments: [{ txid }] });
  expect((await runCli(['audit'], { BURSAR_DATA_DIR: folder })).out).toMatch(/^red .*OUT-3/m);

  await runCli(['payout', 'recover', String(txid)], { BURSAR_DATA_DIR: folder });
  expect(await becomes(id, 'completed')).toMatchObject({ txid, error: null });
  await runCli(['audit', '--clear'], { BURSAR_DATA_DIR: folder });
  await runCli(['payout', 'approve', next], { BURSAR_DATA_DIR: folder });
  await sent(next);
  await arrival(elsewhere);
  await mine(7);
  await becomes(next, 'completed');
  expect(await received(elsewhere)).toMatchObject({ received: '0.00100000', payments: [{}] });
  expect(await received(to)).toMatchObject({ received: '0.00100000', payments: [{ txid }] });
  await isGreen();
});
