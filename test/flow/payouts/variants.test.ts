// Each line of docs/model/variants.txt, and of the older model of one payout, is a guard in the code and a test that fails without it. This file
// holds the table of both, and the tests of the guards that no other file tests.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { SignedTransaction } from '../../../src/core/signer-wire.ts';
import { setSettings } from '../../../src/flow/merchants/settings.ts';
import { formBatch, priced, signingRequest } from '../../../src/flow/payouts/batches.ts';
import { requestPayout } from '../../../src/flow/payouts/bitcoin-request.ts';
import { cancelPayout } from '../../../src/flow/payouts/cancel-and-approve.ts';
import { progress, storeSigned } from '../../../src/flow/payouts/progress.ts';
import { type Batch, leaseBatch, readBatch } from '../../../src/store/payouts/batch-rows.ts';
import { OUTSIDE, tellFee } from '../../support/funded.ts';
import { openServiceOnDatabase, type ServiceOnDatabase } from '../../support/service-on-database.ts';

const ROOT = join(import.meta.dirname, '../../..');

type Held = { readonly guard: readonly [file: string, text: string]; readonly test: readonly [file: string, title: string] };

const HERE = 'test/flow/payouts/variants.test.ts';
const BATCHES = 'test/flow/payouts/batches.test.ts';
const KILLED = 'test/start/payouts-killed.test.ts';
const PROGRESS = 'src/flow/payouts/progress.ts';
const EVERY_BATCH = 'src/flow/payouts/batch-progress.ts';
const late: Held = {
  guard: [PROGRESS, "payout.status !== 'processing'"],
  test: [HERE, 'store_looks_at_payout: a signature that comes late books nothing for a payout that has ended'],
};
const stored: Held = {
  guard: ['src/worker/payouts/utxo/driver.ts', 'if (newest === undefined) return RETRY_MS;'],
  test: ['test/start/payout-crash-matrix.test.ts', 'kill -9 of the worker'],
};
const silence: Held = {
  guard: [EVERY_BATCH, "if (batch.state !== 'mined' && batch.state !== 'final') return 'waiting';"],
  test: [HERE, 'silence_is_unknown: a transaction that nobody has seen for weeks fails no payout'],
};
const durable: Held = {
  guard: ['src/signer/signature-journal.ts', 'sync'],
  test: [
    'test/signer/signature-journal.test.ts',
    'journal_fsync: appends nothing any more after the disk did not confirm what was written',
  ],
};
const difference: Held = {
  guard: [
    'src/core/payouts/postings.ts',
    'before === null ? leaving(payout, fee) : minus(leaving(payout, fee), leaving(payout, before))',
  ],
  test: [BATCHES, 'that was replaced books the difference only, and gives it back where the cheaper one is mined'],
};
const foreign: Held = {
  guard: [PROGRESS, '(isTaken(input) && !isOwn(input)) || deep(input.goneHeight, agreed)'],
  test: [BATCHES, 'of which a stranger spent the inputs fails at final depth and not before'],
};
const back: Held = {
  guard: ['src/worker/payouts/signature-check.ts', "restoreSignature(ctx, signed, 'starting')"],
  test: [BATCHES, 'gets its signatures back as batches, and pays nothing twice'],
};
const TABLE: Readonly<Record<string, Held>> = {
  form_locks_payout: {
    guard: ['src/store/payouts/batches.ts', "where step = 'queued'"],
    test: [HERE, 'form_locks_payout: only what waits for a batch gets into one, whoever cancels meanwhile'],
  },
  signer_reads_payout: {
    guard: ['src/signer/rules.ts', "payout.status !== 'processing' || payout.step !== 'batched'"],
    test: ['test/signer/rules.test.ts', 'must be in the database'],
  },
  committed_when_formed: {
    guard: ['src/flow/payouts/cancel-and-approve.ts', "payout.status !== 'pending'"],
    test: [HERE, 'committed_when_formed: who is in a batch cannot be cancelled'],
  },
  outputs_compared: {
    guard: ['src/worker/payouts/utxo/driver.ts', 'signsNew ? signFirst(batch) : RETRY_MS'],
    test: [KILLED, 'database and signer put back together: the chain shows what both have forgotten, and nothing is paid twice'],
  },
  cancel_waits_for_compare: {
    guard: ['src/flow/payouts/cancel-and-approve.ts', 'notComparedSince'],
    test: [
      'test/flow/payouts/cancelled.test.ts',
      'cancel_waits_for_compare: is refused until our outputs were compared since PostgreSQL was started',
    ],
  },
  signer_conflict: {
    guard: ['src/signer/rules.ts', 'was signed in batch'],
    test: [
      'test/signer/replacements.test.ts',
      'signer_conflict: binds its payouts to their batch, whatever the database says later',
    ],
  },
  same_bytes: {
    guard: ['src/signer/signing.ts', 'repeatedSignature(request, journal.index)'],
    test: ['test/signer/replacements.test.ts', 'same_bytes: is given again, the same bytes'],
  },
  signatures_written_back: back,
  journal_is_durable: durable,
  store_before_send: stored,
  store_looks_at_payout: late,
  books_difference: difference,
  true_up_at_final: {
    guard: [PROGRESS, 'trueUpEntry('],
    test: [BATCHES, 'when another of its transactions is final the difference is the service’s'],
  },
  any_taker_is_proof: foreign,
  silence_is_unknown: silence,
  displaced: {
    guard: [PROGRESS, "event: 'displaced'"],
    test: [BATCHES, 'that was completed and displaced for good is failed'],
  },
  // the names of the older model
  commit_before_send: stored,
  timeout_is_unknown: silence,
  rebuild_from_journal: back,
  journal_fsync: durable,
  p4_checks_row: {
    guard: [EVERY_BATCH, 'batch.leaseEpoch !== epoch'],
    test: [BATCHES, 'whose lease another worker took stores nothing, and one signature is stored once'],
  },
  sign_books_difference: difference,
  any_winner_is_negative: foreign,
  inv10_text: {
    guard: ['src/store/ledger/payout-audit.ts', 'is paid by'],
    test: [BATCHES, 'that a reorganisation undid keeps its status'],
  },
};

describe('the models', () => {
  const protections = readFileSync(join(ROOT, 'docs/model/variants.txt'), 'utf8')
    .split('\n')
    .filter((line) => line !== '' && !line.startsWith('#'))
    .map((line) => line.split(/\s+/) as [string, string])
    .flatMap(([model, without]) => without.split('+').map((name) => ({ name, isLightning: model.startsWith('Lightning') })));

  test('name only protections of the table', () => {
    const ofBatches = protections.filter(({ isLightning }) => !isLightning).map(({ name }) => name);
    expect(ofBatches.length).toBeGreaterThan(10);
    expect(ofBatches.filter((name) => TABLE[name] === undefined)).toEqual([]);
  });

  test('of payouts over Lightning have a test of their name each', () => {
    const files = ['payout-variants', 'replaced-node', 'unpayable'].map((name) => join(ROOT, `test/lightning/${name}.test.ts`));
    const tests = files.map((file) => readFileSync(file, 'utf8')).join();
    const ofLightning = protections.filter(({ isLightning }) => isLightning).map(({ name }) => name);
    expect(ofLightning.length).toBeGreaterThan(10);
    expect(ofLightning.filter((name) => !tests.includes(`test('${name}: `))).toEqual([]);
  });

  test.each(Object.entries(TABLE))('%s is guarded, and its test is there', (_name, { guard, test: [file, title] }) => {
    expect(readFileSync(join(ROOT, guard[0]), 'utf8')).toContain(guard[1]);
    expect(readFileSync(join(ROOT, file), 'utf8')).toContain(title);
  });
});

describe('a payout', () => {
  let service: ServiceOnDatabase;
  beforeEach(async () => {
    service = await openServiceOnDatabase();
    await tellFee(service.ctx);
    const { transactionId } = await service.create(1_000_00n);
    await service.pay(transactionId, 1_000_000n);
    await service.mine(6);
    await service.judge();
  });
  afterEach(() => service.drop());

  const request = async (): Promise<string> => {
    const { ctx, merchantId } = service;
    return (await requestPayout(ctx, { merchantId, amount: '0.002', destination: OUTSIDE })).id;
  };
  const cancelled = (payoutId: string): Promise<string> =>
    cancelPayout(service.ctx, { merchantId: service.merchantId, payoutId }).then(
      () => 'cancelled',
      (error: { code: string }) => error.code,
    );
  async function formed(): Promise<Batch> {
    const { ctx } = service;
    const outcome = await formBatch(ctx, 'BTC', 1_000n);
    if (outcome.outcome !== 'formed') throw new Error(outcome.outcome);
    const nowMs = ctx.ports.clock.now();
    await leaseBatch(ctx.db, { owner: 'test', currency: 'BTC', nowMs, untilMs: nowMs + 1_000, not: [] });
    return (await readBatch(ctx.db, outcome.batchId, { lock: false })) as Batch;
  }
  function signatureOf(batch: Batch, number = 1, rate = 1_000n): SignedTransaction {
    const selection = priced(batch, rate);
    if (selection === null) throw new Error('it cannot be paid');
    return {
      sequence: number,
      request: signingRequest(batch, number, selection),
      txid: String(number).repeat(64),
      raw: '00',
      fee: selection.fee.toString(),
      vbytes: selection.vbytes,
      signedAtMs: service.now(),
    };
  }
  async function changeOf({ changeIndex }: Batch, { request: { change, outputs } }: SignedTransaction) {
    const { rows } = await service.admin.query(
      `select encode(script, 'hex') as script from own_addresses where address_index = $1`,
      [changeIndex],
    );
    return change === null ? [] : [{ vout: outputs.length, script: rows[0].script, amountMinor: BigInt(change.amount) }];
  }
  const approvalAbove = (usd: string | null) =>
    setSettings(service.ctx, {
      merchantId: service.merchantId,
      scopes: new Set(['read', 'payments', 'payouts'] as const),
      change: { payoutApprovalAbove: usd },
    });
  const row = async (id: string) => (await service.admin.query('select * from payouts where id = $1', [id])).rows[0];

  test('form_locks_payout: only what waits for a batch gets into one, whoever cancels meanwhile', async () => {
    const queued = await request();
    await approvalAbove('1.00');
    const pending = await request();
    const [outcome, batch] = await Promise.all([cancelled(pending), formed()]);
    expect(outcome).toBe('cancelled');
    expect(batch.payouts.map(({ id }) => id)).toEqual([queued]);
    expect(await service.findings()).toEqual([]);
  });

  test('committed_when_formed: who is in a batch cannot be cancelled', async () => {
    const id = await request();
    await formed();
    expect(await cancelled(id)).toBe('payout_not_cancellable');
    expect(await row(id)).toMatchObject({ status: 'processing', step: 'batched' });
    expect(await service.findings()).toEqual([]);
  });

  test('silence_is_unknown: a transaction that nobody has seen for weeks fails no payout', async () => {
    const id = await request();
    const batch = await formed();
    expect(await storeSigned(service.ctx, signatureOf(batch), { epoch: batch.leaseEpoch, feeRate: 1_000n })).toBe(true);
    await service.wait(30 * 86_400_000);
    await service.mine(200);
    expect(await progress(service.ctx, batch.id)).toBe('waiting');
    expect(await row(id)).toMatchObject({ status: 'processing', error: null });
    expect(await service.findings()).toEqual([]);
  });

  test('store_looks_at_payout: a signature that comes late books nothing for a payout that has ended', async () => {
    const id = await request();
    const batch = await formed();
    const first = signatureOf(batch);
    await storeSigned(service.ctx, first, { epoch: batch.leaseEpoch, feeRate: 1_000n });
    service.spend(first.txid, batch.inputs, await changeOf(batch, first));
    await service.mine(1);
    expect(await progress(service.ctx, batch.id)).toBe('confirmed');
    // the worker had asked for a replacement before the block came
    const late = signatureOf(batch, 2, 5_000n);
    expect(await storeSigned(service.ctx, late, { epoch: batch.leaseEpoch, feeRate: 5_000n })).toBe(true);
    expect(await service.balance('asset:chain:BTC:outbound')).toBe(0n);
    expect(await row(id)).toMatchObject({ status: 'completed', fee: first.fee });
    expect(await service.findings()).toEqual([]);
  });
});
