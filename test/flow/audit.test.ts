// The audit against somebody who bypasses the service: a superuser with triggers off changes one thing in healthy books, and the invariant
// about it is red. Each change is undone by rolling its database transaction back.
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { LAWFUL_STEPS, runAudit } from '../../src/flow/audit.ts';
import { cancelTransaction } from '../../src/flow/transactions/create-cancel-resolve.ts';
import { createSimulatedNode, type ServedNode } from '../../src/sandbox/utxo/served-node.ts';
import { ask, askAll } from '../../src/store/ledger/audit.ts';
import { OF_PAYMENTS } from '../../src/store/ledger/payment-audit.ts';
import type { Sql } from '../../src/store/postgres/connect.ts';
import { reconcile } from '../../src/worker/rescan/reconciler.ts';
import { runCli } from '../cli/run.ts';
import { openBursar } from '../nodes/bursar.ts';

let node: ServedNode;
let bursar: Awaited<ReturnType<typeof openBursar>>;
let worker: ReturnType<typeof bursar.worker>;
let superuser: pg.Client;
/** Ids of a settled-to-be, an underpaid, an unpaid and a cancelled transaction. */
const ids: Record<'paid' | 'again' | 'extra' | 'open' | 'cancelled', string> = {
  paid: '',
  again: '',
  extra: '',
  open: '',
  cancelled: '',
};

beforeAll(async () => {
  node = await createSimulatedNode({ currency: 'BTC', folder: null, now: () => Date.now() });
  node.mine(2);
  bursar = await openBursar('BTC', `m/84'/1'/0'`, [node.url]);
  worker = bursar.worker(200);
  await bursar.settle(worker);
  for (const name of ['paid', 'again', 'extra'] as const) {
    const made = await bursar.owe(50_00n);
    ids[name] = made.transactionId;
    // the excess is in suspense
    const minor = name === 'extra' ? made.amountDue * 2n : made.amountDue;
    node.pay([{ minor, script: await bursar.scriptOf(made.transactionId) }]);
    await bursar.settle(worker);
    node.mine(3);
    await bursar.settle(worker);
  }
  ids.open = (await bursar.owe(20_00n)).transactionId;
  ids.cancelled = (await bursar.owe(20_00n)).transactionId;
  await cancelTransaction(bursar.ctx, { merchantId: bursar.merchantId, transactionId: ids.cancelled });
  node.mine(3);
  await bursar.settle(worker);
  superuser = new pg.Client({ connectionString: bursar.url });
  await superuser.connect();
}, 60_000);
afterAll(async () => {
  await superuser.end();
  await bursar.close();
  await node.stop();
});

/** The invariants that are red after a change, which is then undone. */
async function redAfter(change: string): Promise<string[]> {
  await superuser.query('begin');
  try {
    await superuser.query('set local session_replication_role = replica');
    const text = change.replace(/\$(\w+)/g, (_, name) => `'${ids[name as keyof typeof ids]}'`);
    await superuser.query(text);
    const sql = superuser as unknown as Sql;
    const answers = [...(await askAll(sql, LAWFUL_STEPS)), ...(await ask(sql, OF_PAYMENTS, null))];
    return answers.filter((answer) => answer.findings.length > 0).map((answer) => answer.id);
  } finally {
    await superuser.query('rollback');
  }
}

const deposit = (name: string) => `(select id from ledger.entry where transaction_id = ${name} and kind = 'deposit')`;
const MERCHANT = `(select id from ledger.account where kind = 'available')`;
const CASES: readonly (readonly [what: string, change: string, red: readonly string[]])[] = [
  ['nothing', 'select 1', []],
  [
    'a line of an entry',
    `update ledger.posting set amount = amount - 1 where account_id = ${MERCHANT} and entry_id = ${deposit('$paid')}`,
    ['INV-1', 'INV-3', 'BOOK-6', 'INV-13'],
  ],
  ['a balance', `update ledger.balance set amount = amount + 1 where account_id = ${MERCHANT}`, ['INV-3', 'INV-4', 'BOOK-3']],
  [
    'a balance to less than nothing, and the database’s own check before that',
    `alter table ledger.balance drop constraint no_overdraft; update ledger.balance set amount = -1 where account_id = ${MERCHANT}`,
    ['INV-2', 'INV-3', 'INV-4', 'BOOK-3'],
  ],
  [
    'the address of one transaction to that of another',
    `update transactions set address = (select address from transactions where id = $open) where id = $cancelled`,
    ['INV-16'],
  ],
  [
    'a deposit moved to another transaction',
    `update ledger.entry set transaction_id = $open where id = ${deposit('$paid')}`,
    ['INV-8', 'INV-13'],
  ],
  [
    'two deposits that changed places',
    `update ledger.entry set transaction_id = case transaction_id when $paid then $extra else $paid end where transaction_id in ($paid, $extra)`,
    ['INV-8', 'INV-13'],
  ],
  [
    'a deposit that belongs to nothing',
    `update ledger.entry set transaction_id = null where id = ${deposit('$paid')}`,
    ['INV-8', 'INV-13'],
  ],
  ['a deposit of another kind', `update ledger.entry set kind = 'accepted' where id = ${deposit('$paid')}`, ['INV-8']],
  [
    'a deposit booked under a second key',
    `update ledger.part set key = (select key || '#2' from ledger.part where entry_id = ${deposit('$paid')}) where entry_id = ${deposit('$again')}`,
    ['INV-8', 'INV-9'],
  ],
  [
    'the first balance after a posting',
    `update ledger.posting set balance_after = balance_after + 1 where account_id = ${MERCHANT} and entry_id = ${deposit('$paid')}`,
    ['BOOK-6'],
  ],
  [
    'a balance after a posting in the middle',
    `update ledger.posting set balance_after = balance_after + 1 where account_id = ${MERCHANT} and entry_id = ${deposit('$again')}`,
    ['BOOK-6'],
  ],
  [
    'the last balance after a posting',
    `update ledger.posting set balance_after = balance_after - 1 where account_id = ${MERCHANT} and entry_id = ${deposit('$extra')}`,
    ['BOOK-6'],
  ],
  [
    'every balance after a posting',
    `update ledger.posting set balance_after = balance_after + 1 where account_id = ${MERCHANT}`,
    ['BOOK-6'],
  ],
  ['no balance after a posting', `update ledger.posting set balance_after = null where account_id = ${MERCHANT}`, ['BOOK-6']],
  [
    'the order of the first entries, with balances that fit the changed order',
    `update ledger.posting p set balance_after = case when p.entry_id = ${deposit('$paid')} then p.balance_after - p.amount else -p.amount end
       where p.account_id = ${MERCHANT} and p.entry_id in (${deposit('$paid')}, ${deposit('$again')})`,
    ['BOOK-6'],
  ],
  [
    'the currency of postings',
    `update ledger.posting set currency = 'LTC' where entry_id = ${deposit('$paid')}`,
    ['BOOK-5', 'INV-13'],
  ],
  ['a payment above the tip', `update payments set height = height + 10000 where transaction_id = $paid`, ['CHAIN-2']],
  [
    'a payment in a block that does not exist',
    `update payments set block_hash = repeat('0', 64) where transaction_id = $paid`,
    ['CHAIN-2'],
  ],
  [
    'a block that is missing',
    `delete from blocks where height = (select height from payments where transaction_id = $again)`,
    ['CHAIN-1', 'CHAIN-2'],
  ],
  [
    'a block without payments that is missing',
    `delete from blocks where height = (select height + 1 from payments where transaction_id = $again)`,
    ['CHAIN-1'],
  ],
  ['the last block', `delete from blocks where height = (select max(height) from blocks)`, ['CHAIN-1']],
  ['the cursor', `delete from chain_cursors`, ['CHAIN-1']],
  ['the cursor’s height', `update chain_cursors set height = height - 1`, ['CHAIN-1']],
  ['every block', `delete from blocks`, ['CHAIN-1', 'CHAIN-2']],
  ['twice as much asked for', `update transactions set amount_due = amount_due * 2 where id = $open`, ['BOOK-7']],
  ['one unit less asked for', `update transactions set amount_due = amount_due - 1 where id = $open`, ['BOOK-7']],
  ['another rate', `update transactions set rate = rate * 2 where id = $open`, ['BOOK-7']],
  ['a success that was never confirmed', `update transactions set confirmed_at = null where id = $paid`, ['BOOK-8']],
  ['a confirmation before a payment', `update transactions set confirmed_at = now() where id = $open`, ['BOOK-8']],
  ['a cancelled one that was confirmed', `update transactions set confirmed_at = now() where id = $cancelled`, ['BOOK-8']],
  [
    'a paid one that times out, with the history to it',
    `with it as (update transactions set status = 'timedout', confirmed_at = null, succeeded_at = null where id = $paid returning id),
          gone as (delete from events where object_id = $paid and sequence > 2)
       update events set type = 'transaction.timedout', status = 'timedout' where object_id = $paid and sequence = 2`,
    ['BOOK-9'],
  ],
  ['a booked payment that is said to be lost', `update payments set was_lost = true where transaction_id = $paid`, ['BOOK-9']],
  [
    'a payment that was never booked and is said to be lost',
    `update payments set was_lost = true, part_key = null where transaction_id = $paid`,
    ['BOOK-9', 'INV-8'],
  ],
  ['a booked payment that owes', `update payments set owed = 1 where transaction_id = $paid`, ['BOOK-9']],
  ['an event of another merchant', `update events set merchant_id = merchant_id + 1 where object_id = $open`, ['BOOK-10']],
  ['an event by another name', `update events set type = 'transaction.settled' where object_id = $open`, ['BOOK-10']],
  [
    'a gap in the events',
    `update events set sequence = sequence + 1 where object_id = $paid and status = 'succeeded'`,
    ['BOOK-10'],
  ],
  ['an unpaid transaction that is gone', `delete from transactions where id = $open`, ['BOOK-10', 'INV-14']],
];

describe('healthy books in which somebody has changed', () => {
  test.each(CASES)('%s', async (_, change, red) => {
    expect((await redAfter(change)).sort()).toEqual([...red].sort());
  });
});

test('a stored account key that is none is reported, and the command says all the rest', async () => {
  expect(await runAudit(bursar.ctx)).toMatchObject({ ok: true });
  await superuser.query(`update account_xpubs set xpub = 'tpub' || repeat('1', 107)`);
  const report = await runAudit(bursar.ctx);
  expect(report.answers.filter((answer) => answer.findings.length > 0).map((answer) => answer.id)).toEqual(['KEY-7']);
  const ran = await runCli(['audit'], { DATABASE_URL: bursar.url });
  expect(ran).toMatchObject({ code: 1, out: expect.stringContaining('KEY-7'), err: '' });
  expect(ran.out).toContain('INV-1 ');
});

test('the audit reports what the chain has and the ledger not yet, with the amount and the transaction’s status', async () => {
  const script = await bursar.scriptOf(ids.open);
  node.pay([{ minor: 5_000n, script }]);
  await bursar.settle(worker);
  node.mine(8);
  await bursar.settle(worker);
  for (let more = true; more; ) ({ more } = await reconcile(bursar.ctx, 'BTC'));
  const { chains } = await runAudit(bursar.ctx);
  const [chain] = chains;
  expect(chain?.waiting).toEqual({ payments: 1, amount: 5_000n, statuses: ['pending'] });
  expect(chain?.received).toBe((chain?.booked ?? 0n) + 5_000n);
});
