// Reimbursements in a random life of an order (rule-walk.ts): asked for like the other words of a merchant, and sent the way the worker does
// it, with bytes of the test's own in place of the signer's.
import { Refusal } from '../../src/core/refusal.ts';
import type { SignedTransaction } from '../../src/core/signer-wire.ts';
import { formBatch, priced, signingRequest } from '../../src/flow/payouts/batches.ts';
import { progress, storeSigned } from '../../src/flow/payouts/progress.ts';
import { reimburseTransaction } from '../../src/flow/payouts/reimbursements.ts';
import { createAddressDeriver } from '../../src/outside/utxo/derive.ts';
import { RBF_SEQUENCE, sealed, type Transaction } from '../../src/sandbox/utxo/transaction.ts';
import { type Batch, leaseBatch, readBatch } from '../../src/store/payouts/batch-rows.ts';
import { saveFeeRate } from '../../src/store/payouts/fee-rates.ts';
import { account } from '../keys/vectors.ts';
import type { Code } from './behaviour.ts';
import { mayLeave, openRefund, type Part, refundable, refunded } from './order-refunds.ts';
import { total } from './orders.ts';
import type { Walk } from './rule-walk.ts';

/** Minor units per 1,000 virtual bytes. */
const RATES: Readonly<Record<Code, bigint>> = { BTC: 1_000n, LTC: 1_000n, BCH: 1_000n, DASH: 1_000n, DOGE: 1_000_000n };
/** What leaves less than the smallest output after its fee is refused for that: such sums are left out. */
const TOO_LITTLE: Readonly<Record<Code, bigint>> = {
  BTC: 2_000n,
  LTC: 20_000n,
  BCH: 2_000n,
  DASH: 2_000n,
  DOGE: 300_000_000n,
};
let signatures = 0;

/** An address of the outside world. */
function outside(currency: Code, index: number): string {
  const { publicExtendedKey: xpub } = account(currency, 'regtest', 'a customer');
  return createAddressDeriver({ currency, network: 'regtest', xpub }).derive(index).address;
}

/** Asks for it; false where it is left out. */
export async function askRefund(walk: Walk, part: Part): Promise<boolean> {
  const { service, order, currency, id } = walk;
  const members = refundable(order, part, await availableOf(walk));
  if (members !== null && total(members, (one) => one.amount) < TOO_LITTLE[currency]) return false;
  await saveFeeRate(service.db, currency, RATES[currency], service.now());
  const destination = outside(currency, walk.random.whole(0, 1_000_000));
  const request = { merchantId: null, transactionId: id, destination, part: part === 'excess' ? part : null, currency: null };
  const done = await reimburseTransaction(service.ctx, request).then(
    () => 'done',
    (error: unknown) => {
      if (error instanceof Refusal) return `refused (${error.code})`;
      throw error;
    },
  );
  if ((done === 'done') !== (members !== null))
    walk.wrong.push(`reimburse ${part} is ${done}, by the rules ${members === null ? 'refused' : 'done'}`);
  walk.log.push(`      reimburse ${part} ${done}`);
  if (done === 'done' && members !== null) openRefund(order, part, members);
  return true;
}

async function availableOf({ service, currency, merchantId }: Walk): Promise<bigint> {
  const { rows } = await service.db.query<{ amount: string }>({
    text: `select amount from ledger.lock_balances($1)`,
    values: [[`merchant:${merchantId}:available:${currency}`]],
  });
  return BigInt(rows[0]?.amount ?? 0);
}

/** Orders of earlier walks may be paid first. */
const MOST_BATCHES = 5;

/** What waits and may leave is signed, sent and mined; what of it is this order's must be what the rules let go. */
export async function sendRefund(walk: Walk): Promise<boolean> {
  const { service, order, currency, id } = walk;
  if (order.refund === null) return false;
  const may = mayLeave(order, walk.view());
  for (let batches = 0; batches < MOST_BATCHES; batches++) {
    const formed = await formBatch(service.ctx, currency, RATES[currency]);
    walk.log.push(`      ${formed.outcome}`);
    if (formed.outcome === 'nothing' && may) walk.wrong.push('the reimbursement does not leave, by the rules it may');
    if (formed.outcome !== 'formed') return batches > 0;
    const nowMs = service.now();
    await leaseBatch(service.db, { owner: 'walk', currency, nowMs, untilMs: nowMs + 1_000, not: [] });
    const batch = (await readBatch(service.db, formed.batchId, { lock: false })) as Batch;
    const isOurs = batch.payouts.some(({ reimburses }) => reimburses === id);
    if (isOurs && !may) walk.wrong.push('the reimbursement leaves, by the rules it waits');
    await send(walk, batch);
    walk.mine(currency, 1);
    walk.sentAtHeight = service.node(currency).state.active.length - 1;
    await walk.read();
    await progress(service.ctx, batch.id);
    walk.note();
    if (isOurs) refunded(order, walk.view());
    if (isOurs || !may) return true;
  }
  return true;
}

async function send({ service, currency }: Walk, batch: Batch): Promise<void> {
  const selection = priced(batch, RATES[currency]);
  if (selection === null) throw new Error('it cannot be paid at this rate');
  const request = signingRequest(batch, 1, selection);
  const change = request.change === null ? [] : [{ minor: BigInt(request.change.amount), script: batch.changeScript as Buffer }];
  const transaction: Transaction = sealed({
    version: 2,
    inputs: batch.inputs.map(({ txid, vout }) => ({
      txid,
      vout,
      scriptSig: Buffer.alloc(0),
      sequence: RBF_SEQUENCE,
      witness: [],
    })),
    outputs: [
      ...request.outputs.map(({ amount, script }) => ({ minor: BigInt(amount), script: Buffer.from(script, 'hex') })),
      ...change,
    ],
    lockTime: 0,
  });
  signatures += 1;
  const signed: SignedTransaction = {
    sequence: signatures,
    request,
    txid: transaction.txid,
    raw: transaction.raw.toString('hex'),
    fee: selection.fee.toString(),
    vbytes: selection.vbytes,
    signedAtMs: service.now(),
  };
  if (!(await storeSigned(service.ctx, signed, { epoch: batch.leaseEpoch, feeRate: RATES[currency] })))
    throw new Error('it was not stored');
  service.node(currency).enter(transaction, { denied: false });
}
