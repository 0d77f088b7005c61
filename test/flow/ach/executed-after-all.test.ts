// A bank refuses a file, its payouts fail and are given back, and the bank has executed it all the same: an operator has it booked, and its
// payouts go on as those of any other file. After each step the audit is green.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeEach, describe, expect, test } from 'vitest';
import { recoverExecutedFile } from '../../../src/flow/ach/executed-after-all.ts';
import { bookReturn } from '../../../src/flow/ach/progress.ts';
import { clearBreakers, openBreakers } from '../../../src/store/ledger/breakers.ts';
import { askCli, runCli } from '../../cli/run.ts';
import {
  BTC,
  ctx,
  ledgerFindings,
  merchantsForAll,
  of,
  path,
  refusedWith,
  request,
  row,
  shopWith,
  world,
} from '../payouts/merchants.ts';
import { entryOf, newBank, requested } from './new-bank.ts';

merchantsForAll();

const DAY = 86_400_000;
let bank: Awaited<ReturnType<typeof newBank>>;
let merchantId: bigint;
let id: string;
let file: string;

const green = async (): Promise<void> => expect(await ledgerFindings()).toEqual([]);
const owed = () => world.balance(`asset:receivable:merchant:${merchantId}:BTC`);
const recover = () => recoverExecutedFile(ctx, { name: file, by: 'operator test' });
const took = async (): Promise<bigint> => BigInt((await row(id)).source_amount as string);

beforeEach(async () => {
  await clearBreakers(ctx.db, 'test', world.now());
  bank = await newBank();
  merchantId = await shopWith(BTC);
  id = await requested(merchantId);
  world.pass(1);
  bank.cutOff();
  await bank.look();
  ({ file } = await entryOf(id));
  bank.refuse(file);
  await bank.look();
  expect([(await row(id)).status, await of(merchantId, 'available')]).toEqual(['failed', BTC]);
});
/** The bank says that it has executed the file; the operator reads what ends the stop. */
async function executed(): Promise<void> {
  bank.hadBefore(file);
  await bank.look();
  const [stop] = await openBreakers(ctx.db);
  expect(stop?.findings.join()).toContain(`bursar payout recover ${file} --executed`);
  await clearBreakers(ctx.db, 'test', world.now());
}

test('what was given back is taken again, and it is completed when the days of returns are over', async () => {
  await executed();
  expect(await recover()).toEqual([id]);
  expect(await row(id)).toMatchObject({ status: 'processing', step: 'batched', error: null, given_back: null });
  expect(await of(merchantId, 'available')).toBe(BTC - (await took()));
  await green();
  expect(await refusedWith(recover())).toBe('not_resolvable');
  await world.wait(10 * DAY);
  await bank.look();
  expect((await row(id)).status).toBe('completed');
  expect((await path(id)).slice(-3)).toEqual(['payout.failed', 'payout.processing', 'payout.completed']);
  expect(bank.executed.filter(({ name }) => name === file)).toHaveLength(1);
  await green();
});

test('what its merchant has spent since he owes, and repays it with what comes next', async () => {
  await request(merchantId, '0.9995');
  const there = await of(merchantId, 'available');
  await executed();
  await recover();
  expect([await of(merchantId, 'available'), await owed()]).toEqual([0n, (await took()) - there]);
  await green();
  // what comes back of it repays first
  const { trace } = await entryOf(id);
  bank.answer(trace, 'R03');
  await bank.look();
  expect(await row(id)).toMatchObject({ status: 'failed', error: 'R03' });
  expect(await owed()).toBe(0n);
  await green();
});

test('one that the bank has sent back stays failed: its merchant has his money', async () => {
  const { trace } = await entryOf(id);
  bank.answer(trace, 'R03');
  await bank.look();
  await clearBreakers(ctx.db, 'test', world.now());
  expect(await recover()).toEqual([]);
  expect([(await row(id)).status, await of(merchantId, 'available')]).toEqual(['failed', BTC]);
  await green();
});

test('as often as the bank changes its mind, each word is booked once', async () => {
  for (const _ of [1, 2]) {
    await recover();
    await green();
    bank.refuse(file);
    await bank.look();
    expect([(await row(id)).status, await of(merchantId, 'available'), await owed()]).toEqual(['failed', BTC, 0n]);
    await green();
  }
});

test('it is booked once, also at the same moment and beside a return of its entry', async () => {
  const { trace } = await entryOf(id);
  const returned = { trace, reference: '', cents: 99_00n, code: 'R03', error: 'R03' };
  const all = await Promise.allSettled([recover(), recover(), bookReturn(ctx, returned, { stopsOnUnknown: true }), recover()]);
  expect(all.map(({ status }) => status).sort()).toEqual(['fulfilled', 'fulfilled', 'rejected', 'rejected']);
  // whichever was first: its merchant has his money
  expect([(await row(id)).status, await of(merchantId, 'available'), await owed()]).toEqual(['failed', BTC, 0n]);
  await green();
});

test('it is booked however late the bank says so, also where all of it has come back', async () => {
  await world.wait(40 * DAY);
  await executed();
  await recover();
  await green();
  await world.wait(10 * DAY);
  await bank.look();
  expect((await row(id)).status).toBe('completed');
  const other = await requested(merchantId);
  bank.cutOff();
  await bank.look();
  const { file: second, trace } = await entryOf(other);
  bank.refuse(second);
  await bank.look();
  await world.wait(40 * DAY);
  bank.answer(trace, 'R03');
  await bank.look();
  await clearBreakers(ctx.db, 'test', world.now());
  await world.wait(40 * DAY);
  expect(await recoverExecutedFile(ctx, { name: second, by: 'operator test' })).toEqual([]);
  await bank.look();
  expect((await entryOf(other)).state).toBe('over');
  await green();
});

test('only a file that was refused can be booked so', async () => {
  expect(await refusedWith(recoverExecutedFile(ctx, { name: '2020-01-01-A', by: 'test' }))).toBe('not_resolvable');
  await recover();
  expect(await refusedWith(recover())).toBe('not_resolvable');
  expect(await of(merchantId, 'held', 'USD')).toBe(100_00n);
});

describe('a start of PostgreSQL, after which what the bank had reported is read again', () => {
  const started = async (): Promise<void> => {
    await world.admin.query(`update comparisons set checked_at = '2020-01-01' where currency = 'USD'`);
    await bank.look();
  };

  test('gives nothing back of what the operator has booked since, neither before nor after it is completed', async () => {
    await executed();
    await recover();
    await started();
    expect([(await row(id)).status, await of(merchantId, 'available')]).toEqual(['processing', BTC - (await took())]);
    await world.wait(10 * DAY);
    await bank.look();
    await started();
    expect([(await row(id)).status, await of(merchantId, 'available')]).toEqual(['completed', BTC - (await took())]);
    expect((await path(id)).filter((type) => type === 'payout.failed')).toHaveLength(1);
    expect(await openBreakers(ctx.db)).toEqual([]);
    await green();
  });

  test('stops nothing where what the bank had sent back was all that it had executed', async () => {
    const { trace } = await entryOf(id);
    bank.answer(trace, 'R03');
    await bank.look();
    await recover();
    await clearBreakers(ctx.db, 'test', world.now());
    await started();
    expect(await openBreakers(ctx.db)).toEqual([]);
    expect([(await entryOf(id)).state, await of(merchantId, 'available')]).toEqual(['acked', BTC]);
  });

  test('stops payouts again where the database that is there has forgotten that the bank has executed it', async () => {
    await executed();
    await started();
    // whoever has let payouts go on has decided that the refusal counts
    expect(await openBreakers(ctx.db)).toEqual([]);
    await world.admin.query('delete from breakers');
    await started();
    expect((await openBreakers(ctx.db)).flatMap(({ findings }) => findings).join()).toContain(`${file} --executed`);
  });

  test('does not where the bank had the file before it refused it', async () => {
    const other = await requested(await shopWith(BTC));
    bank.cutOff();
    await bank.look();
    const { file: second } = await entryOf(other);
    bank.hadBefore(second);
    bank.refuse(second);
    await bank.look();
    await started();
    expect([(await row(other)).status, await openBreakers(ctx.db)]).toEqual(['failed', []]);
  });
});

// each command is a process of its own
test('the command books it, once', { timeout: 90_000 }, async () => {
  const folder = mkdtempSync(join(tmpdir(), 'bursar-executed-cli-'));
  const here = { DATABASE_URL: world.url, BURSAR_DATA_DIR: folder, BURSAR_NETWORK: 'regtest' };
  const command = ['payout', 'recover', file, '--executed'];
  try {
    expect(await askCli<object>(command, here)).toEqual({ file, currency: 'USD', payout_ids: [id] });
    expect(await row(id)).toMatchObject({ status: 'processing', step: 'batched', error: null });
    const { code, err } = await runCli([...command, '--json'], here);
    expect([code, JSON.parse(err).error]).toEqual([1, 'not_resolvable']);
    expect(JSON.parse(err).message).toContain('only one that the bank has refused');
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});
