// Long answers: what `expand` shows of a transaction that was paid in very many outputs, and whole pages of lists. All is shown, and other
// merchants do not wait for it.
import { afterAll, beforeAll, expect, test } from 'vitest';
import { CURRENCY_CODES } from '../../src/core/currency.ts';
import { formatAmount } from '../../src/core/money.ts';
import { listReply } from '../../src/http/handlers/transaction-replies.ts';
import { slowness } from '../support/slowness.ts';
import { type ApiServer, makeApi } from './api-server.ts';

let api: ApiServer;
beforeAll(async () => {
  api = await makeApi();
});
afterAll(() => api.end());

async function made(): Promise<string> {
  return (await api.call('/create_transaction', { amount: '5', crypto_selected: 'BTC' })).json.transaction_id;
}

let outputs = 0;
/** Payments of this transaction, as watchers and judge leave them, one for each amount and currency. */
async function pay(transactionId: string, payments: readonly (readonly [currency: string, amount: bigint])[]): Promise<void> {
  await api.sql(
    `insert into payments (transaction_id, currency, txid, vout, amount, twin_key, state, height, seen_at, caught_up_at, found_mined, counted)
     select $1, p.currency, lpad(to_hex(p.n), 64, '0'), $4, p.amount, decode(lpad(to_hex(p.n), 64, '0'), 'hex'),
            case when p.n % 3 = 0 then 'mempool' else 'mined' end, case when p.n % 3 = 0 then null else 90 end,
            timestamptz '2027-01-15 08:00:05.678+00' + p.n * interval '1 second', now(), false, p.n % 2 = 0
       from unnest($2::text[], $3::numeric[]) with ordinality as p(currency, amount, n)`,
    [transactionId, payments.map(([currency]) => currency), payments.map(([, amount]) => String(amount)), outputs++],
  );
}

test('every payment is shown as it would be by itself: amounts of each currency, times, confirmations, texts', async () => {
  const id = await made();
  const amounts = [1n, 10n, 546n, 100_000_000n, 123_456_789_012_345n, 1_000_000_000_000_000_000n, 10_000_000_001n];
  const paid = CURRENCY_CODES.flatMap((code) => amounts.map((amount) => [code, amount] as const));
  await pay(id, paid);
  await api.sql(
    `insert into events (merchant_id, object_id, sequence, type, status, reason, at)
     select merchant_id, id, 2, 'transaction.extra_payment', status, $2, timestamptz '2027-01-15 08:00:05.004+00' from transactions where id = $1`,
    [id, 'a "quoted" text,\\ü\n'],
  );
  const { json } = await api.call('/check_transaction', { transaction_id: id, expand: ['payments', 'events', 'refund'] });
  expect(json.payments.map((one: { amount: string }) => one.amount)).toEqual(
    paid.map(([code, amount]) => formatAmount(amount, code)),
  );
  expect(json.payments[2]).toEqual({
    txid: '3'.padStart(64, '0'),
    amount: '0.00000546',
    confirmations: 0,
    seen_at: '2027-01-15T08:00:08.678Z',
    counted: false,
  });
  expect(json.payments[1].counted).toBe(true);
  expect(json.events[1]).toEqual({ status: 'started', at: '2027-01-15T08:00:05.004Z', reason: 'a "quoted" text,\\ü\n' });
  expect(json.refund).toBeNull();
  expect(json.transaction_id).toBe(id);
});

test('20,000 payments cost the server little more than the bytes of the answer', async () => {
  const id = await made();
  await pay(
    id,
    Array.from({ length: 20_000 }, (_, n) => ['BTC', BigInt(n + 600)] as const),
  );
  const access_token = await api.tokenOf('shop');
  const ask = async (expand: readonly string[]) => {
    const { bytes, ms } = await cpuOf(async () => {
      const answer = await fetch(`${api.base}/check_transaction`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ access_token, transaction_id: id, expand }),
      });
      return (await answer.arrayBuffer()).byteLength;
    });
    return { bytes, ms };
  };
  await ask(['payments']);
  const costs = [await ask(['payments']), await ask(['payments']), await ask(['payments'])];
  expect(costs[0]?.bytes).toBeGreaterThan(3_000_000);
  expect(Math.min(...costs.map(({ ms }) => ms))).toBeLessThan(110 * slowness());
});

async function cpuOf(work: () => Promise<number>): Promise<{ bytes: number; ms: number }> {
  const before = process.cpuUsage();
  const bytes = await work();
  const { user, system } = process.cpuUsage(before);
  return { bytes, ms: (user + system) / 1_000 };
}

test('one merchant reads few such lists at once, and keeps no other from his calls', async () => {
  const id = await made();
  await api.sql('begin');
  await api.sql('lock table events in access exclusive mode');
  const waiting = async (): Promise<number> => {
    const [row] = await api.sql(`select count(*)::int as n from pg_locks where relation = 'events'::regclass and not granted`);
    return row.n;
  };
  const calls = Array.from({ length: 30 }, () => api.call('/check_transaction', { transaction_id: id, expand: ['events'] }));
  await expect.poll(waiting).toBe(2);
  const other = await api.call('/list_balance_entries', {}, {}, 'other');
  expect(other.status).toBe(200);
  expect((await api.call('/check_transaction', { transaction_id: id, expand: ['rate', 'refund'] })).status).toBe(200);
  expect(await waiting()).toBe(2);
  await api.sql('commit');
  for (const { json } of await Promise.all(calls)) expect(json.events).toHaveLength(1);
});

test('the codes of a page are drawn with other work in between', async () => {
  let turns = 0;
  let isDrawn = false;
  const count = (): void => {
    turns += 1;
    if (!isDrawn) setImmediate(count);
  };
  setImmediate(count);
  const data = Array.from({ length: 100 }, (_, n) => ({
    transactionId: `txn_${n}`,
    status: 'started' as const,
    currency: 'BTC' as const,
    amountDue: BigInt(n + 1),
    receivedMinor: 0n,
    confirmations: 0,
    usdMinor: 500n,
    createdAtMs: 0,
    confirmedAtMs: null,
    version: 1,
    label: null,
    address: 'bcrt1qq5nunksgr27r57vrpp2xzc2nlwrv3xmdhydntp',
    rate: 6_500_000_000_000n,
    expiresAtMs: 900_000,
  }));
  const reply = await listReply({ data, hasMore: false }, { network: 'regtest', tokenContract: null });
  isDrawn = true;
  expect(reply.data.map((one) => one.transaction_id)).toEqual(data.map((one) => one.transactionId));
  expect(turns).toBeGreaterThanOrEqual(9);
});
