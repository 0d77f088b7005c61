// Settings: what is accepted, who may change what, and that the guards of payouts tighten at once and loosen after 24 hours.
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Scope } from '../../../src/core/credentials.ts';
import { addMerchant } from '../../../src/flow/merchants/merchants.ts';
import {
  getPayoutGuards,
  getSettings,
  type Settings,
  type SettingsChange,
  setSettings,
} from '../../../src/flow/merchants/settings.ts';
import { unsealed } from '../../../src/outside/sealing.ts';
import { findMerchantId } from '../../../src/store/merchants/merchants.ts';
import { makeSignInSetup, PASSWORD, refusalOf, type SignInSetup } from '../sign-in/setup.ts';

let setup: SignInSetup;
beforeAll(async () => {
  setup = await makeSignInSetup();
});
afterAll(() => setup.end());

const ALL: ReadonlySet<Scope> = new Set(['read', 'payments', 'payouts']);
const DAY_MS = 86_400_000;
let count = 0;
async function newMerchant(): Promise<bigint> {
  count += 1;
  const { affiliateId } = await addMerchant(setup.ctx, {
    username: `m${count}`,
    password: PASSWORD,
    email: 'm@example.com',
    businessName: 'M',
  });
  return (await findMerchantId(setup.ctx.db, affiliateId)) as bigint;
}
const ctx = () => ({ ...setup.ctx, ports: { ...setup.ctx.ports, sealing: unsealed } });
const set = (merchantId: bigint, change: SettingsChange, scopes = ALL): Promise<Settings> =>
  setSettings(ctx(), { merchantId, scopes, change });
async function allowed(merchantId: bigint): Promise<readonly string[] | null> {
  const guards = await getPayoutGuards(ctx(), { merchantId });
  return guards.allowed === null ? null : [...guards.allowed];
}
const limit = async (merchantId: bigint): Promise<bigint | null> => (await getPayoutGuards(ctx(), { merchantId })).approvalAbove;

describe('settings', () => {
  it('begin with 1 %, accept, no list and no limit', async () => {
    const merchantId = await newMerchant();
    const settings = { tolerancePercent: '1.00', latePayments: 'accept', payoutAllowList: [], payoutApprovalAbove: null };
    expect(await getSettings(ctx(), { merchantId })).toEqual(settings);
    expect(await getPayoutGuards(ctx(), { merchantId })).toEqual({ allowed: null, approvalAbove: null });
  });

  it('answer what was sent, and leave what was not', async () => {
    const merchantId = await newMerchant();
    expect(await set(merchantId, { tolerancePercent: '2.5' })).toMatchObject({
      tolerancePercent: '2.50',
      latePayments: 'accept',
    });
    expect(await set(merchantId, { latePayments: 'review' })).toMatchObject({ tolerancePercent: '2.50', latePayments: 'review' });
    expect(await set(merchantId, { payoutAllowList: ['a', 'b', 'a'], payoutApprovalAbove: '250' })).toEqual({
      tolerancePercent: '2.50',
      latePayments: 'review',
      payoutAllowList: ['a', 'b'],
      payoutApprovalAbove: '250.00',
    });
    expect(await set(merchantId, {})).toEqual(await getSettings(ctx(), { merchantId }));
    expect(await set(merchantId, { payoutApprovalAbove: '0' })).toMatchObject({ payoutApprovalAbove: '0.00' });
    const huge = await newMerchant();
    expect(await set(huge, { payoutApprovalAbove: '999999999999999999.99' })).toMatchObject({
      payoutApprovalAbove: '999999999999999999.99',
    });
  });

  it('refuse what is out of range, with the field and without changing anything', async () => {
    const merchantId = await newMerchant();
    const before = await getSettings(ctx(), { merchantId });
    const cases: [SettingsChange, string, string][] = [
      ...['5.01', '-1', '+1', '1e0', '01', '1.000', '', ' 1', '1,5', 'NaN'].map((text): [SettingsChange, string, string] => [
        { tolerancePercent: text },
        'invalid_request',
        'tolerance_percent',
      ]),
      [{ latePayments: 'Accept' }, 'invalid_request', 'late_payments'],
      [{ payoutAllowList: ['a b'] }, 'invalid_request', 'payout_allow_list'],
      [{ payoutAllowList: [''] }, 'invalid_request', 'payout_allow_list'],
      [{ payoutAllowList: ['a\0'] }, 'invalid_request', 'payout_allow_list'],
      [{ payoutAllowList: Array.from({ length: 101 }, (_, i) => `d${i}`) }, 'invalid_request', 'payout_allow_list'],
      [{ payoutApprovalAbove: '1.001' }, 'invalid_amount', 'payout_approval_above'],
      [{ payoutApprovalAbove: '-1' }, 'invalid_amount', 'payout_approval_above'],
      [{ tolerancePercent: '2', payoutApprovalAbove: 'x' }, 'invalid_amount', 'payout_approval_above'],
    ];
    for (const [change, code, param] of cases) await expect(set(merchantId, change)).rejects.toMatchObject({ code, param });
    expect(await getSettings(ctx(), { merchantId })).toEqual(before);
    for (const fine of ['0', '0.00', '5', '5.00', '0.01'])
      expect((await set(merchantId, { tolerancePercent: fine })).tolerancePercent).toBe(Number(fine).toFixed(2));
  });

  it('need payments for the plain fields, payouts for the two guards, both for both', async () => {
    const merchantId = await newMerchant();
    const plain: SettingsChange = { tolerancePercent: '1.00' };
    const guard: SettingsChange = { payoutAllowList: [] };
    const limitChange: SettingsChange = { payoutApprovalAbove: null };
    const cases: [SettingsChange, Scope[], boolean][] = [
      [plain, ['payments'], true],
      [plain, ['payouts', 'read'], false],
      [{}, ['payments'], true],
      [{}, ['payouts'], false],
      [guard, ['payouts'], true],
      [limitChange, ['payouts'], true],
      [guard, ['payments', 'read'], false],
      [limitChange, ['payments'], false],
      [{ ...plain, ...guard }, ['payments'], false],
      [{ ...plain, ...guard }, ['payouts'], false],
      [{ ...plain, ...guard }, ['payments', 'payouts'], true],
    ];
    for (const [change, scopes, ok] of cases) {
      expect(await refusalOf(() => set(merchantId, change, new Set(scopes))), `${JSON.stringify(change)} ${scopes}`).toBe(
        ok ? 'none' : 'insufficient_permissions',
      );
    }
    // the scope comes before the fields
    expect(await refusalOf(() => set(merchantId, { tolerancePercent: 'x' }, new Set(['read'])))).toBe('insufficient_permissions');
  });
});

describe('the allow-list', () => {
  it('tightens at once: turned on, or shortened', async () => {
    const merchantId = await newMerchant();
    expect(await set(merchantId, { payoutAllowList: ['a', 'b'] })).not.toHaveProperty('payoutAllowListFromMs');
    expect(await allowed(merchantId)).toEqual(['a', 'b']);
    expect(await set(merchantId, { payoutAllowList: ['b'] })).not.toHaveProperty('payoutAllowListFromMs');
    expect(await allowed(merchantId)).toEqual(['b']);
  });

  it('loosens after 24 hours: lengthened, or emptied; until then the answers show what was sent, with the time', async () => {
    for (const next of [['a', 'b'], []]) {
      const merchantId = await newMerchant();
      await set(merchantId, { payoutAllowList: ['a'] });
      const from = setup.ctx.ports.clock.now() + DAY_MS;
      expect(await set(merchantId, { payoutAllowList: next })).toMatchObject({
        payoutAllowList: next,
        payoutAllowListFromMs: from,
      });
      setup.advance(86_399);
      expect(await getSettings(ctx(), { merchantId })).toMatchObject({ payoutAllowList: next, payoutAllowListFromMs: from });
      expect(await allowed(merchantId)).toEqual(['a']);
      setup.advance(1);
      expect(await getSettings(ctx(), { merchantId })).not.toHaveProperty('payoutAllowListFromMs');
      expect(await allowed(merchantId)).toEqual(next.length === 0 ? null : next);
    }
  });

  it('exchanged: what goes is gone at once, what comes waits, and nothing is allowed if nothing is left', async () => {
    const merchantId = await newMerchant();
    await set(merchantId, { payoutAllowList: ['a', 'b'] });
    await set(merchantId, { payoutAllowList: ['b', 'c'] });
    expect(await allowed(merchantId)).toEqual(['b']);
    await set(merchantId, { payoutAllowList: ['d'] });
    expect(await allowed(merchantId)).toEqual([]);
    expect(await set(merchantId, { payoutAllowList: [] })).toHaveProperty('payoutAllowListFromMs');
    expect(await allowed(merchantId)).toEqual([]);
    setup.advance(86_400);
    expect(await allowed(merchantId)).toBeNull();
  });

  it('sent again while it waits keeps its time; with one more it waits anew; taken back it no longer waits', async () => {
    const merchantId = await newMerchant();
    await set(merchantId, { payoutAllowList: ['a'] });
    const { payoutAllowListFromMs: from } = await set(merchantId, { payoutAllowList: ['a', 'b', 'c'] });
    setup.advance(3600);
    expect(await set(merchantId, { payoutAllowList: ['c', 'a', 'b'] })).toMatchObject({ payoutAllowListFromMs: from });
    expect(await set(merchantId, { payoutAllowList: ['a', 'b'] })).toMatchObject({ payoutAllowListFromMs: from });
    expect(await set(merchantId, { latePayments: 'review' })).toMatchObject({ payoutAllowListFromMs: from });
    expect(await set(merchantId, { payoutAllowList: ['a', 'b', 'd'] })).toMatchObject({
      payoutAllowListFromMs: setup.ctx.ports.clock.now() + DAY_MS,
    });
    expect(await set(merchantId, { payoutAllowList: ['a'] })).not.toHaveProperty('payoutAllowListFromMs');
    setup.advance(2 * 86_400);
    expect(await allowed(merchantId)).toEqual(['a']);
  });
});

describe('the limit of approval', () => {
  it('is lowered or set at once, raised or removed after 24 hours', async () => {
    const merchantId = await newMerchant();
    expect(await set(merchantId, { payoutApprovalAbove: '500.00' })).not.toHaveProperty('payoutApprovalAboveFromMs');
    expect(await limit(merchantId)).toBe(500_00n);
    await set(merchantId, { payoutApprovalAbove: '100.00' });
    expect(await limit(merchantId)).toBe(100_00n);
    const from = setup.ctx.ports.clock.now() + DAY_MS;
    expect(await set(merchantId, { payoutApprovalAbove: null })).toMatchObject({
      payoutApprovalAbove: null,
      payoutApprovalAboveFromMs: from,
    });
    expect(await limit(merchantId)).toBe(100_00n);
    setup.advance(60);
    expect(await set(merchantId, { payoutApprovalAbove: '900.00' })).toMatchObject({ payoutApprovalAboveFromMs: from });
    setup.advance(86_340);
    expect(await limit(merchantId)).toBe(900_00n);
    await set(merchantId, { payoutApprovalAbove: '901.00' });
    expect(await set(merchantId, { payoutApprovalAbove: '50.00' })).not.toHaveProperty('payoutApprovalAboveFromMs');
    expect(await limit(merchantId)).toBe(50_00n);
  });
});

describe('any sequence of changes', () => {
  const names = fc.subarray(['a', 'b', 'c']);
  const step = fc.record({ list: names, limit: fc.option(fc.nat(3), { nil: null }), hours: fc.nat(30) });

  it('never allows at once what was not allowed before, and in the end allows what was sent', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 8 }), async (list) => {
        const merchantId = await newMerchant();
        for (const change of list) {
          const before = await allowed(merchantId);
          const limitBefore = await limit(merchantId);
          await set(merchantId, {
            payoutAllowList: change.list,
            payoutApprovalAbove: change.limit === null ? null : `${change.limit}.00`,
          });
          const after = await allowed(merchantId);
          const limitAfter = await limit(merchantId);
          if (before !== null) expect(after?.every((to) => before.includes(to)) ?? false).toBe(true);
          if (change.list.length > 0) expect(after?.every((to) => change.list.includes(to))).toBe(true);
          if (limitBefore !== null) expect(limitAfter !== null && limitAfter <= limitBefore).toBe(true);
          setup.advance(change.hours * 3600);
        }
        setup.advance(86_400);
        const last = list.at(-1) as { list: string[]; limit: number | null };
        expect(await allowed(merchantId)).toEqual(last.list.length === 0 ? null : last.list);
        expect(await limit(merchantId)).toBe(last.limit === null ? null : BigInt(last.limit) * 100n);
      }),
      { numRuns: 30 },
    );
  }, 60_000);
});
