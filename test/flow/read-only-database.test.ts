// A database that takes no writes, as the standby that a failover has not made a primary yet: an outage like any other, not a bug of ours.
import { afterEach, beforeEach, expect, test } from 'vitest';
import { readReadiness } from '../../src/flow/readiness.ts';
import { refusalOf } from '../../src/http/reply-error.ts';
import { outageOf } from '../../src/main/process/outage-log.ts';
import { eventually } from '../support/service.ts';
import { openServiceOnDatabase, type ServiceOnDatabase } from '../support/service-on-database.ts';

let service: ServiceOnDatabase;
beforeEach(async () => {
  service = await openServiceOnDatabase();
});
afterEach(() => service.drop());

/** Makes it so for every session, as a server that changes its part in a cluster ends them all. */
async function takesWrites(does: boolean): Promise<void> {
  await service.admin.query(`begin read write;
    do $$ begin execute format('alter database %I set default_transaction_read_only = ${does ? 'off' : 'on'}', current_database()); end $$;
    commit`);
  await service.admin.query(
    'select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()',
  );
}
const blocked = async () => (await readReadiness(service.ctx, service.ctx.currencies)).blocked;
const isBlocked = (is: boolean) => () =>
  blocked().then(
    (why) => (why !== null) === is,
    () => false,
  );

test('what is to be written is refused as overloaded, is one outage in the log, and /readyz is 503 until it takes writes again', async () => {
  const { ctx } = service;
  expect(await blocked()).toBeNull();
  await takesWrites(false);
  await eventually('it is told', isBlocked(true));
  expect(await blocked()).toBe('the database takes no writes: it is read-only, or a standby');
  expect((await readReadiness(ctx, ctx.currencies)).problems).toContain(await blocked());
  const failure = await ctx.db.query({ text: 'delete from breakers' }).catch((error: unknown) => error);
  expect(refusalOf(failure).code).toBe('overloaded');
  expect(outageOf(failure)).toBe('cannot execute DELETE in a read-only transaction');
  await takesWrites(true);
  await eventually('it is over', isBlocked(false));
  await service.create();
});

test('a server that has no address, or that no way leads to, is an outage too', () => {
  for (const code of ['EHOSTUNREACH', 'ENETUNREACH', 'ENOTFOUND', 'EAI_AGAIN']) {
    const failure = Object.assign(new Error(code), { code });
    expect([code, refusalOf(failure).code, outageOf(failure)]).toEqual([code, 'overloaded', code]);
  }
});
