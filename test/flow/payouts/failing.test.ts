// A payout, or a batch, with which the worker fails (a fault of ours, played by a database that refuses one row): it is told and waits, and the
// others are paid as if it were not there.
import { afterEach, beforeEach, expect, test } from 'vitest';
import { requestPayout } from '../../../src/flow/payouts/bitcoin-request.ts';
import { createFaults } from '../../../src/worker/alarm.ts';
import { OUTSIDE, tellFee } from '../../support/funded.ts';
import { openServiceOnDatabase, type ServiceOnDatabase } from '../../support/service-on-database.ts';
import { openDriver } from './signer.ts';

let service: ServiceOnDatabase;
let at: ReturnType<typeof openDriver>;
let faults: string[];

beforeEach(async () => {
  service = await openServiceOnDatabase();
  await tellFee(service.ctx);
  faults = [];
  at = openDriver(
    service,
    createFaults((what, error) => faults.push(`${what}: ${(error as Error).message}`)),
  );
  for (let n = 0; n < 6; n++) {
    const { transactionId } = await service.create(1_000_00n);
    await service.pay(transactionId, 1_000_000n);
  }
  await service.mine(6);
  await service.judge();
});
afterEach(() => service.drop());

const request = async (): Promise<string> => {
  const { merchantId } = service;
  const made = await requestPayout(service.ctx, { merchantId, amount: '0.002', destination: OUTSIDE });
  service.pass(1);
  return made.id;
};
const row = async (id: string) => (await service.admin.query('select * from payouts where id = $1', [id])).rows[0];
async function passes(times: number, ms = 15_000): Promise<void> {
  for (let n = 0; n < times; n++) {
    await at.driver.pass({ isQueued: true, signsNew: true });
    service.pass(ms);
  }
}
/** From now on the database refuses such rows. */
async function refuse(table: string, event: string, when: string): Promise<void> {
  await service.admin.query(`
    create function refuse_row() returns trigger language plpgsql as $$ begin raise 'this row fails'; end $$;
    create trigger refuse_row before ${event} on ${table} for each row when (${when}) execute function refuse_row()`);
}
const allow = (table: string) => service.admin.query(`drop trigger refuse_row on ${table}; drop function refuse_row()`);

test('a payout with which no batch can be formed waits alone, and is paid when it can be', async () => {
  const ids = [await request(), await request(), await request()];
  await refuse('payouts', 'update', `new.id = '${ids[0]}' and new.step = 'batched'`);
  await passes(6);
  expect(await row(ids[0] as string)).toMatchObject({ step: 'queued', batch_id: null });
  for (const id of ids.slice(1)) expect((await row(id)).step).toBe('batched');
  expect(at.sent).not.toEqual([]);
  expect(faults).toEqual([`payout ${ids[0]}: this row fails`]);
  await allow('payouts');
  await passes(6);
  expect((await row(ids[0] as string)).step).toBe('batched');
  expect(await service.findings()).toEqual([]);
});

test('a batch with which the worker fails is told and left; the others of its currency go on, and it goes on later', async () => {
  const first = await request();
  await passes(1);
  const batch = (await row(first)).batch_id as string;
  await refuse('outgoing_attempts', 'update', `new.batch_id = '${batch}'`);
  // sent again later, which cannot be noted
  const second = await request();
  service.pass(700_000);
  await passes(3);
  expect((await row(second)).step).toBe('batched');
  expect(at.signer.journal.map(({ request: asked }) => asked.outputs[0]?.payoutId)).toEqual([first, second]);
  expect(at.sent).toContain(at.signer.journal[1]?.raw);
  expect(faults).toEqual([`batch ${batch}: this row fails`]);
  const trouble = async () =>
    (await service.admin.query('select trouble from outgoing_batches where id = $1', [batch])).rows[0].trouble;
  expect(await trouble()).toBe('this row fails');
  await allow('outgoing_attempts');
  await passes(3, 700_000);
  expect(await trouble()).toBe(null);
  // the same bytes each time
  expect(new Set(at.sent)).toEqual(new Set(at.signer.journal.map(({ raw }) => raw)));
  expect(await service.findings()).toEqual([]);
});

test('what fails in very many places is remembered for the newest of them only', () => {
  const told: string[] = [];
  const faulty = createFaults((what) => told.push(what));
  for (let round = 0; round < 2; round++) for (let n = 0; n < 500; n++) faulty(`batch ${n}`, new Error('x'));
  expect(told).toHaveLength(500);
  faulty('batch 0', new Error('y'));
  expect(told).toHaveLength(501);
});
