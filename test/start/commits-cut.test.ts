// A failover of the database in mid-commit, as a whole service sees it: the connection breaks before the server has a commit, or before its answer
// arrives, once each for every kind of database transaction that the worker makes of a payout, by every method. The destination gets the amount
// once, the payout is completed, and the books balance.
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { runCli } from '../cli/run.ts';
import { type Commit, type Cut, openCommitRelay } from '../support/commit-relay.ts';
import { payoutClient, until } from '../support/payout-client.ts';
import { freshDatabase, type TestDatabase } from '../support/postgres.ts';
import { dataFolderFor, type Service, startService } from '../support/service.ts';

const TIMEOUT = 400_000;
const { folder, remove } = dataFolderFor();
let database: TestDatabase;
let relay: Awaited<ReturnType<typeof openCommitRelay>>;
let service: Service;
let base = '';
const { ask, signIn, credited, payout } = payoutClient({ base: () => base, folder });

/** What a payout's way writes: one of these is in each of its database transactions. */
const OF_PAYOUTS =
  /^(insert_batch|insert_attempt|mark_attempt_sent|set_batch_state|write_payout_changes|insert_lightning_payment|begin_lightning_send|set_lightning_(?:sent|paid|ended)|insert_ach_file|move_ach_file|note_ach_handed_over|set_ach_\w+|end_ach_file)$/;
/** Which are cut: by whose commits, and how often each kind was. */
let who: string | null = null;
const cuts = new Map<string, Cut[]>();
function decide({ application, statements }: Commit): Cut | null {
  const kind = [...new Set(statements)]
    .filter((name) => OF_PAYOUTS.test(name))
    .sort()
    .join(' ');
  if (application !== who || kind === '') return null;
  const before = cuts.get(kind) ?? [];
  const how = (['lost', 'unanswered'] as const)[before.length];
  if (how === undefined) return null;
  cuts.set(kind, [...before, how]);
  return how;
}

beforeAll(async () => {
  database = await freshDatabase();
  relay = await openCommitRelay(database.url, decide);
  service = startService({
    dataFolder: folder,
    environment: { BURSAR_SANDBOX_BLOCK_SECONDS: '0', BURSAR_RATE_LIMIT_SCALE: '100', DATABASE_URL: relay.url },
  });
  base = await service.ready;
  await signIn();
  for (const [code, usd] of [
    ['BTC', '5000.00'],
    ['USDT', '2000.00'],
    ['BTC-LN', '500.00'],
  ] as const) {
    const { transaction_id } = await ask('/create_transaction', { amount: usd, crypto_selected: code });
    await ask('/sandbox/pay', { transaction_id });
    if (code !== 'BTC-LN') await ask('/sandbox/mine', { currency: code === 'BTC' ? 'BTC' : 'ETH', blocks: 65 });
    await credited(transaction_id);
  }
}, TIMEOUT);
afterAll(async () => {
  await service.stop();
  relay.close();
  await database.drop();
  remove();
}, TIMEOUT);

const pass = (seconds = 21): Promise<unknown> =>
  until(async () => {
    await ask('/sandbox/clock', { advance_seconds: seconds });
    await signIn();
    return true;
  }, 'the clock is moved');
const payee = async (currency: string): Promise<string> => (await ask('/sandbox/address', { currency })).address as string;
let accounts = 20_000;

type Method = {
  readonly method: string;
  readonly amount: string;
  readonly currency: string;
  readonly arrives: string;
  to(): Promise<string>;
  /** What lets it go on: blocks, or the bank. */
  goesOn(): Promise<unknown>;
  /** Statements of which each must have been cut in both ways. */
  readonly steps: readonly string[];
};
const METHODS: readonly Method[] = [
  {
    method: 'bitcoin',
    amount: '0.001',
    currency: 'BTC',
    arrives: '0.00100000',
    to: () => payee('BTC'),
    goesOn: () => ask('/sandbox/mine', { currency: 'BTC', blocks: 6 }),
    steps: ['insert_batch', 'insert_attempt', 'mark_attempt_sent', 'set_batch_state', 'write_payout_changes'],
  },
  {
    method: 'usdt',
    amount: '50',
    currency: 'USDT',
    arrives: '50.000000',
    to: () => payee('USDT'),
    goesOn: () => ask('/sandbox/mine', { currency: 'ETH', blocks: 65 }),
    steps: ['insert_batch', 'insert_attempt', 'mark_attempt_sent', 'set_batch_state', 'write_payout_changes'],
  },
  {
    method: 'lightning',
    amount: '0.0001',
    currency: 'BTC-LN',
    arrives: '0.00010000',
    to: async () => (await ask('/sandbox/invoice', { amount: '0.00010000' })).payment_request as string,
    goesOn: async () => undefined,
    steps: ['set_lightning_sent', 'begin_lightning_send', 'set_lightning_paid'],
  },
  {
    method: 'ach',
    amount: '100',
    currency: 'USD',
    arrives: '99.00',
    to: async () => `ach:021000021:${++accounts}`,
    goesOn: () => ask('/sandbox/bank', { action: 'settle' }),
    steps: ['insert_ach_file', 'move_ach_file', 'set_ach_acked', 'end_ach_file'],
  },
];

test.each(METHODS)('$method: whichever commit breaks, it arrives once', { timeout: TIMEOUT }, async (one) => {
  cuts.clear();
  for (let was = -1; was !== [...cuts.values()].flat().length; ) {
    was = [...cuts.values()].flat().length;
    const to = await one.to();
    who = 'bursar worker';
    const { payout: made } = await ask('/request_payout', { method: one.method, amount: one.amount, destination: to });
    const { id } = made as { id: string };
    let looks = 0;
    await until(async () => {
      // who has lost a commit tries again after its lease, and what the bank or a block has brought is read again
      if (looks++ % 5 === 4) await pass();
      await one.goesOn().catch(() => undefined);
      await delay(100);
      return (await payout(id)).status === 'completed' ? true : null;
    }, `${id} is completed`);
    who = null;
    expect(await ask('/sandbox/receive', { currency: one.currency, address: to })).toMatchObject({
      received: one.arrives,
      payments: [{}],
    });
  }
  for (const step of one.steps)
    expect([step, [...cuts].some(([kind, how]) => kind.split(' ').includes(step) && how.length === 2)]).toEqual([step, true]);
});

test('and after all of it the audit is green', { timeout: TIMEOUT }, async () => {
  await until(async () => {
    await pass(61);
    const { out } = await runCli(['audit'], { BURSAR_DATA_DIR: folder, DATABASE_URL: database.url });
    expect(out.split('\n').filter((line) => /^(red|stopped)/.test(line))).toEqual([]);
    expect(out).toContain('INV-12');
    return true;
  }, 'the audit is green');
});
