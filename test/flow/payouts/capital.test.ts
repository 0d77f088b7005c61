// What strangers, and operators, send to our own addresses: capital. Our change is known to everybody who reads the chain, so anybody can.
import { beforeEach, describe, expect, test } from 'vitest';
import { recoverFailed } from '../../../src/flow/payouts/after-restore/recover-failed.ts';
import { formBatch } from '../../../src/flow/payouts/batches.ts';
import { bookCapital, newOwnAddresses } from '../../../src/flow/payouts/own-outputs.ts';
import { progress } from '../../../src/flow/payouts/progress.ts';
import { readWork } from '../../../src/store/payouts/batches.ts';
import { createWatchedScripts, createWatchList } from '../../../src/worker/chain/watch-list.ts';
import { RATE } from '../../support/batches.ts';
import { batches, batchServiceForEach, ctx, service } from './batch-service.ts';

batchServiceForEach();

/** An address of our own, as the change of a payout has one. */
async function ownScript(): Promise<string> {
  const [own] = (await newOwnAddresses(ctx, 'BTC', 1)) ?? [];
  return Buffer.from(own?.script ?? []).toString('hex');
}
const capital = () => service.balance('equity:operator:BTC');

test('what a miner makes with his block at our change is spent by no batch before it is mature: no node would take the batch', async () => {
  await batches.earn();
  const made = service.spend('cd'.repeat(32), [], [{ vout: 0, script: await ownScript(), amountMinor: 5_000_000n }], true);
  await service.mine(6);
  await bookCapital(ctx, 'BTC');
  expect(await capital()).toBe(0n);
  await batches.request();
  const batch = await batches.formed();
  expect(batch.inputs.map(({ txid }) => txid)).not.toContain(made.facts.txid);
  await batches.mined(batch, await batches.signed(batch));
  await service.mine(92);
  await bookCapital(ctx, 'BTC');
  expect(await capital()).toBe(0n);
  await service.mine(1);
  await bookCapital(ctx, 'BTC');
  expect(await capital()).toBe(5_000_000n);
  await batches.request();
  expect((await batches.formed()).inputs.map(({ txid }) => txid)).toContain(made.facts.txid);
});

test('what anybody sends there is capital at its final depth, and can be spent from then on', async () => {
  await batches.earn();
  const sent = service.spend('ab'.repeat(32), [], [{ vout: 0, script: await ownScript(), amountMinor: 5_000_000n }]);
  await service.mine(5);
  await bookCapital(ctx, 'BTC');
  expect(await capital()).toBe(0n);
  await service.mine(1);
  await bookCapital(ctx, 'BTC');
  expect(await capital()).toBe(5_000_000n);
  await batches.request();
  expect(await formBatch(ctx, 'BTC', RATE)).toMatchObject({ outcome: 'formed' });
  const { rows } = await service.admin.query('select txid from outgoing_inputs');
  expect(rows).toEqual([{ txid: sent.facts.txid }]);
  expect(await service.findings()).toEqual([]);
});

describe('capital that a reorganisation below its final depth takes out of its block', () => {
  const txid = 'ab'.repeat(32);
  async function arrives(): Promise<void> {
    service.spend(txid, [], [{ vout: 0, script: await script, amountMinor: 5_000_000n }]);
    await service.mine(6);
    await look();
    expect(await capital()).toBe(5_000_000n);
  }
  let script: Promise<string>;
  /** What the worker's job does of it; the audit is green before and after. */
  async function look(): Promise<void> {
    expect(await service.findings()).toEqual([]);
    const work = await readWork(ctx.db, ctx.ports.clock.now());
    if (work.some(({ currency, unbooked }) => currency === 'BTC' && unbooked)) await bookCapital(ctx, 'BTC');
    expect(await service.findings()).toEqual([]);
  }
  beforeEach(() => {
    script = ownScript();
  });

  test('is booked as lost, and as capital again each time it is back at that depth', async () => {
    await batches.earn();
    for (const _ of [1, 2]) {
      await arrives();
      await service.vanish('BTC', 7);
      await look();
      expect(await capital()).toBe(0n);
      // nothing of it is looked for again while it is in no block
      expect(await readWork(ctx.db, ctx.ports.clock.now())).toEqual([]);
    }
    await arrives();
    const { rows } = await service.admin.query(`select key from ledger.entry where kind like 'capital%' order by id`);
    expect(rows.map(({ key }) => key)).toEqual([
      `capital:btc:${txid}:0`,
      `capital_lost:btc:${txid}:0`,
      `capital:btc:${txid}:0#2`,
      `capital_lost:btc:${txid}:0#2`,
      `capital:btc:${txid}:0#3`,
    ]);
  });

  test('stays booked while a batch spends it, whose bytes are sent again and mined with it', async () => {
    await batches.earn();
    await arrives();
    await batches.request();
    const batch = await batches.formed();
    expect(batch.inputs.map((input) => input.txid)).toEqual([txid]);
    const signed = await batches.signed(batch);
    await batches.mined(batch, signed);
    expect(await progress(ctx, batch.id)).toBe('confirmed');
    await service.vanish('BTC', 8);
    expect(await progress(ctx, batch.id)).toBe('reorged');
    await look();
    expect(await capital()).toBe(5_000_000n);
    service.spend(txid, [], [{ vout: 0, script: await script, amountMinor: 5_000_000n }]);
    await batches.mined(batch, signed);
    expect(await progress(ctx, batch.id)).toBe('moved');
    await look();
    await service.mine(5);
    expect(await progress(ctx, batch.id)).toBe('final');
    await look();
    expect(await capital()).toBe(5_000_000n);
  });
});

describe('a batch that spends capital which a reorganisation has undone', () => {
  const payer = [{ txid: 'ee'.repeat(32), vout: 3 }];
  const txid = 'ab'.repeat(32);
  let script: string;
  type Kind = { readonly isCoinbase?: boolean; readonly isPegOut?: boolean };
  function sent({ isCoinbase = false, isPegOut = false }: Kind = {}): void {
    const output = { vout: 0, script, amountMinor: 5_000_000n, ...(isPegOut ? ({ pegOut: true } as const) : {}) };
    service.spend(txid, isCoinbase || isPegOut ? [] : payer, [output], isCoinbase);
  }
  beforeEach(async () => {
    await batches.earn();
    script = await ownScript();
  });

  /** A payout that this capital pays, completed by the first block; what a look at it brings. */
  async function completed(blocks: number, kind: Kind = {}) {
    sent(kind);
    await service.mine(blocks);
    await bookCapital(ctx, 'BTC');
    expect(await capital()).toBe(5_000_000n);
    const id = await batches.request();
    const batch = await batches.formed();
    expect(batch.inputs.map((input) => input.txid)).toEqual([txid]);
    const signed = await batches.signed(batch);
    await batches.mined(batch, signed);
    expect(await progress(ctx, batch.id)).toBe('confirmed');
    return { id, batch, signed, look: () => progress(ctx, batch.id) };
  }
  /** What the worker's job does of our own outputs. */
  async function bookOutputs(): Promise<void> {
    const work = await readWork(ctx.db, ctx.ports.clock.now());
    if (work.some(({ currency, unbooked }) => currency === 'BTC' && unbooked)) await bookCapital(ctx, 'BTC');
  }
  /** Whether a worker that starts now looks for what spends the payer's output. */
  async function isWatched(): Promise<boolean> {
    const list = createWatchList(ctx, 'BTC', createWatchedScripts(ctx));
    await list.fresh();
    const [{ txid: from, vout }] = payer as [(typeof payer)[number]];
    return list.hasOutpoint(Buffer.concat([Buffer.from(from, 'hex').reverse(), Buffer.from([vout, 0, 0, 0])]), 0);
  }
  /** Two nodes hold the blocks up to this height. */
  const agreed = (height: number) =>
    service.admin.query(
      `update node_conditions set (agreed_height, agreed_hash) = (select height, hash from blocks where currency = 'BTC' and height = $1) where currency = 'BTC'`,
      [height],
    );
  const due = () => service.admin.query(`select from outgoing_batches where due_at = '-infinity'`);

  test('fails once its payer has spent it elsewhere for good, and the capital is lost', async () => {
    const before = await service.available();
    const { id, batch, look } = await completed(6);
    expect(await isWatched()).toBe(true);
    await service.mine(101);
    expect(await isWatched()).toBe(false);
    await service.vanish('BTC', 109);
    expect(await isWatched()).toBe(true);
    expect(await look()).toBe('reorged');
    await service.admin.query('update outgoing_batches set due_at = null');
    service.spend('cc'.repeat(32), payer);
    await service.mine(1);
    // the block makes it due
    expect((await due()).rowCount).toBe(1);
    expect(await look()).toBe('waiting');
    await service.mine(4);
    expect(await look()).toBe('waiting');
    await service.mine(1);
    expect(await look()).toBe('displaced');
    expect(await batches.row(id)).toMatchObject({ status: 'failed', error: 'displaced' });
    await service.admin.query('update outgoing_batches set due_at = null');
    expect(await service.findings()).toEqual([]);
    await bookOutputs();
    expect(await capital()).toBe(0n);
    expect(await service.available()).toBe(before);
    expect(await service.findings()).toEqual([]);
    expect(await readWork(ctx.db, ctx.ports.clock.now())).toEqual([]);
    expect((await batches.leased(batch.id)).state).toBe('dead');
  });

  test('goes on where the block that spent it elsewhere is replaced too', async () => {
    const { batch, signed, look } = await completed(6);
    await service.vanish('BTC', 8);
    expect(await look()).toBe('reorged');
    service.spend('cc'.repeat(32), payer);
    await service.mine(5);
    await service.vanish('BTC', 5);
    await service.mine(6);
    expect(await look()).toBe('waiting');
    sent();
    await batches.mined(batch, signed, 6);
    expect(await look()).toBe('final');
    await bookOutputs();
    expect(await service.findings()).toEqual([]);
    expect(await capital()).toBe(5_000_000n);
  });

  test('is named when it is mined after all, because its capital is back', async () => {
    const { id, batch, signed, look } = await completed(6);
    await service.vanish('BTC', 8);
    service.spend('cc'.repeat(32), payer);
    await service.mine(6);
    expect(await look()).toBe('displaced');
    await bookOutputs();
    await service.vanish('BTC', 7);
    sent();
    await batches.mined(batch, signed, 6);
    await bookOutputs();
    expect(await capital()).toBe(5_000_000n);
    expect(await look()).toBe('waiting');
    await service.admin.query('update outgoing_batches set due_at = null');
    expect(await service.findings()).toContainEqual(expect.stringContaining(id));
    await recoverFailed(ctx, { txid: signed.txid, by: 'Ada', acceptsLoss: false });
    expect(await batches.row(id)).toMatchObject({ status: 'completed' });
    expect(await service.findings()).toEqual([]);
  });

  test.each([
    ['a miner had made it', 100, { isCoinbase: true }],
    ['it had left Litecoin’s extension block', 6, { isPegOut: true }],
  ])('fails once another block stands for good where %s', async (_, depth, kind) => {
    const { rows } = await service.admin.query(`select height + 1 as place from chain_cursors where currency = 'BTC'`);
    const { place } = rows[0];
    const { id, look } = await completed(depth, kind);
    await agreed(place - 1);
    await service.vanish('BTC', depth + 1);
    await service.vanish('BTC', depth + 2);
    expect(await look()).toBe('reorged');
    await agreed(place + 4);
    expect(await look()).toBe('waiting');
    await agreed(place + 5);
    expect(await look()).toBe('displaced');
    expect(await batches.row(id)).toMatchObject({ status: 'failed', error: 'displaced' });
    await bookOutputs();
    expect(await capital()).toBe(0n);
    expect(await service.findings()).toEqual([]);
  });
});
