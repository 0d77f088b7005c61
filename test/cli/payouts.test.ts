// `bursar payout`: an operator sees every payout, approves those that wait for it, and decides those whose outcome is unknown.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { requestAchPayout } from '../../src/flow/ach/request.ts';
import { requestLightningPayout } from '../../src/flow/lightning/payout-request.ts';
import { setSettings } from '../../src/flow/merchants/settings.ts';
import { requestPayout } from '../../src/flow/payouts/bitcoin-request.ts';
import { cancelPayout } from '../../src/flow/payouts/cancel-and-approve.ts';
import { openIntentKey } from '../../src/main/wiring/intent-key.ts';
import { fund, OUTSIDE, tellFee } from '../support/funded.ts';
import { invoice } from '../support/invoice.ts';
import { openServiceOnDatabase, type ServiceOnDatabase } from '../support/service-on-database.ts';
import { askCli, type Environment, runCli } from './run.ts';

// each command is a process of its own
vi.setConfig({ testTimeout: 90_000 });

let world: ServiceOnDatabase;
let here: Environment;
const folder = mkdtempSync(join(tmpdir(), 'bursar-payout-cli-'));
const BTC = 100_000_000n;
beforeAll(async () => {
  world = await openServiceOnDatabase();
  await openIntentKey(folder);
  here = { DATABASE_URL: world.url, BURSAR_DATA_DIR: folder, BURSAR_NETWORK: 'regtest', BURSAR_UNFINAL_PAYOUT_USD: '1000000' };
  await tellFee(world.ctx);
});
afterAll(async () => {
  await world.drop();
  rmSync(folder, { recursive: true, force: true });
});

/** A merchant of its own with 10 BTC, and a payout of it. */
async function payout(
  shop: string,
  amount: string,
  approvalAbove: string | null = null,
): Promise<{ merchantId: bigint; id: string }> {
  const merchantId = await world.openShop(shop);
  await fund(world.ctx, merchantId, 10n * BTC);
  const change = { payoutApprovalAbove: approvalAbove };
  await setSettings(world.ctx, { merchantId, scopes: new Set(['payouts'] as const), change });
  const { id } = await requestPayout(world.ctx, { merchantId, amount, destination: OUTSIDE });
  return { merchantId, id };
}
const held = (merchantId: bigint) => world.balance(`merchant:${merchantId}:held:BTC`);
const available = (merchantId: bigint) => world.balance(`merchant:${merchantId}:available:BTC`);
type Listed = { data: { payout_id: string; status: string; held_reason: string | null; amount: string }[] };
type Shown = {
  status: string;
  events: { type: string; reason: string }[];
  entries: { kind: string }[];
  approved_by: string | null;
};

test('list shows what is open, show everything of one, approve lets it go on', async () => {
  expect((await runCli(['payout', 'list'], here)).out).toBe('No payout is open.\n');
  const { id } = await payout('waits', '0.5', '0');
  const gone = await payout('gone', '0.1', '0');
  await cancelPayout(world.ctx, { merchantId: gone.merchantId, payoutId: gone.id });
  const { data } = await askCli<Listed>(['payout', 'list'], here);
  expect(data).toEqual([expect.objectContaining({ payout_id: id, status: 'pending', held_reason: 'approval', amount: '0.5' })]);
  const failed = await askCli<Listed>(['payout', 'list', '--status', 'failed'], here);
  expect(failed.data.map((one) => one.payout_id)).toEqual([gone.id]);
  const text = (await runCli(['payout', 'show', id], here)).out;
  expect(text).toContain('pending (held), waits for approval');
  expect(text).toContain(OUTSIDE);
  expect(text).toContain('payout_hold');

  const approved = await askCli<object>(['payout', 'approve', id], here);
  expect(approved).toEqual({ payout_id: id, status: 'processing', held_reason: null });
  const shown = await askCli<Shown>(['payout', 'show', id], here);
  expect(shown).toMatchObject({ status: 'processing', approved_by: expect.any(String) });
  expect(shown.events.map(({ type }) => type)).toEqual(['payout.pending', 'payout.processing']);
});

test('approve and resolve say why not', async () => {
  const { id } = await payout('free', '0.5');
  const refused = async (...words: string[]) => {
    const { code, err } = await runCli(['payout', ...words, '--json'], here);
    return [code, JSON.parse(err).error, JSON.parse(err).message];
  };
  expect(await refused('approve', id)).toEqual([1, 'not_resolvable', 'The payout is processing: it does not wait for approval.']);
  expect((await refused('approve', 'payout_nobody')).slice(0, 2)).toEqual([1, 'payout_not_found']);
  expect((await refused('show', 'payout_nobody')).slice(0, 2)).toEqual([1, 'failed']);
  expect((await refused('resolve', id, '--paid', '--evidence', 'x')).slice(0, 2)).toEqual([1, 'not_resolvable']);
  expect((await refused('resolve', id, '--evidence', 'x'))[0]).toBe(2);
  expect((await refused('resolve', id, '--paid', '--failed', '--evidence', 'x'))[0]).toBe(2);
  expect((await refused('resolve', id, '--paid'))[0]).toBe(2);
  expect((await refused('resolve', id, '--paid', '--evidence', ' '))[0]).toBe(2);
  expect((await refused('list', '--status', 'lost'))[0]).toBe(2);
});

test.each(['paid', 'failed'] as const)('resolve --%s ends one whose outcome is unknown, with its evidence', async (outcome) => {
  const { id, merchantId } = await payout(`unknown.${outcome}`, '4');
  const before = await world.balance('asset:chain:BTC');
  await world.admin.query(`update payouts set step = 'held', held_reason = 'unknown_outcome' where id = $1`, [id]);
  expect(await askCli<Shown>(['payout', 'resolve', id, `--${outcome}`, '--evidence', 'letter of 3 May'], here)).toEqual({
    payout_id: id,
    status: outcome === 'paid' ? 'completed' : 'failed',
  });
  expect(await held(merchantId)).toBe(0n);
  expect(await available(merchantId)).toBe(outcome === 'paid' ? 6n * BTC : 10n * BTC);
  // nothing was signed here: outputs that are none of ours have paid it, if it was paid
  expect(await world.balance('asset:chain:BTC')).toBe(before);
  expect(await world.balance('asset:chain:BTC:outbound')).toBe(0n);
  const shown = await askCli<Shown & { error: string | null; fee: string | null }>(['payout', 'show', id], here);
  expect(shown.events.at(-1)?.reason).toContain('letter of 3 May');
  expect(shown).toMatchObject(outcome === 'paid' ? { fee: '0.00000000', error: null } : { fee: null, error: 'letter of 3 May' });
  expect((await runCli(['payout', 'resolve', id, '--failed', '--evidence', 'again'], here)).code).toBe(1);
  expect((await world.findings()).filter((finding) => /^(INV-5|INV-12|PAY-1|OUT-1)/.test(finding))).toEqual([]);
});

test('a payout by ach shows the last four digits of its account, and each amount in the currency of its account', async () => {
  const merchantId = await world.openShop('bank');
  await fund(world.ctx, merchantId, BTC);
  const asked = { merchantId, amount: '250', destination: 'ach:021000021:123456789', sourceCurrency: null };
  const { id } = await requestAchPayout(world.ctx, asked);
  const { out } = await runCli(['payout', 'show', id], here);
  expect(out).toContain('ach:021000021:…6789:checking');
  expect(out).not.toContain('123456789');
  expect(out).toMatch(new RegExp(`merchant:${merchantId}:available:BTC +0\\.00250000`));
  expect(out).toMatch(new RegExp(`merchant:${merchantId}:held:USD +-250\\.00`));
});

test('a payout over Lightning shows the hash of its payment, by which it is recovered', async () => {
  const merchantId = await world.openShop('bolt');
  await fund(world.ctx, merchantId, BTC);
  const hash = 'ab'.repeat(32);
  const paymentRequest = invoice({ sat: 1_000, hash });
  const asked = { merchantId, amount: '0.00001', destination: paymentRequest, paymentRequest };
  const { id } = await requestLightningPayout(world.ctx, asked);
  const shown = await askCli<object>(['payout', 'show', id], here);
  expect(shown).toMatchObject({ payout_id: id, payment_hash: hash });
  expect(shown).not.toHaveProperty('txid');
  expect((await runCli(['payout', 'show', id], here)).out).toMatch(new RegExp(`^payment hash +${hash}$`, 'm'));
});

test('cancel denies one that waits, and only that', async () => {
  const { merchantId, id } = await payout('denied', '0.5', '0');
  const before = await available(merchantId);
  expect(await askCli<object>(['payout', 'cancel', id], here)).toEqual({ payout_id: id, status: 'failed' });
  expect(await available(merchantId)).toBe(10n * BTC);
  expect(before).toBeLessThan(10n * BTC);
  const { events } = await askCli<Shown>(['payout', 'show', id], here);
  expect(events.at(-1)?.reason).toMatch(/^cancelled by the operator \(\S+\)$/);
  const other = await payout('leaves', '0.5');
  const refused = await runCli(['payout', 'cancel', other.id], here);
  expect([refused.code, refused.err]).toEqual([1, expect.stringContaining('only a pending one can be cancelled')]);
  expect((await runCli(['payout', 'cancel', 'payout_none'], here)).err).toContain('There is no such payout');
});
