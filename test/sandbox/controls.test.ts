// The controls of the sandbox over HTTP: what each does, what it answers, and what it refuses with which status.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { ask, calls, folder, refused, sandbox, withSandbox } from './support/controls.ts';
import { post, rpc } from './support/table-service.ts';

withSandbox();
type Seen = { confirmations?: number; vout: { n: number; value: number; scriptPubKey: { hex: string } }[] };
const seen = async (currency: string, txid: unknown): Promise<Seen> =>
  (await rpc(sandbox, currency, 'getrawtransaction', txid, 1)) as Seen;
/** Amounts of the outputs to the script of byte n. */
const paidTo = async (currency: string, txid: unknown, n: number): Promise<number[]> =>
  (await seen(currency, txid)).vout
    .filter((output) => output.scriptPubKey.hex.startsWith(`0014${n.toString(16).padStart(2, '0').repeat(2)}`))
    .map((output) => output.value);

describe('pay', () => {
  it('pays what is still due, then the full amount', async () => {
    const { txid: part } = await ask('pay', { transaction_id: 'txn_btc_1', amount: '0.0004' });
    expect(await paidTo('btc', part, 1)).toEqual([0.0004]);
    const { txid: rest } = await ask('pay', { transaction_id: 'txn_btc_1' });
    expect(await paidTo('btc', rest, 1)).toEqual([0.0006]);
    const { txid: again } = await ask('pay', { transaction_id: 'txn_btc_1' });
    expect(await paidTo('btc', again, 1)).toEqual([0.001]);
  });

  it('is answered when the service has read the chain', async () => {
    calls.read = [];
    await ask('pay', { transaction_id: 'txn_btc_2' });
    await ask('pay', { transaction_id: 'txn_btc_2', currency: 'LTC', amount: '1' });
    expect(calls.read).toEqual(['BTC', 'LTC']);
  });

  it('pays in another currency to the same script', async () => {
    const { txid } = await ask('pay', { transaction_id: 'txn_btc_3', currency: 'ltc', amount: '2.5' });
    expect(await paidTo('ltc', txid, 3)).toEqual([2.5]);
  });

  it('splits into outputs that add up', async () => {
    const { txid } = await ask('pay', { transaction_id: 'txn_btc_4', split: 3 });
    expect(await paidTo('btc', txid, 4)).toEqual([0.00033334, 0.00033333, 0.00033333]);
  });

  it('replaces with another amount, until the payment is mined', async () => {
    for (const currency of ['btc', 'ltc']) {
      const { txid: first } = await ask('pay', { transaction_id: `txn_${currency}_5` });
      const { txid: second } = await ask('pay', { transaction_id: `txn_${currency}_5`, replace: first, amount: '0.00000700' });
      expect(await paidTo(currency, second, 5)).toEqual([0.000007]);
      await expect(seen(currency, first)).rejects.toThrow('No such mempool');
      await ask('mine', { currency: currency, blocks: 1 });
      expect(await refused('pay', { transaction_id: `txn_${currency}_5`, replace: second })).toEqual([
        409,
        'not_possible',
        undefined,
      ]);
      expect(await refused('pay', { transaction_id: `txn_${currency}_5`, replace: first })).toEqual([
        409,
        'not_possible',
        undefined,
      ]);
    }
    const { txid } = await ask('pay', { transaction_id: 'txn_btc_6' });
    expect((await refused('pay', { transaction_id: 'txn_btc_5', replace: txid }))[0]).toBe(409);
  });

  it('pays by a coinbase', async () => {
    const { txid } = await ask('pay', { transaction_id: 'txn_btc_7', kind: 'coinbase', split: 2 });
    expect(await paidTo('btc', txid, 7)).toEqual([0.0005, 0.0005]);
    expect(await seen('btc', txid)).toMatchObject({ confirmations: 1, vin: [{ coinbase: expect.any(String) }] });
  });

  it('can pay 100,000 dollars many times', async () => {
    const { txid } = await ask('pay', { transaction_id: 'txn_ltc_8', amount: '50000' });
    expect(await paidTo('ltc', txid, 8)).toEqual([50_000]);
    expect(await refused('pay', { transaction_id: 'txn_btc_8', amount: '99999999' })).toEqual([409, 'faucet_empty', 'amount']);
  });

  it.each([
    [{}, 400, 'missing_field', 'transaction_id'],
    [{ transaction_id: null }, 400, 'missing_field', 'transaction_id'],
    [{ transaction_id: 7 }, 400, 'invalid_request', 'transaction_id'],
    [{ transaction_id: 'txn_none' }, 404, 'transaction_not_found', 'transaction_id'],
    [{ transaction_id: 'txn_btc_1', amount: 1 }, 400, 'invalid_amount', 'amount'],
    [{ transaction_id: 'txn_btc_1', amount: '0' }, 400, 'invalid_amount', 'amount'],
    [{ transaction_id: 'txn_btc_1', amount: '-1' }, 400, 'invalid_amount', 'amount'],
    [{ transaction_id: 'txn_btc_1', amount: '0.123456789' }, 400, 'invalid_amount', 'amount'],
    [{ transaction_id: 'txn_btc_1', amount: '1e2' }, 400, 'invalid_amount', 'amount'],
    [{ transaction_id: 'txn_btc_1', split: 0 }, 400, 'invalid_request', 'split'],
    [{ transaction_id: 'txn_btc_1', split: 1.5 }, 400, 'invalid_request', 'split'],
    [{ transaction_id: 'txn_btc_1', split: 3, amount: '0.00000002' }, 400, 'invalid_request', 'split'],
    [{ transaction_id: 'txn_btc_1', kind: 'internal' }, 400, 'invalid_request', 'kind'],
    [{ transaction_id: 'txn_btc_1', kind: 'nonsense' }, 400, 'invalid_request', 'kind'],
    [{ transaction_id: 'txn_btc_1', replace: 'abc' }, 400, 'invalid_request', 'replace'],
    [{ transaction_id: 'txn_btc_1', currency: 'XMR' }, 400, 'unsupported_currency', 'currency'],
    [{ transaction_id: 'txn_btc_1', currency: 'USDT' }, 409, 'not_possible', undefined],
    [{ transaction_id: 'txn_btc_1', currency: 'BTC-LN' }, 409, 'currency_unavailable', 'currency'],
    [{ transaction_id: 'txn_eth_1', kind: 'coinbase' }, 400, 'invalid_request', 'kind'],
    [{ transaction_id: 'txn_eth_1', kind: 'token_fake' }, 400, 'invalid_request', 'kind'],
    [{ transaction_id: 'txn_eth_1', currency: 'BTC' }, 409, 'not_possible', undefined],
    [{ transaction_id: 'txn_eth_1', amount: '2000000' }, 409, 'faucet_empty', 'amount'],
  ])('refuses %j', async (body, status, error, param) => {
    expect(await refused('pay', body)).toEqual([status, error, param]);
  });
});

describe('mine, reorg, double_spend', () => {
  it('mines what it says', async () => {
    const before = (await rpc(sandbox, 'ltc', 'getblockcount')) as number;
    const { height, hash } = await ask('mine', { currency: 'LTC', blocks: 3 });
    expect(height).toBe(before + 3);
    expect(await rpc(sandbox, 'ltc', 'getbestblockhash')).toBe(hash);
  });

  it('replaces blocks, keeping or dropping their payments', async () => {
    const { txid: kept } = await ask('pay', { transaction_id: 'txn_btc_20' });
    await ask('mine', { currency: 'BTC', blocks: 2 });
    await ask('reorg', { currency: 'BTC', depth: 2 });
    expect((await seen('btc', kept)).confirmations).toBeUndefined();
    await ask('mine', { currency: 'BTC', blocks: 1 });
    expect((await seen('btc', kept)).confirmations).toBe(1);
    await ask('reorg', { currency: 'BTC', depth: 1, drop: true });
    await expect(seen('btc', kept)).rejects.toThrow('No such mempool');
  });

  it('conflicts with every unconfirmed payment, and says when there is none', async () => {
    const { txid: first } = await ask('pay', { transaction_id: 'txn_btc_21' });
    const { txid: other } = await ask('pay', { transaction_id: 'txn_btc_21', currency: 'LTC' });
    const { txids } = await ask('double_spend', { transaction_id: 'txn_btc_21' });
    expect(txids).toHaveLength(2);
    await expect(seen('btc', first)).rejects.toThrow();
    await expect(seen('ltc', other)).rejects.toThrow();
    expect(await refused('double_spend', { transaction_id: 'txn_btc_21' })).toEqual([409, 'not_possible', undefined]);
    await ask('pay', { transaction_id: 'txn_btc_21' });
    await ask('mine', { currency: 'BTC', blocks: 1 });
    expect(await refused('double_spend', { transaction_id: 'txn_btc_21' })).toEqual([409, 'not_possible', undefined]);
  });

  it('drops every unconfirmed payment without a conflict, and sends it again', async () => {
    const { txid } = await ask('pay', { transaction_id: 'txn_btc_22' });
    const { txid: other } = await ask('pay', { transaction_id: 'txn_btc_22', currency: 'DOGE' });
    expect((await ask('evict', { transaction_id: 'txn_btc_22' })).txids).toEqual([txid, other]);
    await expect(seen('btc', txid)).rejects.toThrow('No such mempool');
    expect(await refused('evict', { transaction_id: 'txn_btc_22' })).toEqual([409, 'not_possible', undefined]);
    // the outputs that it spends wait for it
    const { txid: next } = await ask('pay', { transaction_id: 'txn_btc_23' });
    await ask('mine', { currency: 'BTC', blocks: 1 });
    expect((await ask('return', { transaction_id: 'txn_btc_22' })).txids).toEqual([txid, other]);
    expect(await refused('return', { transaction_id: 'txn_btc_22' })).toEqual([409, 'not_possible', undefined]);
    await ask('mine', { currency: 'BTC', blocks: 1 });
    expect((await seen('btc', txid)).confirmations).toBe(1);
    expect((await seen('btc', next)).confirmations).toBe(2);
    expect(await refused('evict', { transaction_id: 'txn_btc_23' })).toEqual([409, 'not_possible', undefined]);
    await ask('mine', { currency: 'DOGE', blocks: 1 });
  });

  it.each([
    ['evict', { transaction_id: 'txn_none' }, 404, 'transaction_not_found', 'transaction_id'],
    ['return', { transaction_id: 'txn_none' }, 404, 'transaction_not_found', 'transaction_id'],
    ['mine', {}, 400, 'missing_field', 'currency'],
    ['mine', { currency: 'BTC' }, 400, 'missing_field', 'blocks'],
    ['mine', { currency: 'BTC', blocks: '1' }, 400, 'invalid_request', 'blocks'],
    ['mine', { currency: 'BTC', blocks: 0 }, 400, 'invalid_request', 'blocks'],
    ['mine', { currency: 'BTC-LN', blocks: 1 }, 409, 'currency_unavailable', 'currency'],
    ['mine', { currency: 'ACH', blocks: 1 }, 409, 'currency_unavailable', 'currency'],
    ['reorg', { currency: 'BTC', depth: 0 }, 400, 'invalid_request', 'depth'],
    ['reorg', { currency: 'BTC', depth: 999 }, 409, 'not_possible', undefined],
    ['reorg', { currency: 'BTC', depth: 1, drop: 'yes' }, 400, 'invalid_request', 'drop'],
    ['double_spend', { transaction_id: 'txn_none' }, 404, 'transaction_not_found', 'transaction_id'],
    ['clock', { advance_seconds: -1 }, 400, 'invalid_request', 'advance_seconds'],
    ['clock', { advance_seconds: 1e12 }, 400, 'invalid_request', 'advance_seconds'],
    ['clock', {}, 400, 'missing_field', 'advance_seconds'],
    ['node', { currency: 'BTC' }, 400, 'missing_field', 'down'],
    ['node', { currency: 'BTC', fault: 'sleepy' }, 400, 'invalid_request', 'fault'],
    ['node', { currency: 'BTC', fault: 'no_locks' }, 400, 'invalid_request', 'fault'],
    ['node', { currency: 'BTC', down: 1 }, 400, 'invalid_request', 'down'],
    ['node', { currency: 'BTC', down: true, for: 2 }, 400, 'invalid_request', 'for'],
    ['node', { currency: 'ACH', fault: 'forgets' }, 400, 'invalid_request', 'fault'],
    ['node', { currency: 'ACH' }, 400, 'missing_field', 'down'],
    ['receive', { currency: 'BTC', address: 'nonsense' }, 400, 'invalid_request', 'address'],
    ['receive', { currency: 'USD', address: 'ach:1:2' }, 400, 'invalid_request', 'address'],
    ['receive', { currency: 'ACH', address: 'ach:1:2' }, 400, 'invalid_request', 'address'],
    ['rates', { XMR: '1.00' }, 400, 'unsupported_currency', 'XMR'],
    ['rates', { BTC: 65000 }, 400, 'invalid_request', 'BTC'],
    ['rates', { BTC: '0' }, 400, 'invalid_request', 'BTC'],
    ['rates', { BTC: ['1.00', '1.00'] }, 400, 'invalid_request', 'BTC'],
    ['invoice', { amount: '0' }, 400, 'invalid_amount', 'amount'],
    ['invoice', { behaviour: 'late' }, 400, 'invalid_request', 'behaviour'],
    ['lnurl', { min: '0.2', max: '0.1' }, 400, 'invalid_request', 'min'],
    ['bank', {}, 400, 'missing_field', 'action'],
    ['bank', { action: 'rob' }, 400, 'invalid_request', 'action'],
    ['bank', { action: 'return' }, 400, 'missing_field', 'payout_id'],
    ['bank', { action: 'return', payout_id: 'payout_filed', code: 'C01' }, 400, 'invalid_request', 'code'],
    ['bank', { action: 'noc', payout_id: 'payout_filed', code: 'R03' }, 400, 'invalid_request', 'code'],
    ['bank', { action: 'return', payout_id: 'payout_none' }, 404, 'payout_not_found', 'payout_id'],
    ['bank', { action: 'return', payout_id: 'payout_waits' }, 409, 'not_possible', undefined],
    ['bank', { action: 'return', payout_id: 'payout_filed' }, 409, 'not_possible', undefined],
    ['nonsense', {}, 404, 'not_found', undefined],
    ['__proto__', {}, 404, 'not_found', undefined],
    ['mine', [], 400, 'invalid_json', undefined],
    ['mine', 'null', 400, 'invalid_json', undefined],
    ['mine', '{"currency":', 400, 'invalid_json', undefined],
    ['mine', '{"__proto__":{"currency":"BTC"},"blocks":1}', 400, 'missing_field', 'currency'],
  ])('%s refuses %j', async (name, body, status, error, param) => {
    expect(await refused(name, body)).toEqual([status, error, param]);
  });

  it('refuses a body that is too large or not JSON by its type', async () => {
    const big = await post(sandbox.url, 'mine', `{"currency":"${'x'.repeat(70_000)}"}`);
    expect(big.status).toBe(413);
    expect((await fetch(`${sandbox.url}/control/mine`, { method: 'POST', body: '{}' })).status).toBe(415);
  });
});

describe('the rest', () => {
  it('gives out addresses outside the service and reports what arrived there', async () => {
    const { address } = await ask('address', { currency: 'BTC' });
    const { address: other } = await ask('address', { currency: 'BTC' });
    expect(address).toMatch(/^bcrt1q/);
    expect(other).not.toBe(address);
    expect((await ask('address', { currency: 'LTC' })).address).toMatch(/^rltc1q/);
    expect(await ask('receive', { currency: 'BTC', address })).toEqual({ received: '0.00000000', payments: [] });
    const [hash] = (await rpc(sandbox, 'btc', 'generatetoaddress', 1, address)) as string[];
    const { tx } = (await rpc(sandbox, 'btc', 'getblock', hash)) as { tx: string[] };
    expect(await ask('receive', { currency: 'BTC', address })).toMatchObject({ payments: [{ txid: tx[0], confirmations: 1 }] });
  });

  it('moves the clock, and blocks carry the new time', async () => {
    const before = calls.settled;
    calls.read = [];
    const { now } = await ask('clock', { advance_seconds: 3600 });
    expect(Date.parse(now as string)).toBeGreaterThan(Date.now() + 3_590_000);
    expect(calls.read).toEqual(['BTC LTC ETH BCH DASH DOGE USDT BTC-LN']);
    expect(calls.settled).toBe(before + 1);
    const { hash } = await ask('mine', { currency: 'BTC', blocks: 1 });
    const { time } = (await rpc(sandbox, 'btc', 'getblockheader', hash)) as { time: number };
    expect(time * 1000).toBeGreaterThan(Date.now() + 3_590_000);
    expect(readFileSync(join(folder, 'clock-offset')).readBigInt64LE()).toBe(3_600_000n);
  });

  it('does not move the clock before what was answered for is read, and says when not all that is due was done', async () => {
    const offset = () => readFileSync(join(folder, 'clock-offset')).readBigInt64LE();
    const before = offset();
    calls.canRead = false;
    expect(await refused('clock', { advance_seconds: 60 })).toEqual([409, 'not_possible', undefined]);
    expect(offset()).toBe(before);
    Object.assign(calls, { canRead: true, canSettle: false });
    expect(await refused('clock', { advance_seconds: 60 })).toEqual([409, 'not_possible', undefined]);
    expect(offset()).toBe(before + 60_000n);
    calls.canSettle = true;
    await ask('clock', { advance_seconds: 0 });
  });

  it('pays and mines while a node hangs, and does not wait for what cannot be read', async () => {
    await ask('node', { currency: 'BTC', fault: 'hang' });
    calls.read = [];
    await ask('pay', { transaction_id: 'txn_btc_31' });
    await ask('mine', { currency: 'BTC', blocks: 1 });
    expect(calls.read).toEqual([]);
    await ask('clock', { advance_seconds: 0 });
    expect(calls.read).toEqual(['LTC ETH BCH DASH DOGE USDT BTC-LN']);
    await ask('node', { currency: 'BTC', fault: null });
  });

  it('pays and mines while a node is down, and does not make the service wait', async () => {
    expect(await ask('node', { currency: 'BTC', down: true })).toEqual({ currency: 'BTC', down: true, fault: null, for: null });
    calls.read = [];
    const { txid } = await ask('pay', { transaction_id: 'txn_btc_30' });
    await ask('mine', { currency: 'BTC', blocks: 2 });
    await ask('reorg', { currency: 'BTC', depth: 1 });
    expect(calls.read).toEqual([]);
    await expect(rpc(sandbox, 'btc', 'getblockcount')).rejects.toThrow();
    await ask('node', { currency: 'BTC', down: false });
    expect((await seen('btc', txid)).confirmations).toBe(3);
  });

  it('sets faults and takes them back', async () => {
    expect(await ask('node', { currency: 'LTC', fault: 'reject' })).toMatchObject({ fault: 'reject', for: 1 });
    expect(await ask('node', { currency: 'LTC', fault: 'lose_answers', for: 3 })).toMatchObject({
      fault: 'lose_answers',
      for: 3,
    });
    expect(await ask('node', { currency: 'LTC', fault: null })).toMatchObject({ fault: null, for: null });
  });

  it('adds merchants and users through the service', async () => {
    expect(await ask('merchant', { username: 'shop', password: 'long enough' })).toEqual({ affiliate_id: 'aff_1' });
    expect(calls.merchants).toEqual([{ username: 'shop', password: 'long enough', email: null, businessName: null }]);
    expect(await refused('merchant', { username: 'taken', password: 'x' })).toEqual([409, 'not_possible', 'username']);
    expect(await refused('merchant', { username: 'shop', password: 'short' })).toEqual([400, 'invalid_request', 'password']);
    expect(await refused('merchant', { username: 'shop' })).toEqual([400, 'missing_field', 'password']);
    const user = { affiliate_id: 'aff_1', username: 'clerk', password: 'x', scopes: ['read'] };
    expect(await ask('user', user)).toMatchObject({ username: 'clerk', scopes: ['read'] });
    expect(await ask('user', { ...user, scopes: 'read,payments' })).toMatchObject({ scopes: ['read', 'payments'] });
    expect(await refused('user', { ...user, username: 'taken' })).toEqual([409, 'not_possible', 'username']);
    expect((await refused('user', { ...user, affiliate_id: 'aff_2' }))[0]).toBe(404);
    expect((await refused('user', { ...user, scopes: ['all'] }))[0]).toBe(409);
    expect(await refused('user', { ...user, scopes: [1] })).toEqual([400, 'invalid_request', 'scopes']);
  });
});
