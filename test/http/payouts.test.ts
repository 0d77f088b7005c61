// Payouts over real HTTP on a real database: exactly the fields of the contract, keys, refusals.
import { describe, expect, test } from 'vitest';
import { saveChecked } from '../../src/store/payouts/comparisons.ts';
import { FEE_MAX, OUTSIDE } from '../support/funded.ts';
import { api, balance, check, LEGACY, OTHER, payoutCallsForAll, refused, request, TIME, waiting } from './payout-calls.ts';

payoutCallsForAll();

describe('request and check', () => {
  test('request answers five fields; the amount as it was sent', async () => {
    const { status, json } = await request({ amount: '0.0500' });
    expect(status).toBe(200);
    expect(json).toEqual({
      success: true,
      payout: {
        id: expect.stringMatching(/^payout_[0-9A-Za-z]{22}$/),
        method: 'bitcoin',
        amount: '0.0500',
        status: 'processing',
        created_at: expect.stringMatching(TIME),
      },
    });
    expect(await check(json.payout.id)).toEqual({
      ...json.payout,
      fee: null,
      fee_currency: 'BTC',
      destination: OUTSIDE,
      txid: null,
      error: null,
      held_reason: null,
      completed_at: null,
    });
  });

  test('by ach the fee is known at once, in dollars, and a trace number takes the place of the transaction', async () => {
    const destination = 'ach:021000021:0042:savings';
    const { status, json } = await request({ method: 'ach', amount: '100.1', destination, source_currency: 'btc' });
    expect([status, json.payout]).toEqual([200, { ...json.payout, method: 'ach', amount: '100.1', status: 'processing' }]);
    const { id } = json.payout;
    const shown = {
      ...json.payout,
      fee: '1.01',
      fee_currency: 'USD',
      destination,
      trace: null,
      error: null,
      held_reason: null,
      completed_at: null,
    };
    expect(await check(id)).toEqual(shown);
    const { data } = (await api.call('/list_payouts', { method: 'ach' })).json;
    expect(data).toEqual([shown]);
  });

  test('every standard kind of address of the network is a destination', async () => {
    for (const destination of [
      LEGACY,
      '2MzQwSSnBHWHqSAqtTVQ6v47XtaisrJa1Vc',
      OTHER,
      'bcrt1qrp33g0q5c5txsp9arysrx4k6zdkfs4nce4xj0gdcccefvpysxf3qzf4jry',
      'bcrt1p0xlxvlhemja6c4dqv22uapctqupfhlxm9h8z3k2e72q4k9hcz7vqc8gma6',
    ]) {
      expect((await request({ destination })).json, destination).toMatchObject({ success: true });
    }
  });

  test('the fee and the transaction are told when they are known, of several the one in a block', async () => {
    const { json } = await request();
    const { id } = json.payout;
    await api.sql(
      `insert into outgoing_batches (id, currency, state, fee_rate, created_at) values ('batch_x', 'BTC', 'signed', 1000, now());`,
    );
    await api.sql(`update payouts set batch_id = 'batch_x', batch_position = 0, step = 'batched' where id = $1`, [id]);
    await attempt(1, 'aa');
    await attempt(2, 'bb');
    expect(await check(id)).toMatchObject({ txid: 'bb', fee: null, status: 'processing' });
    await api.sql(
      `update outgoing_batches set mined_attempt = (select id from outgoing_attempts where txid = 'aa') where id = 'batch_x'`,
    );
    await api.sql(`update payouts set status = 'completed', step = 'ended', fee = 423, completed_at = now() where id = $1`, [id]);
    expect(await check(id)).toMatchObject({
      txid: 'aa',
      fee: '0.00000423',
      status: 'completed',
      completed_at: expect.stringMatching(TIME),
    });
    expect(refused(await api.call('/cancel_payout', { payout_id: id }))).toEqual([409, 'payout_not_cancellable', 'payout_id']);
  });
  async function attempt(number: number, txid: string): Promise<void> {
    await api.sql(
      `insert into outgoing_attempts (batch_id, number, currency, txid, raw, fee, vbytes, lease_epoch, signed_at, sequence)
         values ('batch_x', $1::integer, 'BTC', $2, '\\x00', 500, 140, 0, now(), $1::bigint)`,
      [number, txid],
    );
  }
});

describe('a key', () => {
  test('makes one payout, for ever; another body is a conflict', async () => {
    const key = { 'idempotency-key': 'payout 1' };
    const before = await balance();
    const first = await request({}, key);
    const again = await request({}, key);
    expect(again.text).toBe(first.text);
    expect(again.headers.get('idempotent-replayed')).toBe('true');
    api.advance(40 * 86_400);
    api.tokens.clear();
    await api.reopen();
    expect((await request({}, key)).text).toBe(first.text);
    expect(refused(await request({ amount: '0.02' }, key))).toEqual([409, 'idempotency_conflict', 'idempotency_key']);
    expect(refused(await request({ destination: OTHER }, key))[1]).toBe('idempotency_conflict');
    expect(Number(before) - Number(await balance())).toBeCloseTo(0.01 + Number(FEE_MAX) / 1e8, 8);
  });

  test('that came twice at the same moment makes one payout', async () => {
    const [{ n: before }] = (await api.sql('select count(*)::int as n from payouts')) as [{ n: number }];
    const replies = await Promise.all(Array.from({ length: 8 }, () => request({}, { 'idempotency-key': 'at once' })));
    expect(replies.map(({ status }) => status).filter((status) => status !== 200 && status !== 409)).toEqual([]);
    const [{ n: after }] = (await api.sql('select count(*)::int as n from payouts')) as [{ n: number }];
    expect(after - before).toBe(1);
  });

  test('of a refused request is free again', async () => {
    const key = { 'idempotency-key': 'payout 2' };
    expect(refused(await request({ amount: '1000' }, key))).toEqual([422, 'insufficient_balance', 'amount']);
    expect((await request({}, key)).status).toBe(200);
  });
});

describe('refusals', () => {
  test('leave no payout, no entry and no key', async () => {
    const own = (await api.call('/create_transaction', { amount: '5', crypto_selected: 'BTC' })).json.wallet_address;
    const foreign = (await api.call('/create_transaction', { amount: '5', crypto_selected: 'BTC' }, {}, 'other')).json
      .wallet_address;
    await api.call('/get_account_info', {}, {}, 'other');
    const before = await api.rowCounts();
    const cases: [unknown[], object, string?][] = [
      [[422, 'payout_below_minimum', 'amount'], { amount: '0.00099999' }],
      [[422, 'payout_below_minimum', 'amount'], { amount: '0' }],
      [[422, 'insufficient_balance', 'amount'], { amount: '1000' }],
      [[422, 'insufficient_balance', 'amount'], { amount: 'all' }, 'other'],
      [[400, 'invalid_amount', 'amount'], { amount: '0.010000000' }],
      [[400, 'invalid_amount', 'amount'], { amount: 0.01 }],
      [[400, 'invalid_destination', 'destination'], { destination: 'bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4' }],
      [[400, 'invalid_destination', 'destination'], { destination: 'tb1qw508d6qejxtdg4y5r3zarvary0c5xw7kxpjzsx' }],
      [[400, 'invalid_destination', 'destination'], { destination: `${OUTSIDE.slice(0, -1)}q` }],
      [[400, 'invalid_destination', 'destination'], { destination: own }],
      [[422, 'insufficient_balance', 'amount'], { destination: foreign, amount: '1000' }],
      [[400, 'invalid_destination', 'destination'], { destination: 'rltc1qw508d6qejxtdg4y5r3zarvary0c5xw7kyr2ufm' }],
      [[404, 'payout_not_found', 'payout_id'], { path: '/check_payout', payout_id: 'payout_0351dYxk0d1Jt8vTgkN1AM' }],
      [[404, 'payout_not_found', 'payout_id'], { path: '/cancel_payout', payout_id: 'nothing of ours' }],
      [[404, 'payout_not_found', 'starting_after'], { path: '/list_payouts', starting_after: 'payout_' }],
    ];
    for (const [expected, { path = '/request_payout', ...body }, username] of cases as [
      unknown[],
      { path?: string },
      string?,
    ][]) {
      const whole = path === '/request_payout' ? { method: 'bitcoin', amount: '0.01', destination: OUTSIDE, ...body } : body;
      const reply = await api.call(path, whole, path === '/list_payouts' ? {} : { 'idempotency-key': 'refused' }, username);
      expect([...refused(reply), JSON.stringify(body)]).toEqual([...expected, JSON.stringify(body)]);
    }
    expect(await api.rowCounts()).toEqual(before);
    const { message } = (await request({ amount: '1e-2' })).json;
    expect(message).toContain('8 by lightning, 8 by bitcoin, 2 by ach');
  });

  test("another merchant's payout is the same 404 as none", async () => {
    const { json } = await request();
    const texts = new Set<string>();
    for (const payout_id of [json.payout.id, 'payout_0351dYxk0d1Jt8vTgkN1AM', 'payout_', 'x']) {
      for (const path of ['/check_payout', '/cancel_payout']) {
        const reply = await api.call(path, { payout_id }, {}, 'other');
        expect(reply.status).toBe(404);
        texts.add(reply.text);
      }
    }
    expect(texts.size).toBe(1);
    expect((await api.call('/list_payouts', {}, {}, 'other')).json).toEqual({ success: true, data: [], has_more: false });
  });

  test('who may only read or take payments cannot pay out', async () => {
    for (const user of ['only.read', 'only.payments']) {
      for (const path of ['/request_payout', '/cancel_payout', '/set_payout_settings'])
        expect(refused(await api.call(path, {}, {}, user)).slice(0, 2)).toEqual([403, 'insufficient_permissions']);
    }
    expect((await api.call('/list_payouts', {}, {}, 'only.read')).status).toBe(200);
    expect((await request({}, {}, 'only.payouts')).status).toBe(200);
  });
});

describe('cancel', () => {
  test('answers the payout as failed and cancelled, twice the same', async () => {
    const before = await balance();
    const id = await waiting();
    expect(await check(id)).toMatchObject({ status: 'pending', held_reason: 'receivable' });
    const first = await api.call('/cancel_payout', { payout_id: id });
    expect(first.json).toMatchObject({
      success: true,
      payout: { id, status: 'failed', error: 'cancelled', held_reason: null, fee: null, completed_at: null },
    });
    expect((await api.call('/cancel_payout', { payout_id: id })).text).toBe(first.text);
    expect(await balance()).toBe(before);
  });

  test('of one that is processing is refused, and the answer is stored', async () => {
    const { id } = (await request()).json.payout;
    const key = { 'idempotency-key': 'cancel 1' };
    const first = await api.call('/cancel_payout', { payout_id: id }, key);
    expect(refused(first)).toEqual([409, 'payout_not_cancellable', 'payout_id']);
    expect(first.json.message).toContain('processing');
    expect((await api.call('/cancel_payout', { payout_id: id }, key)).headers.get('idempotent-replayed')).toBe('true');
  });

  test('with a key keeps no connection while it waits for the comparison that follows a start of the database', async () => {
    const id = await waiting();
    await api.sql(`insert into comparisons (currency, height, checked_at) values ('BTC', 1, '2001-01-01')`);
    let heard = (_what: string): void => undefined;
    const told = new Promise<string>((resolve) => (heard = resolve));
    // a notification arrives when its transaction has ended
    const stop = await api.ctx.db.listen(
      ['hurry'],
      () => heard('it waits outside'),
      () => undefined,
    );
    const cancelled = api.call('/cancel_payout', { payout_id: id }, { 'idempotency-key': 'cancel 2' });
    expect(await Promise.race([told, cancelled.then(() => 'it ended')])).toBe('it waits outside');
    await saveChecked(api.ctx.db, 'BTC', 1);
    expect((await cancelled).json).toMatchObject({ success: true, payout: { id, error: 'cancelled' } });
    await stop();
    await api.sql(`delete from comparisons`);
  });

  test('and what it gave back are entries of the balance that name the payout', async () => {
    const id = await waiting();
    await api.call('/cancel_payout', { payout_id: id });
    const { data } = (await api.call('/list_balance_entries', { currency: 'BTC', limit: 2 })).json;
    expect(
      data.map((entry: { kind: string; payout_id: string; amount: string }) => [entry.kind, entry.payout_id, entry.amount]),
    ).toEqual([
      ['payout_released', id, '0.01004000'],
      ['payout_hold', id, '-0.01004000'],
    ]);
  });
});
