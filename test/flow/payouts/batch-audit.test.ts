// The invariants of batches in the audit: each is made red on purpose, by what a bug or somebody in the database could have changed.
import { afterAll, beforeAll, expect, test } from 'vitest';
import { progress } from '../../../src/flow/payouts/progress.ts';
import type { Batch } from '../../../src/store/payouts/batch-rows.ts';
import { batchesOf } from '../../support/batches.ts';
import { tellFee } from '../../support/funded.ts';
import { openServiceOnDatabase, type ServiceOnDatabase } from '../../support/service-on-database.ts';

let service: ServiceOnDatabase;
/** A payout that is final, one that is signed, one that is reserved and one that waits for a batch. */
let final: { readonly id: string; readonly batch: Batch; readonly txid: string };
let signed: { readonly id: string; readonly batch: Batch };
let queued: string;
beforeAll(async () => {
  service = await openServiceOnDatabase();
  await tellFee(service.ctx);
  const batches = batchesOf(service);
  await batches.earn(6);
  const done = await batches.request();
  const first = await batches.formed();
  const { txid } = await batches.signed(first);
  service.spend(txid, first.inputs, [
    { vout: 1, script: first.changeScript?.toString('hex') ?? '', amountMinor: (await changeOf(first.id)) ?? 0n },
  ]);
  await service.mine(1);
  await progress(service.ctx, first.id);
  await service.mine(5);
  expect(await progress(service.ctx, first.id)).toBe('final');
  final = { id: done, batch: first, txid };
  const open = await batches.request('0.003');
  const second = await batches.formed();
  await batches.signed(second);
  signed = { id: open, batch: second };
  queued = await batches.request('0.0015');
  await service.admin.query('update outgoing_batches set due_at = null, lease_until = null');
  expect(await service.findings()).toEqual([]);
});
afterAll(() => service.drop());

async function changeOf(batchId: string): Promise<bigint | undefined> {
  const { rows } = await service.admin.query('select change_amount from outgoing_attempts where batch_id = $1', [batchId]);
  return rows[0] === undefined ? undefined : BigInt(rows[0].change_amount);
}

const OTHER = 'ab'.repeat(32);
const PLANTED: readonly (readonly [what: string, id: string, wrong: () => string])[] = [
  ['a signed batch set dead', 'OUT-4', () => `update outgoing_batches set state = 'dead' where id = '${signed.batch.id}'`],
  ['a signed batch set final', 'OUT-4', () => `update outgoing_batches set state = 'final' where id = '${signed.batch.id}'`],
  [
    'a signed batch set reserved',
    'OUT-4',
    () => `update outgoing_batches set state = 'reserved' where id = '${signed.batch.id}'`,
  ],
  ['a final batch set dead', 'OUT-4', () => `update outgoing_batches set state = 'dead' where id = '${final.batch.id}'`],
  ['a payout in a batch without one', 'OUT-4', () => `update payouts set batch_id = null where id = '${signed.id}'`],
  [
    'a signed payout that is held',
    'OUT-4',
    () => `update payouts set step = 'held', held_reason = 'approval' where id = '${signed.id}'`,
  ],
  [
    'a completed payout in no block',
    'OUT-4',
    () => `update outgoing_attempts set height = null, block_hash = null where batch_id = '${final.batch.id}'`,
  ],
  [
    'final inputs that others spend',
    'OUT-4',
    () => `update outgoing_inputs set spent_by = '${OTHER}' where batch_id = '${final.batch.id}'`,
  ],
  ['a payout of another output', 'OUT-5', () => `update outgoing_shares set vout = 7 where payout_id = '${signed.id}'`],
  ['an amount that was not asked for', 'OUT-5', () => `update payouts set amount_text = '9.9' where id = '${queued}'`],
  [
    'fee, share and change of a final payout',
    'OUT-5',
    () => `with s as (update outgoing_shares set fee = fee + 1 where payout_id = '${final.id}')
           update outgoing_attempts set fee = fee + 1, change_amount = change_amount - 1 where batch_id = '${final.batch.id}'`,
  ],
  [
    'an output marked as spent',
    'OUT-6',
    () => 'update payments set spent = true where id = (select max(id) from payments where not spent)',
  ],
  [
    'an output of a batch marked as free',
    'OUT-6',
    () => `update payments p set spent = false from outgoing_inputs i where i.txid = p.txid and i.batch_id = '${final.batch.id}'`,
  ],
  ['our own output marked as spent', 'OUT-6', () => `update own_outputs set spent = not spent where txid = '${final.txid}'`],
];

test.each(PLANTED)('%s is red: %s', async (_what, id, wrong) => {
  const undo = await snapshot();
  await service.admin.query(wrong());
  expect((await service.findings()).map((finding) => finding.split(':')[0])).toContain(id);
  await undo();
  expect(await service.findings()).toEqual([]);
});

/** Copies of the rows that are changed; the function puts them back. */
async function snapshot(): Promise<() => Promise<void>> {
  const tables = [
    'outgoing_batches',
    'outgoing_attempts',
    'outgoing_inputs',
    'outgoing_shares',
    'payouts',
    'payments',
    'own_outputs',
  ];
  const run = async (text: (table: string) => string) => {
    await service.admin.query(
      `set session_replication_role = replica; ${tables.map(text).join('; ')}; set session_replication_role = origin`,
    );
  };
  await run((table) => `drop table if exists kept_${table}; create table kept_${table} as select * from ${table}`);
  return () => run((table) => `delete from ${table}; insert into ${table} overriding system value select * from kept_${table}`);
}
