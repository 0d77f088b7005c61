// A transaction's life on a real database: a verdict is written whole or not at all, and once, whoever decides at the same time; the books
// agree with it (the audit runs after each history).
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { cancelTransaction, resolveTransaction } from '../../../src/flow/transactions/create-cancel-resolve.ts';
import {
  checkTransaction,
  expandTransaction,
  listBalanceEntries,
  listTransactions,
} from '../../../src/flow/transactions/reads.ts';
import { openServiceOnDatabase, type ServiceOnDatabase } from '../../support/service-on-database.ts';

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
let service: ServiceOnDatabase;
beforeAll(async () => {
  service = await openServiceOnDatabase();
});
afterEach(async () => {
  expect(await service.findings()).toEqual([]);
});
afterAll(() => service.drop());

const view = (transactionId: string) => checkTransaction(service.ctx, { merchantId: service.merchantId, transactionId });
const resolve = (transactionId: string, action: 'accept' | 'decline', part: 'excess' | null = null) =>
  resolveTransaction(service.ctx, { merchantId: service.merchantId, transactionId, action, part });
const cancel = (transactionId: string) => cancelTransaction(service.ctx, { merchantId: service.merchantId, transactionId });

describe('from started to settled', () => {
  test('paid exactly: every status in the history, credited once, and explained by its entry', async () => {
    const before = await service.available();
    const { transactionId } = await service.create();
    expect(await view(transactionId)).toMatchObject({
      status: 'started',
      receivedMinor: 0n,
      confirmations: 0,
      confirmedAtMs: null,
    });
    const sent = await service.pay(transactionId, 50_000n);
    await service.judge();
    expect(await view(transactionId)).toMatchObject({ status: 'pending', receivedMinor: 50_000n, confirmations: 0 });
    await service.mine();
    await service.judge();
    expect(await view(transactionId)).toMatchObject({ status: 'succeeded', confirmations: 1, confirmedAtMs: service.now() });
    expect(await service.available()).toBe(before + 50_000n);
    const { data } = await listBalanceEntries(service.ctx, {
      merchantId: service.merchantId,
      currency: 'BTC',
      limit: 1,
      startingAfter: null,
    });
    expect(data[0]).toMatchObject({ amount: 50_000n, balanceAfter: before + 50_000n, kind: 'deposit', transactionId });
    const after = { currency: null, limit: 1, startingAfter: data[0]?.entryId ?? 0n };
    expect((await listBalanceEntries(service.ctx, { merchantId: service.merchantId, ...after })).data).not.toContainEqual(
      data[0],
    );
    await expect(listBalanceEntries(service.ctx, { merchantId: service.merchantId + 1n, ...after })).rejects.toMatchObject({
      code: 'not_found',
    });
    await service.mine(5);
    await service.wait(DAY);
    await service.judge();
    expect(await service.path(transactionId)).toEqual(['started', 'pending', 'confirmed', 'succeeded', 'settled']);
    const names = ['payments', 'events'];
    const { payments, events } = await expandTransaction(service.ctx, { merchantId: service.merchantId, transactionId, names });
    expect(JSON.parse(payments as string)).toMatchObject([
      { txid: sent.facts.txid, amount: '0.00050000', confirmations: 6, counted: true },
    ]);
    const statuses = (JSON.parse(events as string) as { status: string }[]).map((event) => event.status);
    expect(statuses).toEqual(['started', 'pending', 'confirmed', 'succeeded', 'settled']);
  });

  test('never paid: timed out, looked up, checked', async () => {
    const { transactionId } = await service.create();
    await service.wait(DAY);
    await service.judge();
    expect(await service.path(transactionId)).toEqual(['started', 'timedout', 'timedout_checked']);
    expect((await service.row(transactionId)).due_at).toBeNull();
  });

  test('too little, accepted by the merchant after all; too much, the excess accepted later', async () => {
    const [little, much] = [await service.create(), await service.create()];
    await service.pay(little.transactionId, 20_000n);
    await service.pay(much.transactionId, [50_000n, 30_000n]);
    await service.mine();
    await service.wait(17 * MINUTE);
    await service.judge();
    expect([(await view(little.transactionId)).status, (await view(much.transactionId)).status]).toEqual([
      'declined',
      'succeeded',
    ]);
    const before = await service.available();
    expect(await resolve(little.transactionId, 'accept')).toEqual({ transactionId: little.transactionId, status: 'succeeded' });
    expect(await resolve(much.transactionId, 'accept', 'excess')).toEqual({
      transactionId: much.transactionId,
      status: 'succeeded',
    });
    expect(await service.available()).toBe(before + 50_000n);
    expect(await service.path(little.transactionId)).toEqual(['started', 'pending', 'declined', 'confirmed', 'succeeded']);
  });

  test('the history says who decided: the operator or the merchant', async () => {
    const mine = await service.create();
    const theirs = await service.create();
    const refused = await service.create();
    for (const one of [mine, theirs]) await service.pay(one.transactionId, 20_000n);
    await service.pay(refused.transactionId, 700n, { currency: 'LTC' });
    await service.mine();
    await service.mine(12, 'LTC');
    await service.wait(17 * MINUTE);
    await service.judge();
    const operator = { merchantId: null, part: null };
    await resolveTransaction(service.ctx, { ...operator, transactionId: mine.transactionId, action: 'accept' });
    await resolveTransaction(service.ctx, { ...operator, transactionId: refused.transactionId, action: 'decline' });
    await resolve(theirs.transactionId, 'accept');
    const said = async ({ transactionId }: { transactionId: string }, status: string) =>
      (await service.admin.query('select reason from events where object_id = $1 and status = $2', [transactionId, status]))
        .rows[0].reason;
    expect(await said(mine, 'confirmed')).toBe('accepted by the operator');
    expect(await said(theirs, 'confirmed')).toBe('accepted by the merchant');
    expect(await said(refused, 'declined')).toBe('refused by the operator');
  });

  test('late and in the other currency: review, suspense, refused by the merchant', async () => {
    const { transactionId } = await service.create();
    await service.pay(transactionId, 700n, { currency: 'LTC' });
    await service.mine(12, 'LTC');
    await service.judge();
    expect(await service.path(transactionId)).toEqual(['started', 'review']);
    expect(await service.balance(`suspense:${transactionId}:LTC`)).toBe(700n);
    expect(await view(transactionId)).toMatchObject({ receivedMinor: 0n, confirmations: 12 });
    await resolve(transactionId, 'decline');
    expect((await view(transactionId)).status).toBe('declined');
  });

  test('a payment that is lost is taken back, and what was lost and is back restores it', async () => {
    const { transactionId } = await service.create();
    const sent = await service.pay(transactionId, 60_000n);
    await service.mine();
    await service.judge();
    const before = await service.available();
    await service.reorganise([sent]);
    await service.judge();
    expect(await view(transactionId)).toMatchObject({ status: 'review', receivedMinor: 0n, confirmedAtMs: null });
    expect(await service.available()).toBe(before - 50_000n);
    expect(await service.balance(`suspense:${transactionId}:BTC`)).toBe(0n);
    expect(await service.findings()).toEqual([]);
    await service.reorganise([]);
    await service.pay(transactionId, 60_000n, { inputs: sent.facts.inputs });
    await service.mine();
    await service.judge();
    expect(await service.path(transactionId)).toEqual([
      'started',
      'pending',
      'confirmed',
      'succeeded',
      'review',
      'confirmed',
      'succeeded',
    ]);
    expect(await service.available()).toBe(before);
  });
});

describe('the merchant’s decisions', () => {
  test('cancel: payments in flight go to review, and then it cannot be cancelled again', async () => {
    const { transactionId } = await service.create();
    await service.pay(transactionId, 50_000n);
    const answer = { transactionId, status: 'cancelled', message: 'The transaction has been cancelled.' };
    expect(await cancel(transactionId)).toEqual(answer);
    await expect(cancel(transactionId)).rejects.toMatchObject({ code: 'transaction_not_cancellable' });
    expect(await service.path(transactionId)).toEqual(['started', 'pending', 'cancelled', 'review']);
  });

  test('of another merchant, or of nothing: not found', async () => {
    const { transactionId } = await service.create();
    for (const input of [
      { merchantId: service.merchantId + 1n, transactionId },
      { merchantId: service.merchantId, transactionId: 'txn_nothing' },
    ]) {
      await expect(cancelTransaction(service.ctx, input)).rejects.toMatchObject({ code: 'transaction_not_found' });
      await expect(resolveTransaction(service.ctx, { ...input, action: 'accept', part: null })).rejects.toMatchObject({
        code: 'transaction_not_found',
      });
    }
    expect((await view(transactionId)).status).toBe('started');
  });

  test('a refusal leaves nothing behind, not even what was due; the job writes that', async () => {
    const { transactionId } = await service.create();
    await service.pay(transactionId, 50_000n);
    await service.mine();
    await expect(cancel(transactionId)).rejects.toMatchObject({ code: 'transaction_not_cancellable' });
    expect(await service.path(transactionId)).toEqual(['started']);
    await service.judge();
    expect((await view(transactionId)).status).toBe('succeeded');
  });

  test('the operator resolves for every merchant', async () => {
    const { transactionId } = await service.create();
    await service.pay(transactionId, 700n, { currency: 'LTC' });
    await service.judge();
    const input = { merchantId: null, transactionId, action: 'decline' as const, part: null };
    expect(await resolveTransaction(service.ctx, input)).toEqual({ transactionId, status: 'declined' });
  });
});

test('the list shows them newest first, page by page', async () => {
  const filter = {
    merchantId: service.merchantId,
    status: null,
    currency: null,
    label: null,
    createdGteMs: null,
    createdLtMs: null,
  };
  const all = await listTransactions(service.ctx, { ...filter, limit: 100, startingAfter: null });
  const first = await listTransactions(service.ctx, { ...filter, limit: 5, startingAfter: null });
  const second = await listTransactions(service.ctx, { ...filter, limit: 5, startingAfter: first.data[4]!.transactionId });
  expect([...first.data, ...second.data].map((row) => row.transactionId)).toEqual(
    all.data.slice(0, 10).map((row) => row.transactionId),
  );
  expect(first.hasMore).toBe(true);
});
