// A forgotten transaction that spends outputs of which the database knows nothing is booked too: what it paid is paid, and payouts can go on.
import { describe, expect, test } from 'vitest';
import { requestAchPayout } from '../../../src/flow/ach/request.ts';
import { clearAfterAudit, runAudit } from '../../../src/flow/audit.ts';
import { recordUnknown } from '../../../src/flow/payouts/after-restore/unknown-movements.ts';
import { bookCapital } from '../../../src/flow/payouts/own-outputs.ts';
import { progress } from '../../../src/flow/payouts/progress.ts';
import { resolvePayout } from '../../../src/flow/payouts/resolve.ts';
import { openBreakers } from '../../../src/store/ledger/breakers.ts';
import { postEntries } from '../../../src/store/ledger/ledger.ts';
import { closeReplaced, openMovements } from '../../../src/store/payouts/unknown-movements.ts';
import { testBank } from '../../support/bank.ts';
import { batches, batchServiceForEach, ctx, service } from './batch-service.ts';
import { found, knownOutput, nextOwn, type Output, scriptOf, unknownOutput } from './forgotten-transactions.ts';

batchServiceForEach();

async function goesOn(): Promise<void> {
  expect(await openBreakers(ctx.db)).toHaveLength(1);
  expect(await service.findings()).toEqual([]);
  expect(await clearAfterAudit(ctx, await runAudit(ctx), 'ann')).toBe(1);
}

test('one that spends an output of ours and one that nobody knows: payout and change are booked, the rest is found', async () => {
  await batches.earn(2);
  const id = await batches.request('0.011');
  const pays = [
    { script: await scriptOf(id), amountMinor: 1_100_000n },
    { script: await nextOwn(), amountMinor: 400_000n },
  ];
  const strange = unknownOutput();
  const { txid, recover } = await found([await knownOutput(), strange], pays, [id]);
  await expect(recover(false)).rejects.toMatchObject({
    message: expect.stringContaining(`spends ${strange.txid}:0, which this database does not know`),
  });
  expect(await recover()).toMatchObject({ payoutIds: [id], fee: 0n });
  const { batch_id: batchId } = await batches.row(id);
  await service.mine(6);
  await progress(ctx, batchId);
  await progress(ctx, batchId);
  expect(await batches.row(id)).toMatchObject({ status: 'completed', fee: '0' });
  expect(await service.balance('asset:chain:BTC')).toBe(1_400_000n);
  expect(await batches.held()).toBe(0n);
  expect((await service.admin.query('select txid from outgoing_attempts')).rows).toEqual([{ txid }]);
  await goesOn();
});

test('one of whose outputs none is known: its payouts are paid, and its change is capital once it is final', async () => {
  await batches.earn(1);
  const id = await batches.request();
  const own = await nextOwn();
  const pays = [
    { script: await scriptOf(id), amountMinor: 200_000n },
    { script: own, amountMinor: 50_000n },
  ];
  const { recover } = await found([unknownOutput()], pays, [id]);
  expect(await batches.row(id)).toMatchObject({ held_reason: 'unknown_outcome' });
  expect(await recover()).toMatchObject({ payoutIds: [id] });
  expect(await batches.row(id)).toMatchObject({ status: 'completed' });
  await service.mine(6);
  await bookCapital(ctx, 'BTC');
  expect(await service.balance('equity:operator:BTC')).toBe(250_000n);
  expect(await service.balance('asset:chain:BTC')).toBe(1_050_000n);
  await goesOn();
});

test('one that is booked while a look finds it stops nothing any more: no command would end that', async () => {
  await batches.earn(2);
  const id = await batches.request();
  const pays = [
    { script: await scriptOf(id), amountMinor: 200_000n },
    { script: await nextOwn(), amountMinor: 799_500n },
  ];
  const { txid, recover } = await found([await knownOutput()], pays, [id]);
  await recover(false);
  // the look had found it before that
  const finding = `transaction ${txid} spends outputs of ours, and was not signed here`;
  const again = { currency: 'BTC' as const, txid, blockHash: null, finding };
  await recordUnknown(ctx, 'BTC', { movements: [again], payoutIds: [] });
  expect(await openMovements(ctx.db)).toEqual([]);
  await goesOn();
  await recordUnknown(ctx, 'BTC', { movements: [again], payoutIds: [] });
  expect(await openBreakers(ctx.db)).toEqual([]);
});

test('one that another has replaced is over once that is booked and final, though nobody knows the outputs that both have spent', async () => {
  await batches.earn(2);
  const output = unknownOutput();
  const { txid, recover } = await found([unknownOutput(), output], [{ script: '0014', amountMinor: 5n }], []);
  const signed = { currency: 'BTC', blockHash: null, finding: 'the signer has signed it for nobody here' } as const;
  const [replaced, other] = ['aa', 'bb'].map((one) => one.repeat(32)) as [string, string];
  const movements = [
    { ...signed, txid: replaced, spends: [unknownOutput(), output] },
    { ...signed, txid: other, spends: [unknownOutput()] },
  ];
  await recordUnknown(ctx, 'BTC', { movements, payoutIds: [] });
  const open = async (confirmations: number) => {
    const { rows } = await service.admin.query(`select max(height) as tip from blocks where currency = 'BTC'`);
    await closeReplaced(ctx.db, 'BTC', { finalHeight: rows[0].tip - confirmations + 1, atMs: 0 });
    return (await openMovements(ctx.db)).map((one) => one.txid);
  };
  expect(await open(1)).toEqual([txid, replaced, other]);
  await recover();
  expect(await open(2)).toEqual([replaced, other]);
  expect(await open(1)).toEqual([other]);
});

test('each has its change, in whatever order they are booked', async () => {
  await batches.earn(2);
  for (const script of [await nextOwn(), await nextOwn(1)].reverse()) {
    const id = await batches.request();
    const pays = [
      { script: await scriptOf(id), amountMinor: 200_000n },
      { script, amountMinor: 799_500n },
    ];
    const { recover } = await found([await knownOutput()], pays, [id]);
    expect(await recover(false)).toMatchObject({ payoutIds: [id], lost: 0n, fee: 500n });
  }
});

test('one that concerns nobody here is closed, and payouts go on', async () => {
  await batches.earn(1);
  const { recover } = await found([unknownOutput()], [{ script: '0014', amountMinor: 5n }], []);
  expect(await recover()).toMatchObject({ payoutIds: [], lost: 0n });
  await goesOn();
});

test('one that spends an output of another forgotten one, or a payment that is not booked yet, must wait for that', async () => {
  await batches.earn(1);
  const first = await found([await knownOutput()], [{ script: await nextOwn(), amountMinor: 900_000n }], []);
  const second = await found([{ txid: first.txid, vout: 0 }], [{ script: '0014', amountMinor: 5n }], []);
  await expect(second.recover()).rejects.toMatchObject({ message: expect.stringContaining('recover that one first') });
  const { transactionId } = await service.create(1_000_00n);
  const sent = await service.pay(transactionId, 1_000_000n);
  const third = await found([{ txid: sent.facts.txid, vout: 0 }], [{ script: '0014', amountMinor: 5n }], []);
  await expect(third.recover()).rejects.toMatchObject({ message: expect.stringContaining('not booked yet') });
  await first.recover();
});

test('a payout that one pays cannot be decided by hand before it is booked: it would be booked twice, or given back and paid', async () => {
  await batches.earn(2);
  const id = await batches.request('0.011');
  const pays = [
    { script: await scriptOf(id), amountMinor: 1_100_000n },
    { script: await nextOwn(), amountMinor: 890_000n },
  ];
  const { rows } = await service.admin.query('select txid, vout from payments where part_key is not null order by txid');
  const { txid, recover } = await found(rows, pays, [id]);
  for (const outcome of ['paid', 'failed'] as const)
    await expect(resolvePayout(ctx, { payoutId: id, outcome, evidence: 'seen' })).rejects.toMatchObject({
      code: 'not_resolvable',
      message: expect.stringContaining(`bursar payout recover ${txid}`),
    });
  expect(await batches.row(id)).toMatchObject({ held_reason: 'unknown_outcome' });
  expect(await recover()).toMatchObject({ payoutIds: [id] });
  await goesOn();
});

describe('a payout that was decided by hand before what had paid it was known', () => {
  const paysOf = async (id: string) => [
    { script: await scriptOf(id), amountMinor: 1_100_000n },
    { script: await nextOwn(), amountMinor: 896_000n },
  ];
  async function decided(outcome: 'paid' | 'failed') {
    await batches.earn(2);
    const id = await batches.request('0.011');
    await recordUnknown(ctx, 'BTC', { movements: [], payoutIds: [id] });
    await resolvePayout(ctx, { payoutId: id, outcome, evidence: 'seen' });
    const { rows } = await service.admin.query('select txid, vout from payments where part_key is not null order by txid');
    return { id, outputs: rows as Output[] };
  }

  test('as paid is paid once: the network fee is all that the service has lost', async () => {
    const { id, outputs } = await decided('paid');
    const available = await service.available();
    const { recover } = await found(outputs, await paysOf(id), []);
    expect(await recover(false)).toEqual({ payoutIds: [id], lost: 0n, fee: 4_000n, alike: [] });
    await service.mine(6);
    for (const { id: batchId } of (await service.admin.query('select id from outgoing_batches')).rows) {
      await progress(ctx, batchId);
      await progress(ctx, batchId);
    }
    expect(await batches.row(id)).toMatchObject({ status: 'completed' });
    expect([await service.available(), await service.balance('asset:chain:BTC')]).toEqual([available, 896_000n]);
    expect(await service.balance('equity:operator:BTC')).toBe(0n);
    expect(await service.balance('expense:unknown_outflow:BTC')).toBe(4_000n);
    await goesOn();
  });

  test('as paid adopts one movement: a second one that pays the same is lost', async () => {
    const { id, outputs } = await decided('paid');
    const own = await nextOwn();
    const script = await scriptOf(id);
    await batches.earn(2);
    const first = await found(
      outputs,
      [
        { script, amountMinor: 1_100_000n },
        { script: own, amountMinor: 900_000n },
      ],
      [],
    );
    expect(await first.recover(false)).toEqual({ payoutIds: [id], lost: 0n, fee: 0n, alike: [] });
    const more = (
      await service.admin.query('select txid, vout from payments where part_key is not null and not spent order by txid')
    ).rows as Output[];
    const pays = [
      { script, amountMinor: 1_100_000n },
      { script: await nextOwn(), amountMinor: 900_000n },
    ];
    const second = await found(more, pays, []);
    await expect(second.recover(false)).rejects.toMatchObject({
      message: expect.stringContaining('pays 0.01100000 BTC to nobody'),
    });
    expect(await second.recover()).toMatchObject({ payoutIds: [], lost: 1_100_000n });
    await goesOn();
  });

  test('as failed is completed after all, and its merchant has paid for it', async () => {
    const { id, outputs } = await decided('failed');
    const { recover } = await found(outputs, await paysOf(id), []);
    expect(await recover(false)).toMatchObject({ payoutIds: [id] });
    const { batch_id: batchId } = await batches.row(id);
    await service.mine(6);
    await progress(ctx, batchId);
    await progress(ctx, batchId);
    expect(await batches.row(id)).toMatchObject({ status: 'completed', error: null });
    expect(await service.balance('asset:chain:BTC')).toBe(896_000n);
    expect(await batches.held()).toBe(0n);
    await goesOn();
  });
});

test('INV-6 is red when more is owed in a currency than our outputs there hold', async () => {
  await batches.earn(1);
  const post = (amount: bigint) =>
    postEntries(ctx.db, [
      {
        entry: {
          key: `test:owed:${amount}`,
          kind: 'test_entry',
          postings: [
            { account: 'equity:operator:BTC', amount },
            { account: `merchant:${service.merchantId}:available:BTC`, amount: -amount },
          ],
          parts: [],
        },
        transactionId: null,
        atMs: service.now(),
      },
    ]);
  const solvency = async () => (await service.findings()).filter((finding) => finding.startsWith('INV-6'));
  expect(await solvency()).toEqual([]);
  await post(1n);
  expect(await solvency()).toEqual(['INV-6: BTC: owed 1000001, here 1000000']);
  await post(-1n);
  expect(await solvency()).toEqual([]);
});

test('a bank payout that comes back after the price has fallen is told, and stops nobody: FX-1 names what the service must add', async () => {
  await batches.earn(2);
  const bank = testBank(ctx, { dedupes: false });
  await bank.look();
  const asked = { merchantId: service.merchantId, amount: '100', destination: 'ach:021000021:123456789', sourceCurrency: null };
  const { id } = await requestAchPayout(ctx, asked);
  service.pass(1_000);
  bank.cutOff();
  await bank.look();
  const { rows } = await service.admin.query('select trace from ach_entries where payout_id = $1', [id]);
  await service.rate('99900.00');
  bank.answer(rows[0].trace, 'R03');
  await bank.look();
  expect(await batches.row(id)).toMatchObject({ status: 'failed', source_amount: '100000', given_back: '100100' });
  const report = await runAudit(ctx);
  expect(report.answers.flatMap(({ findings }) => findings)).toEqual([]);
  expect(report.ok).toBe(true);
  const told = report.pages.find(({ id: of }) => of === 'FX-1')?.findings;
  expect(told).toEqual(['BTC: 100 more was given back than was taken; the price has fallen, and the service has to add it']);
});

test('what the service has of a currency by converting stops payouts above the limit that the operator has set, and only there (INV-17)', async () => {
  await batches.earn(2);
  const asked = { merchantId: service.merchantId, amount: '100', destination: 'ach:021000021:123456789', sourceCurrency: null };
  testBank(ctx, { dedupes: false });
  await requestAchPayout(ctx, asked);
  const red = async (exposureMinor: bigint | null) =>
    (await runAudit({ ...ctx, exposureMinor })).answers.flatMap(({ id, findings }) => findings.map((what) => `${id}: ${what}`));
  expect(await red(100_00n)).toEqual([]);
  expect(await red(null)).toEqual([]);
  const above = ['INV-17: BTC: 100000 of it are worth 100.00 USD, the limit is 99.99'];
  expect(await red(99_99n)).toEqual(above);
  // a price that nobody has renewed is better than none
  service.pass(86_400_000);
  expect(await red(99_99n)).toEqual(above);
});
