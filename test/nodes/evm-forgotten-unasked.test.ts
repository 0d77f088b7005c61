// Only the database was put back, and the signer, which knows what was moved since, cannot be asked yet: the hourly audit writes nothing back that the
// signer still can.
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { EvmPort } from '../../src/core/evm/port.ts';
import type { TransactionFacts } from '../../src/core/ports.ts';
import { openBreakers } from '../../src/store/ledger/breakers.ts';
import { dropChecked } from '../../src/store/payouts/comparisons.ts';
import type { Sql } from '../../src/store/postgres/connect.ts';
import { noteMoves, readMoves } from '../../src/store/sweeps/forgotten-moves.ts';
import { auditJobs } from '../../src/worker/audit-jobs.ts';
import { portOf } from '../../src/worker/chain/context.ts';
import { type EvmService, openEvmService } from './evm-service.ts';

const TIMEOUT = 120_000;
const TENTH = 10n ** 17n;
const FINAL = 65;
const LATER_MS = 61_000;
let service: EvmService;

beforeAll(async () => {
  service = await openEvmService();
}, TIMEOUT);
afterAll(() => service?.close(), TIMEOUT);

async function moved(): Promise<void> {
  await service.work(LATER_MS);
  await service.mine(FINAL);
  await service.work(LATER_MS);
}
const batches = async () => (await service.batches('sweep')).map(({ id, state, attempts }) => ({ id, state, attempts }));

test.each([
  ['it was compared before that', (db: Sql) => dropChecked(db, 'ETH')],
  [
    'nothing was ever compared in the copy',
    async (db: Sql) => void (await db.query({ text: `delete from comparisons where currency = 'ETH'`, values: [] })),
  ],
])('what was moved by a replacement is what the signer says that it was: %s', { timeout: TIMEOUT }, async (_, isPutBack) => {
  const { db, ctx, anvil } = service;
  const earlier = await batches();
  const { address } = await service.owe('ETH', 300_00n);
  await service.pay('ETH', address, TENTH);
  await service.mine(FINAL);
  await service.work(LATER_MS);
  await anvil.rpc('anvil_dropAllTransactions');
  await anvil.rpc('anvil_setNextBlockBaseFeePerGas', '0x45d964b800');
  await service.mine();
  await service.work(LATER_MS);
  await moved();
  const before = (await batches()).filter(({ id }) => earlier.every((one) => one.id !== id));
  expect(before).toMatchObject([{ state: 'final', attempts: 2 }]);
  const mined = `select txid from outgoing_attempts where height is not null and batch_id = '${before[0]?.id}'`;
  const { rows } = await db.query<{ txid: string }>({ text: mined, values: [] });
  const shown = await (portOf(ctx, 'ETH') as EvmPort).ended(rows[0]?.txid as string);
  // the audit is due again
  await service.work(3_600_000);
  await service.forgetMoves(before.map(({ id }) => id));
  // as of a database that was put back
  await isPutBack(db);
  await noteMoves(db, 'ETH', { height: shown.ended?.height as number, hash: shown.ended?.blockHash as string }, [
    shown.ended?.facts as TransactionFacts,
  ]);
  expect(await readMoves(db, 'ETH', 10)).toHaveLength(1);
  const told: string[] = [];
  await auditJobs(ctx, ['ETH', 'USDT'], (_, error) => told.push(String(error)))
    .find(({ name }) => name === 'audit')
    ?.run();
  expect(await batches()).toEqual(earlier);
  expect(told.filter((one) => one.includes('EVM-1'))).toEqual([]);
  await service.goOn();
  service.restart();
  await moved();
  await moved();
  expect(await batches()).toEqual([...earlier, ...before]);
  expect(await openBreakers(db)).toEqual([]);
  expect(await readMoves(db, 'ETH', 10)).toEqual([]);
  expect(await service.findings()).toEqual([]);
});
