// A reimbursement whose signatures somebody has written in another way: without segwit they are part of the txid, and whoever mines it can do that.
// Simulated chains, the production watcher and judge and driver, a real database.
import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { SignedTransaction, TransactionToSign } from '../../src/core/signer-wire.ts';
import { runAudit } from '../../src/flow/audit.ts';
import { formBatch } from '../../src/flow/payouts/batches.ts';
import { bookCapital } from '../../src/flow/payouts/own-outputs.ts';
import { readRefund, reimburseTransaction } from '../../src/flow/payouts/reimbursements.ts';
import { createAddressDeriver } from '../../src/outside/utxo/derive.ts';
import { RBF_SEQUENCE, sealed, type Transaction } from '../../src/sandbox/utxo/transaction.ts';
import { type Batch, readBatch } from '../../src/store/payouts/batch-rows.ts';
import { saveFeeRate } from '../../src/store/payouts/fee-rates.ts';
import { readSigningFacts } from '../../src/store/payouts/signing-facts.ts';
import { createPayoutDriver } from '../../src/worker/payouts/utxo/driver.ts';
import { account } from '../keys/vectors.ts';
import { tellingTo } from '../support/payout-jobs.ts';
import { openFixedHistory } from './fixed-history.ts';
import { openSimulatedService, type SimulatedService } from './simulated-service.ts';

let service: SimulatedService;
beforeAll(async () => {
  service = await openSimulatedService({ feeBps: 0 });
});
afterAll(() => service.close());

const HOUR = 3_600_000;
const RATE = { DASH: 1_000n, DOGE: 1_000_000n };
const FINAL = { DASH: 12, DOGE: 60 };

/** What was signed for a batch, as a transaction without signatures; `scriptSig` stands for one. */
function transactionOf(batch: Batch, { outputs, change }: TransactionToSign, scriptSig: Buffer): Transaction {
  const back = change === null ? [] : [{ minor: BigInt(change.amount), script: batch.changeScript as Buffer }];
  return sealed({
    version: 2,
    inputs: batch.inputs.map(({ txid, vout }) => ({ txid, vout, scriptSig, sequence: RBF_SEQUENCE, witness: [] })),
    outputs: [...outputs.map(({ amount, script }) => ({ minor: BigInt(amount), script: Buffer.from(script, 'hex') })), ...back],
    lockTime: 0,
  });
}

/** A reimbursement whose transaction is signed at the first `drive`, and made once more by `other` with other signatures. */
async function openReimbursement(currency: keyof typeof RATE, other: (twin: Transaction) => Transaction = (twin) => twin) {
  const history = await openFixedHistory(service, { currency });
  const { ctx, db } = service;
  await saveFeeRate(db, currency, RATE[currency], service.now());
  for (const cents of [90_00n, 50_00n]) history.pay(await history.buy(cents));
  const purchase = await history.buy(20_00n);
  history.pay(purchase);
  await history.look();
  history.mine(FINAL[currency]);
  await history.look();

  const { publicExtendedKey: xpub } = account(currency, 'regtest', 'a customer');
  const destination = createAddressDeriver({ currency, network: 'regtest', xpub }).derive(randomBytes(2).readUInt16BE()).address;
  await reimburseTransaction(ctx, { merchantId: null, transactionId: purchase.id, destination, part: null, currency: null });
  await history.look();
  expect(await formBatch(ctx, currency, RATE[currency])).toMatchObject({ outcome: 'formed' });

  const made: { twin: Transaction | null; readonly numbers: number[] } = { twin: null, numbers: [] };
  const signing = {
    async sign(request: TransactionToSign): Promise<SignedTransaction> {
      const batch = (await readBatch(db, request.batchId, { lock: false })) as Batch;
      const { txid, raw, vsize } = transactionOf(batch, request, Buffer.alloc(0));
      made.twin ??= other(transactionOf(batch, request, Buffer.from([0x51])));
      made.numbers.push(request.number);
      const paid = [...request.outputs, ...(request.change === null ? [] : [request.change])];
      const fee =
        batch.inputs.reduce((all, one) => all + one.amount, 0n) - paid.reduce((all, one) => all + BigInt(one.amount), 0n);
      const signedAtMs = service.now();
      return { sequence: made.numbers.length, request, txid, raw: raw.toString('hex'), fee: `${fee}`, vbytes: vsize, signedAtMs };
    },
    signed: async () => ({ transactions: [], more: false }),
  };
  const driver = createPayoutDriver(ctx, currency, { signing, owner: 'test', ...tellingTo([]) });
  const drive = () => driver.pass({ isQueued: false, signsNew: true, moves: false });
  const node = service.node(currency);
  const shown = async () => {
    const { rows } = await db.query<{ txid: string; state: string }>({
      text: `select a.txid, b.state from outgoing_attempts a join outgoing_batches b on b.id = a.batch_id where a.currency = $1 and a.height is not null`,
      values: [currency],
    });
    const { rows: stops } = await db.query({ text: 'select name from breakers where cleared_at is null', values: [] });
    const report = await runAudit(ctx);
    const red = report.answers.flatMap(({ id, findings }) => findings.map((finding) => `${id}: ${finding}`));
    return { mined: rows, stops, red, refund: (await readRefund(ctx, purchase.id))?.status };
  };
  const twin = async (): Promise<Transaction> => {
    await drive();
    return made.twin as unknown as Transaction;
  };
  return { history, node, drive, shown, twin, numbers: made.numbers };
}

test.each(['DASH', 'DOGE'] as const)('%s: is the reimbursement, and nothing is sent a second time', async (currency) => {
  const { ctx, db } = service;
  const { history, node, drive, shown, numbers, ...made } = await openReimbursement(currency);
  const twin = await made.twin();
  node.enter(twin, { denied: false });

  // nobody has looked while it became final
  node.mine(FINAL[currency]);
  await history.look();
  await bookCapital(ctx, currency);
  await drive();
  await history.look();
  const done = { stops: [], red: [], refund: 'completed' };
  expect(await shown()).toEqual({ ...done, mined: [{ txid: twin.txid, state: 'final' }] });

  // a reorganisation takes it out of its block, and another block has it
  node.reorg(FINAL[currency], { drop: false });
  await history.look();
  await drive();
  // it waits there: the signer has never heard of the other one, neither when it is asked for the next number nor by what it reads
  await saveFeeRate(db, currency, 3n * RATE[currency], service.now());
  service.wait(3 * HOUR);
  await drive();
  expect(numbers).toEqual([1, 2]);
  const { rows } = await db.query<{ id: string }>({
    text: 'select id from outgoing_batches where currency = $1',
    values: [currency],
  });
  const facts = { batchId: (rows[0] as { id: string }).id, otherBatches: [], payoutIds: [], nonces: null };
  expect((await readSigningFacts(db, facts)).attempts.map(({ number }) => `${number}`).toSorted()).toEqual(['1', '2']);
  node.mine(1);
  await history.look();
  await drive();
  expect(await shown()).toEqual({ ...done, mined: [{ txid: twin.txid, state: 'mined' }] });
  expect(node.received(scriptOf(twin))).toHaveLength(1);
});

test('what pays the same and brings the change elsewhere was not signed here: payouts stop, and nothing is completed', async () => {
  const { publicExtendedKey: xpub } = account('DASH', 'regtest', 'a stranger');
  const theirs = Buffer.from(createAddressDeriver({ currency: 'DASH', network: 'regtest', xpub }).derive(7).script);
  const { history, node, drive, shown, twin } = await openReimbursement('DASH', ({ outputs, ...one }) =>
    sealed({ ...one, outputs: outputs.map((output, at) => (at === 1 ? { ...output, script: theirs } : output)) }),
  );
  const stranger = await twin();
  expect(stranger.outputs).toHaveLength(2);
  node.enter(stranger, { denied: false });
  node.mine(FINAL.DASH);
  await history.look();
  await drive();
  await history.look();
  const { mined, ...rest } = await shown();
  expect(mined.map(({ txid }) => txid)).not.toContain(stranger.txid);
  expect(rest).toMatchObject({ stops: [{ name: 'payouts' }], refund: 'pending' });
});

const scriptOf = (twin: Transaction): string => (twin.outputs[0] as Transaction['outputs'][number]).script.toString('hex');
