// Tokens that are missing, wrong, in two places, or without the required scope. Second section of refusals.test.ts.
import { expect, test } from 'vitest';
import { MERCHANT_API } from '../../../src/contract/merchant-api.ts';
import { type Name, type RefusedCalls, WITH_TOKEN } from './refused-calls.ts';

export function refusesTokens(calls: RefusedCalls): void {
  const { good, note, refused } = calls;

  test.each(WITH_TOKEN)('%s wants one', async (name) => {
    const { path } = MERCHANT_API[name];
    const token = await calls.api.tokenOf('shop');
    const claims = token.split('.')[1] as string;
    const none = Buffer.from('{"alg":"none","typ":"at+jwt"}').toString('base64url');
    const [missing, ...wrong] = [
      null,
      5,
      true,
      {},
      [token],
      '',
      'x',
      `${token}x`,
      `${none}.${claims}.`,
      'a.b.c',
      'x'.repeat(5000),
    ];
    expect(note(name, await calls.api.send(path, { ...good(name), access_token: missing })).json.error).toBe('missing_token');
    expect(note(name, await calls.api.send(path, good(name), { authorization: 'Basic eDp5' })).json.error).toBe('missing_token');
    for (const access_token of wrong) {
      expect(note(name, await calls.api.send(path, { ...good(name), access_token })).json.error).toBe('invalid_token');
    }
    for (const authorization of ['Bearer', 'Bearer x', 'bearer a.b.c', `Bearer ${token} x`]) {
      expect(note(name, await calls.api.send(path, good(name), { authorization })).json.error).toBe('invalid_token');
    }
    await refused(name, 'conflicting_credentials', good(name), { authorization: 'Bearer x' });
    const { refresh_token } = (await calls.api.send('/auth', good('auth'))).json;
    expect(note(name, await calls.api.send(path, { ...good(name), access_token: refresh_token })).json.error).toBe(
      'invalid_token',
    );
    calls.rowsBefore.sign_ins! += 1;
  });

  test.each(WITH_TOKEN.filter((name) => name !== 'signOut'))(
    '%s wants its scope, and looks at it before the fields',
    async (name) => {
      const needed: Partial<Record<Name, string>> = {
        createTransaction: 'payments',
        cancelTransaction: 'payments',
        resolveTransaction: 'payments',
        setSettings: 'payments',
        createWebhook: 'payments',
        deleteWebhook: 'payments',
        rotateWebhookSecret: 'payments',
        redeliverEvent: 'payments',
        requestPayout: 'payouts',
        cancelPayout: 'payouts',
        setPayoutSettings: 'payouts',
      };
      const scope = needed[name] ?? 'read';
      for (const other of ['read', 'payments', 'payouts'].filter((one) => one !== scope)) {
        const reply = await calls.api.call(MERCHANT_API[name].path, { transaction_id: 5 }, {}, `only.${other}`);
        expect(note(name, reply).json.error).toBe('insufficient_permissions');
      }
    },
  );
  test('the scope of two operations depends on what is asked', async () => {
    const reimburse = { transaction_id: calls.reviewId, action: 'reimburse', destination: 'x' };
    expect((await calls.api.call('/resolve_transaction', reimburse, {}, 'only.payments')).json.error).toBe(
      'insufficient_permissions',
    );
    expect((await calls.api.call('/resolve_transaction', reimburse, {}, 'only.payouts')).json.error).toBe('invalid_destination');
    for (const change of [{ payout_approval_above: null }, { payout_allow_list: [] }, { payout_approval_above: '5' }]) {
      expect((await calls.api.call('/set_settings', change, {}, 'only.payments')).json.error).toBe('insufficient_permissions');
    }
    const both = { late_payments: 'accept', payout_approval_above: null };
    expect((await calls.api.call('/set_settings', both, {}, 'only.payouts')).json.error).toBe('insufficient_permissions');
    const mistyped = await calls.api.call('/set_settings', { payout_allow_list: ['elsewhere'] }, {}, 'only.payouts');
    expect(note('setSettings', mistyped).json).toMatchObject({ error: 'invalid_destination', param: 'payout_allow_list' });
    expect((await calls.api.call('/set_settings', { payout_allow_list: [] }, {}, 'only.payouts')).status).toBe(200);
    expect((await calls.api.call('/set_settings', { payout_allow_list: null }, {}, 'only.payments')).status).toBe(200);
  });
}
