// A transaction is reimbursed once: whoever holds the worker and the database may say that an earlier reimbursement never left, and have an API sign
// another; the signer's own journal shows what went back.
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { approvalBytes } from '../../src/core/payouts/intent.ts';
import type { TransactionToSign } from '../../src/core/signer-wire.ts';
import { signerSocket } from '../../src/main/wiring/signer-paths.ts';
import { createSignerClient, type SignerClient } from '../../src/outside/signer-client.ts';
import { serveSigner } from '../../src/signer/server.ts';
import { createSignatureIndex } from '../../src/signer/signature-index.ts';
import { postEntries } from '../../src/store/ledger/ledger.ts';
import { newId, openTestSigner, requestFor, signatureOf, type TestSigner, type Wanted, WHOLE } from './setup.ts';

vi.setConfig({ testTimeout: 60_000 });
const TOTAL = WHOLE / 10n;
const FEE = 1_000n;
let at: TestSigner;
let client: SignerClient;
let stop: () => Promise<void>;

async function serve(): Promise<void> {
  const socket = signerSocket(at.folder);
  const signing = await at.start();
  const server = await serveSigner({ path: socket, mode: 0o600 }, { keyring: at.keyring, signing, onTrouble: () => undefined });
  client = createSignerClient(socket);
  stop = async () => {
    client.close();
    await server.close();
  };
}
beforeAll(async () => {
  at = await openTestSigner();
  // a thief who owns the database is bound by nothing
  await at.owner.query('drop index payouts_reimbursing_open');
  await serve();
}, 120_000);
afterAll(async () => {
  await stop();
  await at.close();
});

/** A transaction for which so much came, as the judge has booked it. */
async function received(amount: bigint, currency = 'BTC'): Promise<string> {
  const id = newId('txn');
  const postings = [
    { account: `asset:chain:${currency}`, amount },
    { account: `suspense:${id}:${currency}`, amount: -amount },
  ];
  const entry = { key: newId('dep'), kind: 'deposit', postings, parts: [] };
  await postEntries(at.db, [{ entry, transactionId: id, atMs: at.clock.nowMs }]);
  return id;
}
const reimbursement = async (transactionId: string, amount = TOTAL): Promise<Wanted> =>
  at.payout({ batchId: await at.batch(), amount, feeMax: 20_000n, reimburses: transactionId });
function asked(wanted: Wanted, given: Partial<TransactionToSign> = {}): TransactionToSign {
  const { amount } = wanted;
  const output = { payoutId: wanted.id, script: wanted.script, amount: (amount - FEE).toString(), total: amount.toString() };
  return { ...requestFor([wanted], [at.input(WHOLE)], { fee: 0n }), outputs: [output], ...given };
}
const sign = (request: TransactionToSign) => client.ask({ op: 'sign', ...request });
const refused = { fault: 'refused', message: expect.stringMatching(/^rule reimbursed \(/) };
/** What a thief makes of one that was signed: it failed, its batch is dead, and nothing of it is there. */
async function denied({ id, batchId }: Wanted): Promise<void> {
  await at.owner.query(
    `update payouts set status = 'failed', step = 'ended', error = 'displaced', batch_id = null where id = $1`,
    [id],
  );
  await at.owner.query(`update outgoing_batches set state = 'dead' where id = $1`, [batchId]);
}

test('what the database denies is not sent again, after a start of the signer neither, and when its row is gone', async () => {
  const transactionId = await received(TOTAL);
  const first = await reimbursement(transactionId);
  const signed = await sign(asked(first));
  expect(signed.request.outputs).toMatchObject([{ payoutId: first.id, reimburses: transactionId }]);
  await denied(first);
  const second = await reimbursement(transactionId);
  const request = asked(second);
  await expect(sign(request)).rejects.toMatchObject(refused);
  await stop();
  await serve();
  await expect(sign(request)).rejects.toMatchObject(refused);
  await at.owner.query('delete from payouts where id = $1', [first.id]);
  await expect(sign(request)).rejects.toMatchObject(refused);
  // the same bytes as before, for whoever has lost them
  expect(await sign(asked(first, { inputs: signed.request.inputs }))).toEqual(signed);
});

test('parts go back one after the other up to what came', async () => {
  const transactionId = await received(TOTAL * 3n);
  for (const share of [TOTAL, TOTAL * 2n]) await sign(asked(await reimbursement(transactionId, share)));
  await expect(sign(asked(await reimbursement(transactionId, 10_000n)))).rejects.toMatchObject(refused);
  // also within one transaction
  const other = await received(TOTAL);
  await sign(asked(await reimbursement(other, 10_000n)));
  const batchId = await at.batch();
  const half = { batchId, amount: TOTAL / 2n, feeMax: 20_000n, reimburses: other };
  const both = [await at.payout(half), await at.payout(half)] as const;
  const outputs = both.map(({ id, script, amount }) => ({
    ...{ payoutId: id, script, amount: (amount - FEE).toString(), total: amount.toString() },
  }));
  const request = { ...requestFor(both, [at.input(WHOLE)], { fee: 0n }), outputs };
  await expect(sign(request)).rejects.toMatchObject(refused);
});

test('a lost payment is not there any more', async () => {
  const transactionId = await received(TOTAL * 2n);
  await sign(asked(await reimbursement(transactionId)));
  const postings = [
    { account: `suspense:${transactionId}:BTC`, amount: TOTAL },
    { account: 'asset:chain:BTC', amount: -TOTAL },
  ];
  const entry = { key: newId('reorg'), kind: 'deposit_lost', postings, parts: [] };
  await postEntries(at.db, [{ entry, transactionId, atMs: at.clock.nowMs }]);
  await expect(sign(asked(await reimbursement(transactionId)))).rejects.toMatchObject(refused);
});

test('one that can never be mined beside the new one does not count, and cannot be mined beside it later', async () => {
  const transactionId = await received(TOTAL);
  const first = await reimbursement(transactionId);
  const [one, two] = [at.input(WHOLE), at.input(WHOLE)];
  await sign({ ...asked(first), inputs: [one, two], change: { index: 7, amount: (WHOLE * 2n - TOTAL).toString() } });
  await denied(first);
  const second = await reimbursement(transactionId);
  await expect(sign(asked(second))).rejects.toMatchObject(refused);
  await sign(asked(second, { inputs: [two] }));
  // the thief revives the first, without the input that both had
  await at.owner.query(`update outgoing_batches set state = 'dead' where id = $1`, [second.batchId]);
  await at.owner.query(`update outgoing_batches set state = 'reserved' where id = $1`, [first.batchId]);
  await at.owner.query(`update payouts set status = 'processing', step = 'batched', error = null, batch_id = $2 where id = $1`, [
    first.id,
    first.batchId,
  ]);
  await expect(sign(asked(first, { inputs: [one], number: 2 }))).rejects.toMatchObject(refused);
});

test('an operator may let it go, by the key of an API that is trusted', async () => {
  const transactionId = await received(TOTAL);
  await sign(asked(await reimbursement(transactionId)));
  const second = await reimbursement(transactionId);
  const approve = (id: string, { keyId, signature }: { readonly keyId: string; readonly signature: Uint8Array }) =>
    at.owner.query('update payouts set approved_at = now(), approval_key = $2, approval = $3 where id = $1', [
      id,
      keyId,
      Buffer.from(signature),
    ]);
  await approve(second.id, at.intents.sign(approvalBytes(at.network, newId('po'))));
  await expect(sign(asked(second))).rejects.toMatchObject(refused);
  await approve(second.id, at.intents.sign(approvalBytes(at.network, second.id)));
  await sign(asked(second));
});

test('what was signed before transactions were kept is found by its row', () => {
  const index = createSignatureIndex();
  const outputs = [{ payoutId: 'refund_1', script: '0014', amount: '900', total: '1000' }];
  index.add({ sequence: 1, ...signatureOf(1, { outputs }) });
  expect(index.reimbursementsOf('txn_1', 'BTC', [])).toEqual([]);
  expect(index.reimbursementsOf('txn_1', 'BTC', ['refund_1', 'refund_2'])).toMatchObject([
    { payoutId: 'refund_1', total: 1000n },
  ]);
});
