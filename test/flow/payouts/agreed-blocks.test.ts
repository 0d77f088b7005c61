// What gives a payout back must be held by two of our nodes, and what was given back and is paid after all stops payouts, whoever holds it.
import { randomBytes } from 'node:crypto';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { clearAfterAudit, runAudit } from '../../../src/flow/audit.ts';
import type { Context } from '../../../src/flow/context.ts';
import { progress } from '../../../src/flow/payouts/progress.ts';
import { recordCondition } from '../../../src/store/chain/node-conditions.ts';
import { openBreakers } from '../../../src/store/ledger/breakers.ts';
import { readBatch } from '../../../src/store/payouts/batch-rows.ts';
import { batchesOf } from '../../support/batches.ts';
import { FEE_MAX, tellFee } from '../../support/funded.ts';
import { openServiceOnDatabase, type ServiceOnDatabase } from '../../support/service-on-database.ts';
import { openDriver } from './signer.ts';

type Batches = ReturnType<typeof batchesOf>;

const AMOUNT = 200_000n;
let service: ServiceOnDatabase;
let ctx: Context;
let earn: Batches['earn'];
let request: Batches['request'];
let formed: Batches['formed'];
let signed: Batches['signed'];
let mined: Batches['mined'];
let row: Batches['row'];

beforeEach(async () => {
  service = await openServiceOnDatabase();
  ({ ctx } = service);
  ({ earn, request, formed, signed, mined, row } = batchesOf(service));
  await tellFee(ctx);
});
afterEach(() => service.drop());

/** Two nodes hold the blocks up to so many below the tip. */
async function twoNodesHold(below: number): Promise<void> {
  const { rows } = await service.admin.query(
    `select height, hash from blocks where currency = 'BTC' order by height desc limit $1`,
    [below + 1],
  );
  const ready = { state: 'ready', ...rows[0], tipTimeMs: service.now(), peers: 2 } as const;
  await recordCondition(ctx.db, 'BTC', { ...ready, agreement: { state: 'agreed', ...rows.at(-1) } }, service.now());
}

test('a batch gives nothing back on the word of one of two nodes, however little it pays', async () => {
  await earn();
  const before = await service.available();
  const id = await request();
  const batch = await formed();
  await signed(batch);
  service.spend(randomBytes(32).toString('hex'), batch.inputs);
  await service.mine(6);
  await twoNodesHold(6);
  expect(await progress(ctx, batch.id)).toBe('waiting');
  const [input] = (await readBatch(ctx.db, batch.id, { lock: false }))!.inputs;
  const [stop] = await openBreakers(ctx.db);
  expect(stop!.findings.join()).toContain(`once two of our nodes hold block ${input!.spentHeight! + 5} `);
  expect(stop!.findings.join()).toContain('BURSAR_BTC_RPC_URL');
  await twoNodesHold(1);
  expect(await progress(ctx, batch.id)).toBe('waiting');
  expect([(await row(id)).status, await service.available()]).toEqual(['processing', before - AMOUNT - FEE_MAX]);
  await twoNodesHold(0);
  expect(await progress(ctx, batch.id)).toBe('failed');
  expect(await service.available()).toBe(before);
  expect(await service.findings()).toEqual([]);
});

test.each([
  ['both nodes hold', 0],
  ['one of two nodes holds, though it pays much', 2],
])(
  'a batch that failed by blocks which the chain has left stops payouts at once when a block that %s has it',
  async (_, below) => {
    await earn();
    const id = await request();
    const batch = await formed();
    const transaction = await signed(batch);
    service.spend(randomBytes(32).toString('hex'), batch.inputs);
    await service.mine(6);
    expect(await progress(ctx, batch.id)).toBe('failed');
    await clearAfterAudit(ctx, await runAudit(ctx), 'test');
    expect(await openBreakers(ctx.db)).toEqual([]);
    await service.vanish('BTC', 6);
    await mined(batch, transaction);
    await twoNodesHold(below);
    await progress({ ...ctx, contestedLimitMinor: 0n }, batch.id);
    const finding = `${id} had failed and was given back, and is paid by ${transaction.txid} (bursar payout recover ${transaction.txid}, once it is final)`;
    expect(await openBreakers(ctx.db)).toMatchObject([{ trippedBy: ['INV-10'], findings: [finding] }]);
    expect((await row(id)).status).toBe('failed');
    await service.admin.query('update outgoing_batches set due_at = null');
    expect((await service.findings()).join()).toContain('INV-10');
  },
);

test('a batch that has failed is never sent again: its block goes too, and what it pays was given back', async () => {
  await earn();
  const before = await service.available();
  const id = await request();
  const batch = await formed();
  const transaction = await signed(batch);
  service.spend(randomBytes(32).toString('hex'), batch.inputs);
  await service.mine(6);
  expect(await progress(ctx, batch.id)).toBe('failed');
  await service.vanish('BTC', 6);
  await mined(batch, transaction);
  await progress(ctx, batch.id);
  await service.vanish('BTC', 1);
  expect(await progress(ctx, batch.id)).toBe('waiting');
  // the driver lets a dead one be
  expect((await readBatch(ctx.db, batch.id, { lock: false }))!.state).toBe('dead');
  expect([(await row(id)).status, await service.available()]).toEqual(['failed', before]);
});

test('while a stranger’s spend of an input waits for its depth, the blocks since the batch was made are read once', async () => {
  const reads: string[] = [];
  const { driver } = openDriver(service, undefined, {
    send: async () => ({ state: 'inputs_missing', reason: 'bad-txns-inputs-missingorspent' }),
    readBlock: async (hash: string) => {
      reads.push(hash);
      return { touched: [] };
    },
  });
  await earn();
  await request();
  const batch = await formed();
  await signed(batch);
  service.spend(randomBytes(32).toString('hex'), batch.inputs);
  await service.mine(2);
  const read: number[] = [];
  for (let n = 0; n < 3; n++) {
    await service.admin.query(`update outgoing_batches set due_at = '-infinity', lease_until = null`);
    reads.length = 0;
    await driver.pass({ isQueued: false, signsNew: true });
    read.push(reads.length);
  }
  // the block of the spend itself is read by each look: a replacement that everybody has forgotten may pay the same payees
  expect(read[0]).toBeGreaterThan(3);
  expect(read.slice(1)).toEqual([1, 1]);
});
