// Automatic payouts: when one is requested, how much it pays, and when they rest.
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Context } from '../../../src/flow/context.ts';
import { setSettings } from '../../../src/flow/merchants/settings.ts';
import { requestAutomaticPayouts } from '../../../src/flow/payouts/automatic-payouts.ts';
import { approvePayout, cancelPayout } from '../../../src/flow/payouts/cancel-and-approve.ts';
import {
  getPayoutSettings,
  type PayoutSettingsChange,
  setPayoutSettings,
  signSettings,
} from '../../../src/flow/payouts/settings.ts';
import { announceDue, readPayoutSettings } from '../../../src/store/payouts/settings.ts';
import { FEE_MAX, fund, OUTSIDE, tellFee } from '../../support/funded.ts';
import { portsFor } from '../../support/ports.ts';
import { openServiceOnDatabase, type ServiceOnDatabase } from '../../support/service-on-database.ts';

let world: ServiceOnDatabase;
let ctx: Context;
let shops = 0;
beforeAll(async () => {
  world = await openServiceOnDatabase();
  ({ ctx } = world);
  await tellFee(ctx);
});
afterAll(() => world.drop());

const BTC = 100_000_000n;
const DAY_MS = 86_400_000;
const NOTHING: PayoutSettingsChange = {
  enabled: null,
  method: null,
  destination: null,
  threshold: null,
  leave: null,
  sourceCurrency: null,
  paused: null,
};
const set = (merchantId: bigint, change: Partial<PayoutSettingsChange>) =>
  setPayoutSettings(ctx, { merchantId, change: { ...NOTHING, ...change } });
const settings = (merchantId: bigint) => getPayoutSettings(ctx, { merchantId });
async function shop(change: Partial<PayoutSettingsChange> = {}): Promise<bigint> {
  shops += 1;
  const merchantId = await world.openShop(`auto${shops}`);
  await set(merchantId, { method: 'bitcoin', destination: OUTSIDE, threshold: '1', ...change });
  return merchantId;
}
async function pass(on = ctx): Promise<void> {
  const troubles: unknown[] = [];
  await requestAutomaticPayouts(on, { overLightning: false, silent: new Map() }, (_merchant, error) => troubles.push(error));
  expect(troubles).toEqual([]);
}
type Row = { id: string; amount: string; status: string; automatic: boolean; held_reason: string | null };
const payouts = async (merchantId: bigint): Promise<Row[]> =>
  (
    await world.admin.query(
      'select id, amount, status, automatic, held_reason from payouts where merchant_id = $1 order by created_at, id',
      [merchantId],
    )
  ).rows;
/** As the driver ends them. */
const end = (id: string, status: 'completed' | 'failed', error: string | null = null) =>
  world.admin.query(`update payouts set status = $2, step = 'ended', held_reason = null, error = $3 where id = $1`, [
    id,
    status,
    error,
  ]);
const listening = (): Promise<number> =>
  new Promise((resolve, reject) => {
    let told = 0;
    ctx.db
      .listen(
        ['automatic_payouts'],
        () => (told += 1),
        () => undefined,
      )
      .then(async (stop) => {
        await announceDue(ctx.db, world.now());
        // a notification of our own that comes after it
        const done = ctx.db.listen(
          ['after'],
          () =>
            void done
              .then((close) => close())
              .then(stop)
              .then(() => resolve(told)),
          () => undefined,
        );
        await done;
        await world.admin.query(`notify after`);
      })
      .catch(reject);
  });

describe('an automatic payout', () => {
  test('waits a day for its destination, then for the threshold, and pays all but what is to be left', async () => {
    const merchantId = await shop({ leave: '0.25' });
    await fund(ctx, merchantId, BTC - 1n);
    await pass();
    await world.wait(DAY_MS - 1);
    await pass();
    expect(await listening()).toBe(0);
    await world.wait(1);
    await pass();
    expect(await payouts(merchantId)).toEqual([]);
    await fund(ctx, merchantId, 1n);
    expect(await listening()).toBe(1);
    await pass();
    expect(await payouts(merchantId)).toEqual([
      expect.objectContaining({ amount: String(75_000_000n - FEE_MAX), status: 'processing', automatic: true }),
    ]);
    expect(await world.balance(`merchant:${merchantId}:available:BTC`)).toBe(25_000_000n);
  });

  test('is not requested while the last one is open, also by two processes at once', async () => {
    const merchantId = await shop();
    await fund(ctx, merchantId, BTC);
    await world.wait(DAY_MS);
    await Promise.all([pass(), pass(), pass()]);
    await fund(ctx, merchantId, 5n * BTC);
    await pass();
    const [first, ...more] = await payouts(merchantId);
    expect(more).toEqual([]);
    await end(first?.id as string, 'completed');
    await pass();
    expect(await payouts(merchantId)).toHaveLength(2);
  });

  test('waits for approval like every other', async () => {
    const merchantId = await shop();
    await setSettings(ctx, { merchantId, scopes: new Set(['payouts'] as const), change: { payoutApprovalAbove: '10' } });
    await fund(ctx, merchantId, BTC);
    await world.wait(DAY_MS);
    await pass();
    const [made] = await payouts(merchantId);
    expect(made).toMatchObject({ status: 'pending', held_reason: 'approval' });
    expect(await approvePayout(ctx, { payoutId: made?.id as string, by: 'ann' })).toMatchObject({ status: 'processing' });
  });

  test('that failed three times in a row pauses them until they are set again; a cancelled one is no failure', async () => {
    const merchantId = await shop();
    await setSettings(ctx, { merchantId, scopes: new Set(['payouts'] as const), change: { payoutApprovalAbove: '0' } });
    await fund(ctx, merchantId, 20n * BTC);
    await world.wait(DAY_MS);
    for (const how of ['failed', 'completed', 'failed', 'cancelled', 'failed', 'failed'] as const) {
      await pass();
      const made = (await payouts(merchantId)).at(-1) as Row;
      expect(made.status).toBe('pending');
      if (how === 'cancelled') await cancelPayout(ctx, { merchantId, payoutId: made.id });
      else await end(made.id, how, how === 'failed' ? 'displaced' : null);
      await fund(ctx, merchantId, 20n * BTC);
      world.pass(1_000);
    }
    await pass();
    expect((await payouts(merchantId)).filter(({ status }) => status === 'pending')).toEqual([]);
    expect(await settings(merchantId)).toMatchObject({ enabled: true, paused: true, pausedReason: '3 payouts in a row failed' });
    await set(merchantId, { paused: false });
    await pass();
    expect((await payouts(merchantId)).at(-1)).toMatchObject({ status: 'pending' });
  });

  test('that failed three times pauses them too when a fast clock has dated the settings in the future', async () => {
    const YEAR_MS = 365 * DAY_MS;
    const merchantId = await shop();
    await setSettings(ctx, { merchantId, scopes: new Set(['payouts'] as const), change: { payoutApprovalAbove: '0' } });
    await fund(ctx, merchantId, 20n * BTC);
    await world.wait(DAY_MS);
    world.setClock(YEAR_MS);
    await set(merchantId, { leave: '0.2' });
    world.setClock(-YEAR_MS);
    await world.wait(1);
    for (let n = 0; n < 3; n++) {
      await pass();
      await end(((await payouts(merchantId)).at(-1) as Row).id, 'failed', 'displaced');
      await fund(ctx, merchantId, 20n * BTC);
      world.pass(1_000);
    }
    await pass();
    expect(await payouts(merchantId)).toHaveLength(3);
    expect(await settings(merchantId)).toMatchObject({ paused: true, pausedReason: '3 payouts in a row failed' });
  });

  test('to a destination that the allow-list lost is refused, and the third time pauses them', async () => {
    const merchantId = await shop();
    await fund(ctx, merchantId, BTC);
    await setSettings(ctx, { merchantId, scopes: new Set(['payouts'] as const), change: { payoutAllowList: ['elsewhere'] } });
    await world.wait(DAY_MS);
    for (let round = 0; round < 2; round++) await pass();
    expect(await settings(merchantId)).toMatchObject({ paused: false });
    await pass();
    const after = await settings(merchantId);
    expect(after).toMatchObject({ paused: true });
    expect(after.pausedReason).toContain('allow-list');
    expect(await payouts(merchantId)).toEqual([]);
  });

  test('is not requested by older settings that somebody in the database put back, signed as they were', async () => {
    const asService = (text: string, values: unknown[] = []) => ctx.db.query({ text, values });
    for (const change of [{ enabled: false }, { destination: 'bcrt1qw508d6qejxtdg4y5r3zarvary0c5xw7kygt080' }]) {
      const merchantId = await shop();
      const old = (await asService('select to_jsonb(s) as old from payout_settings s where merchant_id = $1', [merchantId]))
        .rows[0];
      await world.wait(DAY_MS);
      await set(merchantId, change);
      await fund(ctx, merchantId, BTC);
      await asService('delete from payout_settings where merchant_id = $1', [merchantId]);
      await asService('insert into payout_settings select * from jsonb_populate_record(null::payout_settings, $1)', [old?.old]);
      for (const cheat of ['delete from payout_settings_versions', 'update payout_settings_versions set version = 1'])
        await expect(asService(cheat)).rejects.toThrow('permission denied');
      await pass();
      expect(await payouts(merchantId)).toEqual([]);
      // with the newest number, its signature does not fit
      await asService('update payout_settings set version = 2 where merchant_id = $1', [merchantId]);
      await pass();
      expect(await payouts(merchantId)).toEqual([]);
      await set(merchantId, { enabled: true, destination: OUTSIDE });
      await world.wait(DAY_MS);
      await pass();
      expect(await payouts(merchantId)).toHaveLength(1);
    }
  });

  test('does not go to a destination that somebody wrote into the database, whatever its merchant changes beside it', async () => {
    const merchantId = await shop();
    await fund(ctx, merchantId, 2n * BTC);
    await world.wait(DAY_MS);
    const stolen = 'bcrt1qw508d6qejxtdg4y5r3zarvary0c5xw7kygt080';
    await ctx.db.query({
      text: 'update payout_settings set destination = $2 where merchant_id = $1',
      values: [merchantId, stolen],
    });
    for (const change of [{ threshold: '0.5' }, { leave: '0.1' }, { paused: false }])
      await expect(set(merchantId, change)).rejects.toMatchObject({ code: 'missing_field', param: 'destination' });
    await pass();
    expect(await payouts(merchantId)).toEqual([]);
    expect(await set(merchantId, { enabled: false })).toMatchObject({ enabled: false, destination: null });
    expect(await set(merchantId, { enabled: true, destination: OUTSIDE })).toMatchObject({
      threshold: '1.00000000',
      destinationUsableAtMs: world.now() + DAY_MS,
    });
  });

  test('settings from before changes were counted are still acted on', async () => {
    const merchantId = await shop();
    await fund(ctx, merchantId, BTC);
    await world.wait(DAY_MS);
    await world.admin.query('delete from payout_settings_versions where merchant_id = $1', [merchantId]);
    await world.admin.query('update payout_settings set version = 0 where merchant_id = $1', [merchantId]);
    const row = (await readPayoutSettings(ctx.db, merchantId)) as NonNullable<Awaited<ReturnType<typeof readPayoutSettings>>>;
    await world.admin.query('update payout_settings set intent = $2 where merchant_id = $1', [
      merchantId,
      signSettings(ctx, merchantId, row).signature,
    ]);
    await pass();
    expect(await payouts(merchantId)).toHaveLength(1);
  });

  test('is not requested by settings that were written past the API, or for a suspended merchant', async () => {
    const merchantId = await shop();
    const suspended = await shop();
    await fund(ctx, merchantId, BTC);
    await fund(ctx, suspended, BTC);
    await world.wait(DAY_MS);
    const stolen = 'bcrt1qw508d6qejxtdg4y5r3zarvary0c5xw7kygt080';
    await world.admin.query('update payout_settings set destination = $2 where merchant_id = $1', [merchantId, stolen]);
    await world.admin.query('update merchants set suspended_at = now() where id = $1', [suspended]);
    await pass();
    await world.admin.query('update payout_settings set destination = $2 where merchant_id = $1', [merchantId, OUTSIDE]);
    // an API with another key
    const other = portsFor('regtest', ctx.ports.clock).intentKey.sign(new Uint8Array());
    await pass({ ...ctx, ports: { ...ctx.ports, intentKey: { sign: () => ({ ...other, keyId: '00'.repeat(32) }) } } });
    expect([...(await payouts(merchantId)), ...(await payouts(suspended))]).toEqual([]);
    await pass();
    expect(await payouts(merchantId)).toHaveLength(1);
  });
});
