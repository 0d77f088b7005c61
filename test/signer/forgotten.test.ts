// A signer whose folder was put back to an older copy, or lost, beside a database that was not: what has left since counts for its limits as if its journals
// still had it.
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { SignedTransaction, TransactionToSign } from '../../src/core/signer-wire.ts';
import { createForgotten } from '../../src/signer/forgotten.ts';
import { createSignatureIndex, type SignatureIndex } from '../../src/signer/signature-index.ts';
import type { Signing } from '../../src/signer/signing.ts';
import { addSignerKey } from '../../src/store/chain/xpubs.ts';
import { insertAttempt } from '../../src/store/payouts/attempts.ts';
import { GWEI, openEvmSigner, request } from './evm-requests.ts';
import { requestFor, WHOLE } from './setup.ts';

const HOUR_MS = 3_600_000;
const PAYEE = `0x${'a1'.repeat(20)}`;
let at: Awaited<ReturnType<typeof openEvmSigner>>;
let signing: Signing;
let told: string[];
beforeEach(async () => {
  at = await openEvmSigner();
  signing = await at.startEvm();
  told = [];
});
afterEach(() => at.close());

/** As the worker stores it. */
async function stored(signed: SignedTransaction): Promise<SignedTransaction> {
  const { batchId, number, currency, outputs, inputs, evm } = signed.request;
  const isPayout = evm?.purpose === undefined;
  await insertAttempt(at.db, {
    batchId,
    number,
    currency: currency as 'BTC',
    txid: signed.txid,
    raw: Buffer.from(signed.raw, 'hex'),
    fee: BigInt(signed.fee),
    vbytes: evm === undefined ? signed.vbytes : evm.gas,
    feeRate: 1n,
    maxFee: evm === undefined ? null : BigInt(evm.maxFee),
    change: null,
    epoch: 1n,
    sequence: signed.sequence,
    lost: 0n,
    signedAtMs: signed.signedAtMs,
    shares: isPayout ? outputs.map(({ payoutId }) => ({ payoutId, fee: BigInt(signed.fee) / BigInt(outputs.length) })) : [],
  });
  if (isPayout) return signed;
  const [{ txid, vout, amount, xpub }] = inputs as [(typeof inputs)[number]];
  await addSignerKey(at.db, { currency: currency as 'ETH', xpub, at: new Date() });
  await at.owner.query(
    `insert into outgoing_inputs (currency, txid, vout, batch_id, amount, script, account_xpub_id, chain, address_index)
       select $1, $2, $3, $4, $5, '', id, 0, 0 from account_xpubs where xpub = $6`,
    [currency, txid, vout, batchId, amount, xpub],
  );
  return signed;
}
const sign = async (asked: TransactionToSign): Promise<SignedTransaction> => stored(await signing.sign(asked));

function indexOf(signatures: readonly SignedTransaction[]): SignatureIndex {
  const index = createSignatureIndex();
  for (const signed of signatures) index.add(signed);
  return index;
}
/** What is counted by a signer whose journals have these. */
const forgotten = (signatures: readonly SignedTransaction[] = [], payments: readonly string[] = []) =>
  createForgotten({
    db: at.readOnly,
    signatures: async () => ({ index: indexOf(signatures) }),
    payments: async () => ({ ofPayout: (id) => (payments.includes(id) ? ({} as never) : null) }),
    now: () => at.clock.nowMs,
    report: (line) => void told.push(line),
  });
type Counted = Awaited<ReturnType<ReturnType<typeof forgotten>>>;
const inOrder = (counted: Counted) =>
  counted
    .filter(({ amount }) => amount > 0n)
    .map(({ currency, atMs, amount }) => `${currency} ${amount} ${atMs}`)
    .sort();

/** One of each: two payouts, a dearer and a cheaper replacement, a reimbursement, and what Ethereum's chain has. */
async function signAll(): Promise<SignedTransaction[]> {
  const batchId = await at.batch();
  const payouts = [await at.utxoPayout({ batchId }), await at.utxoPayout({ batchId, amount: WHOLE / 7n })];
  const inputs = [at.input(WHOLE)];
  const all = [await sign(requestFor(payouts, inputs))];
  at.clock.nowMs += HOUR_MS;
  all.push(await sign(requestFor(payouts, inputs, { number: 2, fee: 3_000n })));
  all.push(await sign(requestFor(payouts, inputs, { number: 3, fee: 2_000n })));
  const refund = await at.utxoPayout({ batchId: await at.batch({ currency: 'LTC' }), currency: 'LTC' });
  all.push(await sign(requestFor([refund], [at.input(WHOLE, { currency: 'LTC' })])));
  const usdt = await at.payout(PAYEE, 0);
  all.push(await sign(usdt));
  all.push(await sign(request({ ...usdt, number: 2 }, { evm: { maxFee: String(30n * GWEI), tip: String(2n * GWEI) } })));
  all.push(await sign(await at.reimbursement('USDT', PAYEE, 1)));
  all.push(await sign(await at.reimbursement('ETH', PAYEE, 0)));
  all.push(await sign(await at.sweep('USDT', 4)));
  all.push(await sign(await at.sweep('ETH', 5)));
  all.push(await sign(await at.topUp(6, 1)));
  return all;
}

test('counts as the journal did, whatever was signed', async () => {
  const all = await signAll();
  expect(inOrder(await forgotten()())).toEqual(inOrder(indexOf(all).leaving()));
  expect(told).toEqual([expect.stringContaining('is not in the journals')]);
});

test('what a journal has does not count again, and of a batch that it has in part only what was forgotten, by how much that takes more', async () => {
  const all = await signAll();
  expect(await forgotten(all)()).toEqual([]);
  expect(told).toEqual([]);
  const [first, dearer, , ...others] = all as [SignedTransaction, SignedTransaction, SignedTransaction];
  const left = await forgotten([first, ...others])();
  expect(inOrder(left)).toEqual([`BTC 2000 ${dearer.signedAtMs}`]);
});

test('for a day by its date, and a replacement of what is older by how much it takes more', async () => {
  const batchId = await at.batch();
  const payout = await at.utxoPayout({ batchId });
  const inputs = [at.input(WHOLE)];
  const first = await sign(requestFor([payout], inputs));
  at.clock.nowMs += 24 * HOUR_MS - 1;
  expect(inOrder(await forgotten()())).toEqual([`BTC ${payout.amount + 1_000n} ${first.signedAtMs}`]);
  expect(told).toHaveLength(1);
  at.clock.nowMs += 1;
  expect(await forgotten()()).toEqual([]);
  const dearer = await sign(requestFor([payout], inputs, { number: 2, fee: 3_000n }));
  expect(inOrder(await forgotten()())).toContain(`BTC 2000 ${dearer.signedAtMs}`);
  // it was read once, and says the same as long as its process runs: by the steady clock it grows older
  const asked = forgotten();
  const read = await asked();
  at.clock.nowMs += 48 * HOUR_MS;
  expect(await asked()).toBe(read);
});

test('what an operator has booked, which was signed at another time, and signatures that somebody else has written do not count', async () => {
  const payout = await at.utxoPayout({ batchId: await at.batch() });
  await sign(requestFor([payout], [at.input(WHOLE)]));
  await at.owner.query('update outgoing_attempts set sequence = 0');
  expect(await forgotten()()).toEqual([]);
});

test('over Lightning what a node was asked for in the last day and has not failed, with its highest fee', async () => {
  const batchId = await at.batch();
  const atMs = at.clock.nowMs;
  async function payment(state: string, agoMs: number): Promise<string> {
    const { id } = await at.utxoPayout({ batchId });
    const preimage = state === 'paid' ? Buffer.from(id.padEnd(32).slice(0, 32)) : null;
    await at.owner.query(
      `insert into lightning_payments (payout_id, payment_hash, state, node, created_at, asked_at, preimage, fee_msat)
         values ($1, coalesce(encode(sha256($5), 'hex'), repeat('0', 64)), $2, 'node', $3, $4, $5, case when $5::bytea is null then null else 0 end)`,
      [id, state, new Date(atMs - 48 * HOUR_MS), new Date(atMs - agoMs), preimage],
    );
    return id;
  }
  const sent = await payment('sent', 0);
  const paid = await payment('paid', 24 * HOUR_MS - 1);
  await payment('paid', 24 * HOUR_MS);
  await payment('failed', 0);
  await payment('closed', 0);
  const takes = WHOLE / 10n + 20_000n;
  expect(inOrder(await forgotten()())).toEqual([`BTC ${takes} ${atMs - 24 * HOUR_MS + 1}`, `BTC ${takes} ${atMs}`]);
  expect(await forgotten([], [sent, paid])()).toEqual([]);
  // of a reimbursement the fee is inside the amount
  await at.owner.query(`update payouts set method = 'reimbursement', reimburses = 'txn_1', part = 'whole' where id = $1`, [sent]);
  expect(inOrder(await forgotten([], [paid])())).toEqual([`BTC ${WHOLE / 10n} ${atMs}`]);
});

test('a signer that cannot read it signs nothing, and reads it later', async () => {
  const broken = forgotten();
  await at.owner.query('alter table outgoing_attempts rename to hidden');
  await expect(broken()).rejects.toThrow('outgoing_attempts');
  await at.owner.query('alter table hidden rename to outgoing_attempts');
  expect(await broken()).toEqual([]);
});
