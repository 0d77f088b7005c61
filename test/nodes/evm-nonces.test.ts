// The order of nonces of the address that USDT leaves from, on a real EVM: none is left out, none is used twice, and none that was used before is
// taken for a stranger's.
import pg from 'pg';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { clearBreakers } from '../../src/store/ledger/breakers.ts';
import { readPayout } from '../../src/store/payouts/reads.ts';
import { fund } from '../support/funded.ts';
import { type EvmService, openEvmService } from './evm-service.ts';

const TIMEOUT = 300_000;
const PAYEE = '0x00000000000000000000000000000000000a11ce';
const FIFTY = 50_000_000n;
let service: EvmService;

beforeAll(async () => {
  service = await openEvmService();
  await fund(service.ctx, service.merchantId, 10_000_000_000n, 'USDT');
}, TIMEOUT);
afterAll(() => service?.close(), TIMEOUT);
beforeEach(() => {
  service.told.length = 0;
});

const request = (): Promise<string> => service.request(PAYEE);
const status = async (id: string) => (await readPayout(service.db, id))?.status;
const arrived = (): Promise<bigint> => service.units(PAYEE);
const isStopped = async (): Promise<boolean> =>
  (await service.db.query({ text: `select 1 from breakers where name = 'payouts' and cleared_at is null` })).rows.length > 0;

test('an address that has sent what nobody here knows waits for a person, and goes on at the chain’s count then', {
  timeout: TIMEOUT,
}, async () => {
  const before = await arrived();
  await service.anvil.rpc('anvil_setNonce', await service.hot('USDT'), '0x2');
  await service.mine(1);
  const id = await request();
  service.restart();
  await service.work(30_000);
  expect(service.told.join()).toMatch(/has sent 2 transactions.*INV-15/);
  expect(await isStopped()).toBe(true);
  expect(await arrived()).toBe(before);
  expect(service.journal.count()).toBe(0);
  await clearBreakers(service.db, 'operator', service.ctx.ports.clock.now());
  service.restart();
  await service.work(30_000);
  await service.mine(12);
  await service.work(30_000);
  expect(await status(id)).toBe('completed');
  expect((await arrived()) - before).toBe(FIFTY);
  expect(await isStopped()).toBe(false);
});

test('a chain that is always a block further than was read holds up no payout', { timeout: TIMEOUT }, async () => {
  const id = await request();
  const signed = service.journal.count();
  service.restart();
  await service.anvil.mine(1);
  await service.work(30_000);
  expect(service.journal.count()).toBe(signed + 1);
  await service.mine(12);
  await service.work(30_000);
  expect(await status(id)).toBe('completed');
});

test('ask_same_head: a node that has mined it already, and says that its nonce is used, stops nothing', {
  timeout: TIMEOUT,
}, async () => {
  const before = await arrived();
  const id = await request();
  await service.work();
  // the node is ahead of what was read here
  await service.anvil.mine(1);
  await service.work(61_000);
  expect(service.told.join()).toMatch(/nonce too low/);
  expect(await isStopped()).toBe(false);
  await service.mine(12);
  await service.work(61_000);
  expect(await status(id)).toBe('completed');
  expect((await arrived()) - before).toBe(FIFTY);
});

test('burn_nonce: a nonce for which nothing was signed is the next payout’s, so that none is missing', {
  timeout: TIMEOUT,
}, async () => {
  const before = await arrived();
  const refused = await request();
  service.refuse('rule limit (no more leaves than the limits allow): too much');
  await service.work(30_000);
  service.refuse(null);
  expect(await status(refused)).toBe('pending');
  const id = await request();
  await service.work(30_000);
  await service.mine(12);
  await service.work(30_000);
  expect(await status(id)).toBe('completed');
  expect((await arrived()) - before).toBe(FIFTY);
  const { rows } = await service.db.query<{ vout: number }>({
    text: `select vout from outgoing_inputs where currency = 'USDT' order by vout`,
  });
  const first = rows[0]?.vout ?? 0;
  expect(rows.map(({ vout }) => vout)).toEqual(rows.map((_, nth) => first + nth));
  const used = await service.anvil.rpc<string>('eth_getTransactionCount', await service.hot('USDT'), 'latest');
  expect(Number(used)).toBe(first + rows.length);
});

test('commit_before_send: a restored database that does not know what was signed and mined gets it back, and pays nothing twice', {
  timeout: TIMEOUT,
}, async () => {
  const before = await arrived();
  const id = await request();
  service.restart(async (step) => {
    if (step === 'signed') throw new Error('dies');
  });
  await expect(service.work(30_000)).rejects.toThrow('dies');
  const signed = await service.journal.read(service.journal.count());
  // as the copy from before has it: the payout waits, and nobody watches for its nonce
  const admin = new pg.Client({ connectionString: service.url });
  await admin.connect();
  await admin.query(`update payouts set step = 'queued', batch_id = null, batch_position = null where id = $1`, [id]);
  await admin.query('delete from outgoing_inputs where batch_id = $1', [signed.request.batchId]);
  await admin.query('delete from outgoing_batches where id = $1', [signed.request.batchId]);
  await admin.end();
  await service.restartWatchers();
  await service.anvil.rpc('eth_sendRawTransaction', `0x${signed.raw}`);
  await service.mine();
  expect((await arrived()) - before).toBe(FIFTY);
  service.restart();
  await service.work(30_000);
  await service.mine(12);
  await service.work(61_000);
  expect(await readPayout(service.db, id)).toMatchObject({ status: 'completed', txid: signed.txid });
  expect((await arrived()) - before).toBe(FIFTY);
  expect(await isStopped()).toBe(false);
});
