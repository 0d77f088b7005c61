// What the signer refuses, or cannot answer: only what is refused waits, the payouts behind it go on, and nothing is lost or piled up.
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { ChainPort } from '../../../src/core/ports.ts';
import type { Context } from '../../../src/flow/context.ts';
import { requestPayout } from '../../../src/flow/payouts/bitcoin-request.ts';
import { approvePayout, cancelPayout } from '../../../src/flow/payouts/cancel-and-approve.ts';
import { clearBreakers, openBreakers, tripBreaker } from '../../../src/store/ledger/breakers.ts';
import { saveFeeRate } from '../../../src/store/payouts/fee-rates.ts';
import { waitingForOperator } from '../../../src/store/payouts/waiting-for-operator.ts';
import { createHeldPayouts } from '../../../src/worker/payouts/held-payouts.ts';
import { payoutJobs } from '../../../src/worker/payouts/job.ts';
import { fund, OUTSIDE, owe, tellFee } from '../../support/funded.ts';
import { tellingTo } from '../../support/payout-jobs.ts';
import { openServiceOnDatabase, type ServiceOnDatabase } from '../../support/service-on-database.ts';
import { openDriver } from './signer.ts';

let service: ServiceOnDatabase;
let ctx: Context;
let at: ReturnType<typeof openDriver>;

beforeEach(async () => {
  service = await openServiceOnDatabase();
  ({ ctx } = service);
  await tellFee(ctx);
  at = openDriver(service);
});
afterEach(() => service.drop());

async function earn(times = 1): Promise<void> {
  for (let n = 0; n < times; n++) {
    const { transactionId } = await service.create(1_000_00n);
    await service.pay(transactionId, 1_000_000n);
  }
  await service.mine(6);
  await service.judge();
}
const request = async (amount = '0.002', merchantId = service.merchantId): Promise<string> => {
  const made = await requestPayout(ctx, { merchantId, amount, destination: OUTSIDE });
  service.pass(1);
  return made.id;
};
const row = async (id: string) => (await service.admin.query('select * from payouts where id = $1', [id])).rows[0];
const shown = async (id: string) => {
  const { status, step, held_reason } = await row(id);
  return [status, step, held_reason];
};
const count = async (table: string): Promise<number> =>
  Number((await service.admin.query(`select count(*) from ${table}`)).rows[0].count);
async function passes(times: number, ms = 1_000): Promise<void> {
  for (let n = 0; n < times; n++) {
    await at.driver.pass({ isQueued: true, signsNew: true });
    service.pass(ms);
  }
}
const look = () => createHeldPayouts(ctx, (_id, error) => expect(error).toBeNull()).run();
const SIGNED = ['processing', 'batched', null];
const HELD = ['pending', 'held', 'approval'];

test('a signer that does not answer is told at once, until it has signed', async () => {
  await earn();
  const id = await request();
  at.signer.fails = 'before';
  await passes(1);
  const told = () => waitingForOperator(ctx.db, { limit: 5, nowMs: service.now() });
  expect(await told()).toEqual([{ id, why: 'waits: no answer' }]);
  at.signer.fails = null;
  await passes(2, 15_000);
  expect([await shown(id), await told()]).toEqual([SIGNED, []]);
});

test('a signer that cannot be asked before a batch is formed is told too, until it answers', async () => {
  await earn();
  const id = await request();
  let answers = false;
  const signed = async () => {
    if (!answers) throw Object.assign(new Error('no answer'), { fault: 'unreachable' });
    return { transactions: [], more: false };
  };
  const signing = { sign: () => Promise.reject(new Error('nobody asks for a signature')), signed };
  // the look asks no node
  const node = { currency: 'BTC', send: () => Promise.reject(new Error('nobody sends')) } as unknown as ChainPort;
  const chains = new Map([['BTC' as const, node]]);
  const options = { signing, owner: 'test', intents: async () => null };
  const [look] = payoutJobs({ ...ctx, ports: { ...ctx.ports, chains } }, ['BTC'], options, (made) => made(tellingTo([])));
  const told = () => waitingForOperator(ctx.db, { limit: 5, nowMs: service.now() });
  await look?.run();
  expect(await told()).toEqual([{ id, why: 'waits: the signer does not answer' }]);
  answers = true;
  await look?.run();
  expect(await told()).toEqual([]);
});

describe('a payout that the signer refuses', () => {
  test('waits alone, shows approval and can be cancelled; the others are paid, and nothing piles up', async () => {
    await earn(6);
    const small = [await request(), await request()];
    const large = await request('0.01');
    small.push(await request(), await request());
    at.signer.payout = 500_000n;
    await passes(12);
    for (const id of small) expect(await shown(id)).toEqual(SIGNED);
    expect(await shown(large)).toEqual(HELD);
    expect(await openBreakers(ctx.db)).toEqual([]);
    const asked = at.signer.asked;
    const batches = await count('outgoing_batches');
    expect(batches).toBe((await count('outgoing_attempts')) + 1);
    await passes(20);
    expect(at.signer.asked).toBe(asked);
    // tried again, more and more rarely
    for (let n = 0; n < 200; n++) {
      await look();
      await passes(2, 30_000);
    }
    expect(at.signer.asked - asked).toBeLessThan(15);
    expect(at.signer.asked - asked).toBeGreaterThan(3);
    expect(await shown(large)).toEqual(HELD);
    expect(await count('outgoing_batches')).toBe(batches);
    expect(await count('own_addresses')).toBeLessThanOrEqual(batches);
    expect((await service.findings()).join()).toBe('');
    const cancelled = await cancelPayout(ctx, { merchantId: service.merchantId, payoutId: large });
    expect(cancelled).toMatchObject({ status: 'failed', error: 'cancelled' });
  });

  test('goes on by itself when the limit is raised, and at once when the operator approves it', async () => {
    await earn(4);
    const ids = [await request('0.006'), await request('0.007')];
    at.signer.payout = 500_000n;
    await passes(6);
    for (const id of ids) expect(await shown(id)).toEqual(HELD);
    at.signer.payout = 900_000n;
    await approvePayout(ctx, { payoutId: ids[0] as string, by: 'ann' });
    await passes(1);
    expect(await shown(ids[0] as string)).toEqual(SIGNED);
    expect(await shown(ids[1] as string)).toEqual(HELD);
    service.pass(3_600_000);
    await look();
    await passes(1);
    expect(await shown(ids[1] as string)).toEqual(SIGNED);
    expect(await service.findings()).toEqual([]);
  });

  test('only in company: payouts that the limit of an hour lets through one by one are paid', async () => {
    await earn(6);
    const ids = [await request(), await request(), await request(), await request()];
    at.signer.transaction = 250_000n;
    await passes(12);
    for (const id of ids) expect(await shown(id)).toEqual(SIGNED);
  });

  test('because the books are wrong stops all payouts: they are pending, and can be cancelled', async () => {
    await earn(2);
    const id = await request();
    at.signer.fails = 'hold';
    await passes(3);
    expect(await openBreakers(ctx.db)).toMatchObject([{ trippedBy: ['signer'] }]);
    expect(at.signer.asked).toBe(1);
    await look();
    expect(await shown(id)).toEqual(['pending', 'held', 'breaker']);
    expect(await count('outgoing_batches')).toBe(0);
  });

  test('because its API is not trusted waits for the operator like one above a limit', async () => {
    await earn(2);
    const id = await request();
    at.signer.fails = 'intent';
    await passes(2);
    expect(await shown(id)).toEqual(HELD);
    expect(await openBreakers(ctx.db)).toEqual([]);
  });
});

describe('a signer that is silent', () => {
  test('freeze_at_sign: signs nothing for a merchant who owes something by then, and nothing while payouts are stopped', async () => {
    await earn(2);
    const id = await request();
    at.signer.fails = 'before';
    await passes(1);
    expect(await shown(id)).toEqual(SIGNED);
    await owe(ctx, service.merchantId, 5n);
    service.pass(60_000);
    await passes(1);
    // still unknown: an earlier request may have been signed
    expect(await shown(id)).toEqual(SIGNED);
    at.signer.fails = null;
    await passes(2, 60_000);
    expect(at.signer.journal).toEqual([]);
    await look();
    expect(await shown(id)).toEqual(['processing', 'held', 'receivable']);
    await owe(ctx, service.merchantId, -5n);
    await look();
    at.signer.fails = 'before';
    await passes(1, 60_000);
    await tripBreaker(ctx.db, { name: 'payouts', by: ['x'], findings: [], atMs: ctx.ports.clock.now() });
    at.signer.fails = null;
    await passes(2, 60_000);
    await look();
    expect(at.signer.journal).toEqual([]);
    expect(await shown(id)).toEqual(['pending', 'held', 'breaker']);
    await clearBreakers(ctx.db, 'test', ctx.ports.clock.now());
    await look();
    await passes(1);
    expect(at.signer.journal).toHaveLength(1);
    expect(await service.findings()).toEqual([]);
  });

  test('and refuses what a receivable stops that was opened while the request lay there: the others are paid at once', async () => {
    await earn(2);
    const other = await service.openShop('other');
    await fund(ctx, other, 1_000_000n);
    const [id, others] = [await request(), await request('0.002', other)];
    at.signer.fails = 'stopped';
    at.signer.meanwhile = () => owe(ctx, service.merchantId, 5n);
    await passes(1);
    Object.assign(at.signer, { fails: null, meanwhile: async () => undefined });
    expect(await openBreakers(ctx.db)).toEqual([]);
    await look();
    expect(await shown(id)).toEqual(['processing', 'held', 'receivable']);
    await passes(1, 10_000);
    await passes(1);
    expect(await shown(others)).toEqual(SIGNED);
    expect(at.signer.journal.map((one) => one.request.outputs.map(({ payoutId }) => payoutId))).toEqual([[others]]);
  });

  test('and had signed before it fell silent: what it signed is written back, whatever is owed since', async () => {
    await earn(2);
    const id = await request();
    at.signer.fails = 'after';
    await passes(1);
    await owe(ctx, service.merchantId, 5n);
    at.signer.fails = null;
    service.pass(60_000);
    await passes(2);
    expect(at.signer.journal).toHaveLength(1);
    expect(await shown(id)).toEqual(SIGNED);
    expect(await count('outgoing_attempts')).toBe(1);
    expect(at.sent).toHaveLength(1);
  });

  test('has nothing to do with a slow transaction: sent again each ten minutes, it is replaced once the fee has risen', async () => {
    await earn(2);
    await request();
    await passes(1);
    await saveFeeRate(ctx.db, 'BTC', 3_000n, ctx.ports.clock.now());
    await passes(8, 300_000);
    expect(at.signer.journal.map((one) => one.request.number)).toEqual([1, 2]);
    expect(at.sent).toContain(at.signer.journal[0]?.raw);
    expect(at.sent.at(-1)).toBe(at.signer.journal[1]?.raw);
  });

  test('and signed a replacement: it is fetched though the fee has changed, and the first is sent again until then', async () => {
    await earn(2);
    await request();
    await passes(1);
    await saveFeeRate(ctx.db, 'BTC', 3_000n, ctx.ports.clock.now());
    at.signer.fails = 'after';
    service.pass(1_900_000);
    await passes(1);
    expect(at.signer.journal).toHaveLength(2);
    const [first, second] = at.signer.journal.map(({ raw }) => raw);
    expect(at.sent).toEqual([first, first]);
    expect(await count('outgoing_attempts')).toBe(1);
    await saveFeeRate(ctx.db, 'BTC', 4_000n, ctx.ports.clock.now());
    at.signer.fails = null;
    service.pass(1_900_000);
    await passes(1);
    expect(await count('outgoing_attempts')).toBe(2);
    expect(at.sent.at(-1)).toBe(second);
    expect(await service.findings()).toEqual([]);
  });
});
