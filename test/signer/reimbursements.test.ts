// Reimbursements before the signer: the network fee is taken from what the customer gets, so each output and its share of the fee must be what
// the API has signed and what is held for it.
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { TransactionToSign } from '../../src/core/signer-wire.ts';
import type { Signing } from '../../src/signer/signing.ts';
import { asking } from './asking.ts';
import { newId, openTestSigner, requestFor, type TestSigner, type Wanted, WHOLE } from './setup.ts';

vi.setConfig({ testTimeout: 60_000 });
let at: TestSigner;
let signing: Signing;
beforeEach(async () => {
  at = await openTestSigner();
  signing = await at.start();
}, 120_000);
afterEach(() => at.close());
const { refused } = asking(
  () => at,
  () => signing,
);

const TOTAL = WHOLE / 10n;
const FEE = 1_000n;
const reimbursement = async (given: Partial<Wanted> = {}): Promise<Wanted> =>
  at.payout({ batchId: await at.batch(), amount: TOTAL, feeMax: 20_000n, reimburses: newId('txn'), ...given });

/** One input, one reimbursement, and the fee out of its amount. */
function asked(wanted: Wanted, fee = FEE, given: Partial<TransactionToSign> = {}): TransactionToSign {
  const output = { payoutId: wanted.id, script: wanted.script, amount: (TOTAL - fee).toString(), total: TOTAL.toString() };
  const request = requestFor([wanted], [at.input(WHOLE)], { fee: 0n, ...given });
  return { ...request, outputs: [output], ...given };
}

describe('a reimbursement', () => {
  it('is signed when its output and its share of the fee are what is held', async () => {
    const wanted = await reimbursement();
    const { fee, request } = await signing.sign(asked(wanted));
    expect(fee).toBe(FEE.toString());
    expect(request.outputs).toEqual([{ ...asked(wanted).outputs[0], reimburses: wanted.reimburses }]);
  });

  it('is replaced by one that pays the customer less and the miner more, of the same whole, with the same bytes each time', async () => {
    const wanted = await reimbursement();
    const first = asked(wanted);
    const one = await signing.sign(first);
    const second = { ...asked(wanted, 5_000n), inputs: first.inputs, number: 2 };
    const two = await signing.sign(second);
    expect([one.fee, two.fee]).toEqual(['1000', '5000']);
    expect(await signing.sign(second)).toEqual(two);
    const other = { ...second, number: 3, outputs: [{ ...second.outputs[0]!, total: (TOTAL - 1n).toString() }] };
    await refused(other, 'payout', /another destination or amount/);
  });

  it('gets no unit more or less than the fee leaves', async () => {
    const wanted = await reimbursement();
    const request = asked(wanted);
    for (const difference of [-1n, 1n]) {
      const amount = (TOTAL - FEE + difference).toString();
      const outputs = [{ ...request.outputs[0]!, amount }];
      const change = { index: 7, amount: (BigInt(request.change?.amount ?? 0) - difference).toString() };
      // the fee stays, so the unit comes from the change or goes there
      await refused({ ...request, outputs, change }, 'fee', /would pay/);
    }
    await refused(asked(wanted, 20_001n), 'fee', /20000 is its most/);
  });

  it('is never asked for as a payout, nor a payout as a reimbursement', async () => {
    const wanted = await reimbursement();
    const { payoutId, script } = asked(wanted).outputs[0]!;
    const outputs = [{ payoutId, script, amount: TOTAL.toString() }];
    await refused({ ...asked(wanted), outputs }, 'payout', /the request says otherwise/);
    const payout = await at.payout({ batchId: await at.batch(), amount: TOTAL });
    await refused(asked(payout), 'payout', /the request says otherwise/);
  });

  it('needs the hold of its own transaction, which its API has signed', async () => {
    const wanted = await reimbursement();
    await at.owner.query('update payouts set reimburses = $2 where id = $1', [wanted.id, newId('txn')]);
    await refused(asked(wanted), 'intent', /not what its API has signed/);
    const other = await reimbursement();
    await at.owner.query('alter table ledger.entry disable trigger all');
    await at.owner.query(`update ledger.entry set key = key || 'x' where key = $1`, [`po:${other.id}:hold`]);
    await refused(asked(other), 'hold', /no hold/);
  });
});
