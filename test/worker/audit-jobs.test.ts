// The hourly audit is made also where something before it cannot be done.
import { expect, test } from 'vitest';
import type { CurrencyCode } from '../../src/core/currency.ts';
import type { ChainPort } from '../../src/core/ports.ts';
import { saveChecked } from '../../src/store/payouts/comparisons.ts';
import { auditJobs } from '../../src/worker/audit-jobs.ts';
import { openServiceOnDatabase } from '../support/service-on-database.ts';

test('balances that cannot be compared, and moves that cannot be written back, are told, and the audit is made without them', async () => {
  const service = await openServiceOnDatabase();
  try {
    const { admin, ctx } = service;
    await admin.query(`insert into blocks (currency, height, hash, previous, time) values ('ETH', 7, 'b', 'a', now())`);
    await admin.query(
      `insert into chain_reconciled (currency, from_height, height, hash, updated_at) values ('ETH', 1, 7, 'b', now())`,
    );
    await admin.query(`insert into forgotten_moves values ('ETH', '0xa', 'b', 0, 7, 'b')`);
    // before its first comparison since the database was started, the signer is asked first
    await saveChecked(ctx.db, 'ETH', 0);
    const told: string[] = [];
    const failing = {
      etherOf: () => Promise.reject(new Error('canceling statement due to statement timeout')),
      finalized: () => Promise.reject(new Error('deadlock detected')),
    };
    const chains = new Map<CurrencyCode, ChainPort>([...ctx.ports.chains, ['ETH', failing as never]]);
    const jobs = auditJobs({ ...ctx, ports: { ...ctx.ports, chains } }, ['ETH'], (_, error) => told.push(String(error)));
    await jobs.find(({ name }) => name === 'audit')?.run();
    expect(told).toContain('Error: canceling statement due to statement timeout');
    expect(told).toContain('Error: deadlock detected');
    const { rows } = await admin.query(`select finished_at is not null as done from schedules where name = 'audit'`);
    expect(rows).toEqual([{ done: true }]);
  } finally {
    await service.drop();
  }
});
