// Each wrong value of each field of each operation, ids of others, payouts, and what may not be asked for. Third section of
// refusals.test.ts.
import { expect, test } from 'vitest';
import { MERCHANT_API } from '../../../src/contract/merchant-api.ts';
import { eventId } from '../../../src/core/events.ts';
import { createLnd } from '../../../src/outside/lightning/lnd.ts';
import { saveFeeRate } from '../../../src/store/payouts/fee-rates.ts';
import { invoice } from '../../support/invoice.ts';
import { simulatedEngine } from '../../support/lightning-engines.ts';
import { NAMES, type RefusedCalls } from './refused-calls.ts';

export function refusesFields(calls: RefusedCalls): void {
  const { good, refused } = calls;

  const NUL = 'a\u0000b';
  const values: Record<string, [string, unknown[]]> = {
    amount: [
      'invalid_amount',
      [
        25,
        25.5,
        true,
        {},
        [],
        ['25'],
        '',
        ' ',
        ' 25',
        '25 ',
        '+25',
        '-25',
        '-0',
        '2e5',
        '1E2',
        'NaN',
        'Infinity',
        '1,000',
        '1_000',
        '.5',
        '5.',
      ].concat(['007', '00', '0x10', '1'.repeat(19), '10.000', '0.001', '２５', '25\n', NUL, '9'.repeat(10_000)] as never),
    ],
    crypto_selected: [
      'unsupported_currency',
      [5, {}, '', 'XYZ', 'BTC ', 'USD', '__proto__', 'constructor', 'toString', NUL, 'x'.repeat(1000)],
    ],
    email: [
      'invalid_email',
      [5, {}, '', 'x', 'a@b', '@b.co', 'a@', 'a b@c.de', 'a@b.co, c@d.ef', 'a@b..co', 'a..b@c.de', '.a@b.co', NUL].concat([
        'a@b.co\n',
        `${'a'.repeat(65)}@b.co`,
        `a@${'b'.repeat(250)}.co`,
        'a\ud800@b.co',
      ] as never),
    ],
    label: ['invalid_request', [5, {}, [], NUL, 'a\nb', '\u007f', '\u0085', 'x'.repeat(201), 'x'.repeat(10_000), '\ud800']],
    expand: ['invalid_request', ['events', {}, [1], ['nope'], ['events', 'nope'], ['checkout', 5], [null], ['toString']]],
    transaction_id: ['invalid_request', [5, {}, [], true]],
    wait_seconds: ['invalid_request', [-1, 31, 1.5, '5', true, 1e9, {}]],
    status_was: ['invalid_request', ['done', 5, '', 'Started', []]],
    status: ['invalid_request', ['done', 5, '', []]],
    limit: ['invalid_request', [0, -1, 101, 1.5, '5', true]],
    starting_after: ['invalid_request', [5, {}, true]],
    created_gte: [
      'invalid_request',
      [5, '', 'yesterday', '2026-01-01', '2026-02-30T00:00:00Z', '2026-01-01T25:00:00Z', '2026-01-01T00:00:00'],
    ],
    created_lt: ['invalid_request', [{}, '2026-13-01T00:00:00Z', `2026-01-01T00:00:00Z${NUL}`]],
    username: ['invalid_request', [5, {}, NUL, 'x'.repeat(255), '\ud800']],
    password: ['invalid_request', [5, {}, [], 'x'.repeat(1025)]],
    access_token: ['invalid_token', [5, {}, '', 'x']],
    refresh_token: ['invalid_token', [5, {}, '', 'x', 'a.b.c']],
    method: ['invalid_method', [5, {}, '', 'paypal', 'Bitcoin', '__proto__']],
    payout_id: ['invalid_request', [5, {}, true]],
    enabled: ['invalid_request', ['true', 1, {}]],
    paused: ['invalid_request', ['', 0, []]],
    threshold: ['invalid_amount', [5, {}, '', '-1', '1e3', 'all']],
    leave: ['invalid_amount', [0, [], '', '+1', ' 1']],
    destination: ['invalid_destination', [5, {}, '', ' ', 'a b', NUL, 'ä', 'x'.repeat(2049)]],
    source_currency: ['unsupported_currency', [5, '', 'XYZ', 'USD']],
    action: ['invalid_request', [5, {}, '', 'ACCEPT', 'refuse']],
    part: ['invalid_request', [5, '', 'all']],
    tolerance_percent: ['invalid_request', [1, {}, '', '-1', '5.01', '6', '1.000', '1e0', '01']],
    late_payments: ['invalid_request', [5, {}, '', 'ACCEPT']],
    payout_allow_list: ['invalid_request', [5, 'a', [5], [''], ['a b'], [NUL], Array(101).fill('a')]],
    payout_approval_above: ['invalid_amount', [5, {}, '', '-1', '1.000', 'all']],
    currency: ['unsupported_currency', [5, '', 'XYZ', 'USD']],
    url: [
      'invalid_request',
      [5, {}, '', 'x', '/hook', 'ftp://a.example/', 'http://u:p@a.example/', 'http://a b/', NUL, 'x'.repeat(2049)],
    ],
    events: ['invalid_request', ['transaction.started', {}, [], [1], ['transaction.paid'], [null]]],
    object: ['invalid_request', [5, {}, NUL, 'x'.repeat(65)]],
    type: ['invalid_request', ['started', 5, '', 'transaction.paid']],
    webhook_id: ['invalid_request', [5, {}, true]],
    event_id: ['invalid_request', [5, {}, true]],
  };

  test.each(NAMES.filter((name) => Object.keys(MERCHANT_API[name].fields).length > 0))(
    '%s refuses each wrong value, naming the field',
    async (name) => {
      for (const [field, { required }] of Object.entries(MERCHANT_API[name].fields)) {
        const [code, bad] = values[field] as [string, unknown[]];
        if (required) {
          const { [field]: _left, ...without } = good(name);
          expect((await refused(name, 'missing_field', without)).json.param).toBe(field);
          expect((await refused(name, 'missing_field', { ...without, [field]: null })).json.param).toBe(field);
        }
        for (const value of bad) {
          if (name === 'refresh' && typeof value === 'string') continue;
          // bitcoin has 8 decimals
          if (name === 'requestPayout' && (value === '10.000' || value === '0.001')) continue;
          const reply = await refused(name, code, { ...good(name), [field]: value });
          if (code !== 'invalid_token') expect(reply.json.param).toBe(field);
          expect(reply.json.message).not.toContain('undefined');
        }
      }
    },
  );
  test('a missing field is named before a wrong one', async () => {
    expect((await refused('createTransaction', 'missing_field', { amount: 5 })).json.param).toBe('crypto_selected');
    expect((await refused('refresh', 'missing_field', { access_token: 5 })).json.param).toBe('refresh_token');
  });
  test('ids that do not exist, are foreign, or could never be ours are the same 404', async () => {
    const texts = new Set<string>();
    for (const name of ['checkTransaction', 'cancelTransaction', 'resolveTransaction'] as const) {
      for (const transaction_id of [
        calls.foreignId,
        'txn_0000000000000000000000',
        'txn_',
        '',
        NUL,
        'x',
        'x'.repeat(9999),
        "' or 1=1",
      ]) {
        texts.add((await refused(name, 'transaction_not_found', { ...good(name), transaction_id })).text);
      }
    }
    expect(texts.size).toBe(1);
    await refused('listTransactions', 'transaction_not_found', { starting_after: calls.foreignId });
    const payouts = new Set<string>();
    for (const payout_id of [calls.foreignPayoutId, 'payout_0000000000000000000000', 'payout_', NUL, "' or 1=1"]) {
      for (const name of ['checkPayout', 'cancelPayout'] as const)
        payouts.add((await refused(name, 'payout_not_found', { payout_id })).text);
    }
    expect(payouts.size).toBe(1);
    await refused('listPayouts', 'payout_not_found', { starting_after: calls.foreignPayoutId });
    const webhooks = new Set<string>();
    for (const webhook_id of [calls.foreignWebhookId, 'wh_0000000000000000000000', 'wh_', NUL]) {
      for (const name of ['deleteWebhook', 'rotateWebhookSecret'] as const)
        webhooks.add((await refused(name, 'not_found', { webhook_id })).text);
      await refused('listWebhooks', 'not_found', { starting_after: webhook_id });
    }
    const foreign = eventId({ objectId: calls.foreignId, sequence: 1 });
    for (const event_id of [foreign, 'evt_t00000000000000000000001', 'evt_', NUL]) {
      await refused('listEvents', 'not_found', { starting_after: event_id });
      await refused('redeliverEvent', 'not_found', { event_id });
    }
    expect(webhooks.size).toBe(1);
  });
  test('a payout is checked for its form, its place, its minimum, then for a rail and the balance', async () => {
    const payout = (body: object) => ({ ...good('requestPayout'), ...body });
    const cases: [string, object][] = [
      ['invalid_amount', { method: 'bitcoin', amount: '0.000000001' }],
      ['invalid_amount', { method: 'ach', amount: '100.000' }],
      ['invalid_amount', { method: 'usdt', amount: '50.0000001' }],
      ['invalid_amount', { amount: 'ALL' }],
      ['payout_below_minimum', { method: 'bitcoin', amount: '0.00099999' }],
      ['payout_below_minimum', { method: 'ach', destination: 'ach:091000019:12345', amount: '99.99' }],
      [
        'payout_below_minimum',
        { method: 'usdt', destination: '0x9858EfFD232B4033E47d90003D41EC34EcaEda94', amount: '49.999999' },
      ],
      ['payout_below_minimum', { method: 'lightning', destination: 'shop@example.com', amount: '0' }],
      ['insufficient_balance', { method: 'bitcoin', amount: '999999999' }],
      ['invalid_destination', { method: 'bitcoin', amount: '0.001', destination: 'hello' }],
      ['invalid_destination', { method: 'ach', amount: '100', destination: 'ach:091000018:1' }],
      ['invalid_destination', { method: 'usdt', amount: '50', destination: 'TXYZopYRdj2D9XRtbG411XZZ3kM5VkAeBf' }],
      ['invalid_destination', { method: 'lightning', amount: '0.1', destination: 'nobody' }],
      ['invalid_destination', { method: 'usdt', amount: '50', destination: '0x9858EfFD232B4033E47d90003D41EC34EcaEdA94' }],
      ['invalid_destination', { method: 'bitcoin', amount: '0.01', destination: 'bcrt1qcr8te4kr609gcawutmrza0j4xv80jy8zeqchgq' }],
      ['invalid_destination', { method: 'bitcoin', amount: '0.01', destination: 'bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4' }],
      ['invalid_destination', { method: 'lightning', amount: '0.1', destination: 'lnbcrt1qqqqqqqq' }],
      ['invalid_destination', { method: 'ach', amount: '100', destination: 'ba_1' }],
      ['amount_above_maximum', { method: 'ach', amount: '101010102', destination: 'ach:091000019:12345:savings' }],
      ['currency_unavailable', { method: 'usdt', amount: '50', destination: '0x9858EfFD232B4033E47d90003D41EC34EcaEda94' }],
      ['lightning_unavailable', { method: 'lightning', amount: '0.00000001', destination: 'shop@example.com' }],
    ];
    for (const [code, body] of cases) await refused('requestPayout', code, payout(body));
    const reply = await refused(
      'requestPayout',
      'currency_unavailable',
      payout({ method: 'usdt', amount: 'all', destination: '0x9858EfFD232B4033E47d90003D41EC34EcaEda94' }),
    );
    expect(Number(reply.headers.get('retry-after'))).toBeGreaterThan(0);
  });
  test('automatic payouts are checked as a whole', async () => {
    const whole = { method: 'bitcoin', destination: good('requestPayout').destination, threshold: '0.5' };
    const cases: [string, object][] = [
      ['missing_field', { threshold: '0.5' }],
      ['payout_below_minimum', { ...whole, threshold: '0.0009' }],
      ['invalid_destination', { ...whole, method: 'lightning', destination: invoice() }],
      ['lightning_unavailable', { ...whole, method: 'lightning', destination: 'shop@example.com' }],
      ['invalid_destination', { ...whole, method: 'ach', threshold: '100', destination: 'ba_1' }],
      ['payout_below_minimum', { ...whole, method: 'ach', threshold: '99.99', destination: 'ach:091000019:12345' }],
      [
        'currency_unavailable',
        { ...whole, method: 'usdt', threshold: '50', destination: '0x9858EfFD232B4033E47d90003D41EC34EcaEda94' },
      ],
    ];
    for (const [code, body] of cases) await refused('setPayoutSettings', code, body as Record<string, unknown>);
    await calls.api.sql(`update merchant_settings set payout_allow_list = '{elsewhere}'`);
    await refused('setPayoutSettings', 'destination_not_allowed', whole);
    await refused('requestPayout', 'destination_not_allowed', good('requestPayout'));
    await calls.api.sql(`update merchant_settings set payout_allow_list = '{}'`);
  });
  const paidIn = (id: string, currency: string) =>
    calls.api.sql(
      `with moved as (update payments set currency = $2 where transaction_id = $1) update transactions set currency = $2 where id = $1`,
      [id, currency],
    );
  test('a Lightning node that is not there is told by whatever needs it', async () => {
    const { api, transactionId, reviewId } = calls;
    const row = `insert into lightning_invoices (payment_hash, preimage, transaction_id, merchant_id, amount_msat, usd_minor, rate, rate_at, rate_sources,
                                                     state, created_at, window_ends_at)
                     select repeat('ab', 32), '', id, merchant_id, 1, 1, 1, now(), '[]', 'open', now(), now() from transactions where id = $1`;
    await api.sql(row, [transactionId]);
    await refused('cancelTransaction', 'lightning_unavailable', { transaction_id: transactionId });
    await api.sql('delete from lightning_invoices');
    await paidIn(reviewId, 'BTC-LN');
    const reimburse = (destination: unknown) => ({ transaction_id: reviewId, action: 'reimburse', destination });
    await refused('resolveTransaction', 'invalid_destination', reimburse(good('requestPayout').destination));
    await refused('resolveTransaction', 'lightning_unavailable', reimburse(invoice({ sat: null, atMs: api.now() })));
    await paidIn(reviewId, 'BTC');
  });
  test('a payout to an invoice is checked for its amount, its time and whose it was', async () => {
    const { api } = calls;
    const engine = await simulatedEngine(api.now);
    const port = createLnd(async () => engine.target(), { chain: 'regtest' });
    Object.assign(api.ctx.ports, { lightning: port });
    const atMs = api.now();
    const payout = (destination: string, amount = '0.00001') => ({ method: 'lightning', amount, destination });
    await refused('requestPayout', 'invoice_amount_mismatch', payout(invoice({ sat: 1_001, atMs })));
    await refused('requestPayout', 'invoice_expired', payout(invoice({ sat: 1_000, atMs: atMs - 3_601_000 })));
    await refused('requestPayout', 'invoice_expired', payout(invoice({ sat: 1_000, expirySeconds: 30, atMs })));
    await refused('requestPayout', 'insufficient_balance', payout(invoice({ atMs }), '99999'));
    await refused('requestPayout', 'invoice_already_used', payout(calls.usedInvoice));
    await paidIn(calls.reviewId, 'BTC-LN');
    const back = (destination: string) => ({ transaction_id: calls.reviewId, action: 'reimburse', destination });
    await refused('resolveTransaction', 'invoice_amount_mismatch', back(invoice({ sat: 1, atMs })));
    await refused('resolveTransaction', 'invoice_expired', back(invoice({ expirySeconds: 30, atMs })));
    await refused('resolveTransaction', 'invoice_already_used', back(calls.usedInvoice));
    await paidIn(calls.reviewId, 'BTC');
    Object.assign(api.ctx.ports, { lightning: null });
    port.close();
    await engine.close();
  });
  test('what may not be asked for', async () => {
    const create = (body: object) => ({ ...good('createTransaction'), ...body });
    for (const amount of ['0', '0.00', '0.49']) await refused('createTransaction', 'amount_below_minimum', create({ amount }));
    for (const amount of ['100000.01', '9'.repeat(18)])
      await refused('createTransaction', 'amount_above_maximum', create({ amount }));
    for (const crypto_selected of ['ETH', 'eth', 'USDT', 'usdt-erc20']) {
      await refused('createTransaction', 'currency_unavailable', create({ crypto_selected }));
    }
    for (const crypto_selected of ['BTC-LN', 'ln', 'Lightning', 'BTC_LN', 'btc-lightning']) {
      await refused('createTransaction', 'lightning_unavailable', create({ crypto_selected }));
    }
    await refused('resolveTransaction', 'not_resolvable', { transaction_id: calls.transactionId, action: 'accept' });
    await refused('resolveTransaction', 'missing_field', { transaction_id: calls.transactionId, action: 'reimburse' });
    const { destination } = good('requestPayout');
    const reimburse = (transaction_id: string, more: object = {}) => ({
      transaction_id,
      action: 'reimburse',
      destination,
      ...more,
    });
    const wrong = (body: object, code: string) => refused('resolveTransaction', code, body as Record<string, unknown>);
    await wrong(reimburse(calls.transactionId), 'not_resolvable');
    const places = { LTC: 'rltc1qqurswpc8qurswpc8qurswpc8qurswpc8ntpxlg', ETH: '0x9858EfFD232B4033E47d90003D41EC34EcaEda94' };
    for (const [currency, to] of Object.entries(places))
      await wrong(reimburse(calls.reviewId, { currency, destination: to }), 'not_resolvable');
    await wrong(reimburse(calls.reviewId, { currency: 'ETH' }), 'invalid_destination');
    const [{ address }] = await calls.api.sql('select address from transactions where id = $1', [calls.foreignId]);
    for (const to of ['x', 'bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4', address])
      await wrong(reimburse(calls.reviewId, { destination: to }), 'invalid_destination');
    await wrong(reimburse(calls.reviewId), 'amount_below_minimum');
    await wrong(reimburse(calls.paidId), 'insufficient_balance');
    await calls.api.sql(`update merchant_settings set payout_allow_list = '{elsewhere}'`);
    await wrong(reimburse(calls.paidId), 'destination_not_allowed');
    await calls.api.sql(`update merchant_settings set payout_allow_list = '{}'`);
    const rates = await calls.api.sql('delete from fee_rates returning currency, fee_rate');
    await wrong(reimburse(calls.reviewId), 'currency_unavailable');
    for (const { currency, fee_rate } of rates)
      await saveFeeRate(calls.api.ctx.db, currency, BigInt(fee_rate), calls.api.ctx.ports.clock.now());
    await refused('auth', 'invalid_credentials', { username: 'nobody', password: 'wrong' });
    await refused('auth', 'invalid_credentials', { username: 'shop', password: 'wrong\u0000' });
  });
}
