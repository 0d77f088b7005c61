// The audit against somebody who changes one thing of what was decided about payments and transactions, with triggers off: each column that decides money
// or a status is recomputed from other rows. And it is green through a life with everything in it.
import { afterAll, beforeAll, expect, test } from 'vitest';
import { cancelTransaction, resolveTransaction } from '../../src/flow/transactions/create-cancel-resolve.ts';
import { ask } from '../../src/store/ledger/audit.ts';
import { OF_DERIVED } from '../../src/store/ledger/derived-audit.ts';
import type { Sql } from '../../src/store/postgres/connect.ts';
import { openServiceOnDatabase, type ServiceOnDatabase } from '../support/service-on-database.ts';

const MINUTE = 60_000;
const DUE = 50_000n;
const FEE_BPS = 100;
let service: ServiceOnDatabase;
const ids: Record<string, string> = {};
const green = async (): Promise<void> => expect(await service.findings()).toEqual([]);

beforeAll(async () => {
  service = await openServiceOnDatabase();
  (service.ctx as { feeBps: number }).feeBps = FEE_BPS;
  const create = async (name: string): Promise<string> => {
    const { transactionId } = await service.create(50_00n);
    ids[name] = transactionId;
    return transactionId;
  };
  const merchantId = service.merchantId;
  const lost = await service.pay(await create('lost'), DUE);
  await service.mine(1);
  await service.judge();
  await green();
  await service.reorganise([lost]);
  await service.judge();
  await service.wait(11 * MINUTE);
  await service.judge();
  await green();
  await service.pay(await create('paid'), DUE);
  await service.pay(await create('within'), DUE - 500n);
  await service.pay(await create('excess'), DUE * 2n);
  await service.pay(await create('short'), DUE - 600n);
  await service.judge();
  await green();
  await service.mine(1);
  await service.judge();
  await green();
  await create('open');
  const cancelled = await create('cancelled');
  await cancelTransaction(service.ctx, { merchantId, transactionId: cancelled });
  await service.pay(cancelled, DUE);
  await create('late');
  await create('quiet');
  await service.wait(17 * MINUTE);
  await service.judge();
  await service.pay(ids.late!, DUE);
  await service.mine(3);
  await service.judge();
  await green();
  await resolveTransaction(service.ctx, { merchantId, transactionId: ids.excess!, action: 'accept', part: 'excess' });
  await green();
  // a replacement of what was on time, and a clock that is set back and forward
  const again = await create('twice');
  const first = await service.pay(again, DUE);
  await service.judge();
  await service.wait(20 * MINUTE);
  await service.pay(again, DUE, { inputs: first.facts.inputs });
  await service.judge();
  await service.mine(1);
  await service.judge();
  await green();
}, 300_000);
afterAll(() => service.drop());

async function redAfter(change: string): Promise<string[]> {
  const session = await service.admin.connect();
  try {
    await session.query('begin');
    await session.query('set local session_replication_role = replica');
    const text = change.replace(/\$(\w+)/g, (_, name) => `'${ids[name]}'`);
    const { rowCount } = await session.query(text);
    expect(rowCount).toBeGreaterThan(0);
    const answers = await ask(session as unknown as Sql, OF_DERIVED, null);
    return answers.filter((answer) => answer.findings.length > 0).map((answer) => answer.id);
  } finally {
    await session.query('rollback');
    session.release();
  }
}

const payment = (set: string, name: string): string => `update payments set ${set} where transaction_id = $${name}`;
const made = (set: string, name: string): string => `update transactions set ${set} where id = $${name}`;
const entry = (set: string, name: string, kind = 'deposit'): string =>
  `update ledger.entry set ${set} where transaction_id = $${name} and kind = '${kind}'`;
const CASES: readonly (readonly [what: string, change: string, red: string])[] = [
  ['credited', payment('credited = credited - 1', 'paid'), 'BOOK-15'],
  [
    'credited, with its place',
    payment('credited = credited - 1, in_available = in_available - 1, in_suspense = 1', 'paid'),
    'BOOK-15',
  ],
  ['credited of what lies in suspense', payment('credited = 5', 'short'), 'BOOK-15'],
  ['credited of what is lost', payment('credited = 5', 'lost'), 'BOOK-15'],
  ['suspended', payment('suspended = suspended + 1', 'paid'), 'BOOK-15'],
  ['suspended of an excess', payment('suspended = suspended - 1', 'excess'), 'BOOK-15'],
  ['fee', payment('fee = fee + 1', 'paid'), 'BOOK-15'],
  ['no fee', payment('fee = 0', 'excess'), 'BOOK-15'],
  ['on_time_minor of one on time', payment('on_time_minor = 0', 'paid'), 'BOOK-16'],
  ['a part of on_time_minor', payment('on_time_minor = on_time_minor - 1', 'within'), 'BOOK-16'],
  ['on_time_minor of one that is late', payment('on_time_minor = amount', 'late'), 'BOOK-16'],
  [
    'seen_at of one on time',
    payment(`seen_at = seen_at + interval '20 minutes', caught_up_at = caught_up_at + interval '20 minutes'`, 'paid'),
    'BOOK-16',
  ],
  ['seen_at of one that is late', payment(`seen_at = seen_at - interval '20 minutes'`, 'late'), 'BOOK-16'],
  ['window_ends_at', made(`window_ends_at = window_ends_at + interval '1 hour'`, 'late'), 'BOOK-18'],
  ['window_ends_at of one that is open', made(`window_ends_at = window_ends_at + interval '1 ms'`, 'quiet'), 'BOOK-18'],
  ['created_at', made(`created_at = created_at - interval '1 day'`, 'quiet'), 'BOOK-18'],
  [
    'created_at and the window',
    made(`created_at = created_at + interval '1 day', window_ends_at = window_ends_at + interval '1 day'`, 'late'),
    'BOOK-18',
  ],
  ['succeeded_at', made(`succeeded_at = succeeded_at - interval '1 day'`, 'paid'), 'BOOK-18'],
  ['no succeeded_at', made('succeeded_at = null', 'paid'), 'BOOK-18'],
  ['confirmed_at', made(`confirmed_at = confirmed_at - interval '1 day'`, 'paid'), 'BOOK-18'],
  ['counted of a credited one', payment('counted = false', 'paid'), 'BOOK-17'],
  ['counted of one that was declined', payment('counted = true', 'short'), 'BOOK-17'],
  ['counted of one that is lost', payment('counted = true', 'lost'), 'BOOK-17'],
  ['tolerance_bps of one that was paid within it', made('tolerance_bps = 50', 'within'), 'BOOK-19'],
  ['tolerance_bps of one that was declined', made('tolerance_bps = 500', 'short'), 'BOOK-19'],
  ['the key of an entry', entry(`key = key || 'x'`, 'paid'), 'BOOK-20'],
  ['the key of an acceptance', entry(`key = 'rev:' || $paid || ':accept:9:btc'`, 'excess', 'accepted'), 'BOOK-20'],
  ['the kind of an entry', entry(`kind = 'accepted'`, 'paid'), 'BOOK-20'],
  ['the hash of an entry', entry(`body_hash = sha256('x')`, 'paid'), 'BOOK-20'],
  [
    'the lines of an entry',
    `update ledger.posting set amount = amount * 2 where entry_id = (select id from ledger.entry where transaction_id = $paid and kind = 'deposit')`,
    'BOOK-20',
  ],
  [
    'was_lost of one that was never booked',
    `update payments set was_lost = true, part_key = null where transaction_id = $cancelled`,
    'BOOK-21',
  ],
  ['was_lost of one that is lost', payment('was_lost = false', 'lost'), 'BOOK-21'],
];

test.each(CASES)('%s turns its invariant red', async (_, change, red) => {
  expect(await redAfter(change)).toContain(red);
});

test('nothing is red where nothing was changed, nor after our clock was set', async () => {
  expect(await redAfter('select 1')).toEqual([]);
  const { transactionId } = await service.create(50_00n);
  await service.pay(transactionId, DUE);
  await service.judge();
  service.setClock(-3_600_000);
  await service.lookAtClock();
  await service.judge();
  await green();
  await service.mine(1);
  await service.judge();
  await service.wait(17 * MINUTE);
  await service.judge();
  await green();
});
