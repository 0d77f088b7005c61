// What gas may cost: whoever has the worker chooses its price, and a block's maker may be his friend. And what pays its gas out of itself.
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { GAS } from '../../src/core/currencies/evm.ts';
import type { TransactionToSign } from '../../src/core/signer-wire.ts';
import type { Limit } from '../../src/signer/limits.ts';
import type { Signing } from '../../src/signer/signing.ts';
import { CONTRACT, ETHER, FEE, GWEI, openEvmSigner, request, withInput } from './evm-requests.ts';

const PAYEE = `0x${'a1'.repeat(20)}`;
const GAS_OF_PAYOUT = 100_000n * 20n * GWEI;
const NONE: Limit = { payout: null, hour: null, day: null };
let signer: Awaited<ReturnType<typeof openEvmSigner>>;
let signing: Signing;
/** Of USDT's own address, and of ether's: each test signs its next one. */
let nonce = 0;
let etherNonce = 0;
let index = 0;

beforeAll(async () => {
  signer = await openEvmSigner();
});
afterAll(() => signer?.close());
beforeEach(async () => {
  index += 1;
  // what was signed before counts no more
  signer.clock.nowMs += 25 * 3_600_000;
  signing = await signer.startEvm();
});

async function refused(asked: TransactionToSign, rule: string, about: RegExp): Promise<void> {
  const before = signer.signatures();
  await expect(signing.sign(asked)).rejects.toMatchObject({ rule, message: expect.stringMatching(about) });
  expect(signer.signatures()).toBe(before);
}
const outputOf = ({ outputs }: TransactionToSign) => outputs[0] as TransactionToSign['outputs'][number];

describe('gas counts for the limits of ether', () => {
  test('of a payout in a token with the most that it may cost, whatever the payout is charged', async () => {
    const asked = request(await signer.payout(PAYEE, nonce), { evm: { fee: '1' } });
    signing = await signer.startEvm({ ETH: { ...NONE, payout: GAS_OF_PAYOUT - 1n } });
    await refused(asked, 'limit', /takes 0\.002.* ETH, and the limit of one/);
    signing = await signer.startEvm({ ETH: { ...NONE, hour: GAS_OF_PAYOUT } });
    await signing.sign(asked);
    nonce += 1;
    await refused(await signer.payout(PAYEE, nonce), 'limit', /ETH would leave in an hour/);
    // a sweep burns ether too
    await refused(await signer.sweep('USDT', index), 'limit', /ETH would leave in an hour/);
  });

  test('of a replacement with what it may cost more, and the payout counts once for the limits of its token', async () => {
    const limits = { ETH: { ...NONE, hour: (GAS_OF_PAYOUT * 9n) / 8n }, USDT: { ...NONE, hour: 50_000_000n + FEE } };
    signing = await signer.startEvm(limits);
    const asked = await signer.payout(PAYEE, nonce);
    await signing.sign(asked);
    nonce += 1;
    const offer = (maxFee: bigint) => ({ evm: { maxFee: String(maxFee), tip: String((GWEI * 9n) / 8n) } });
    const dearest = (20n * GWEI * 9n) / 8n;
    await refused(request({ ...asked, number: 2 }, offer(dearest + 1n)), 'limit', /ETH would leave in an hour/);
    // by its journal, after a start too
    signing = await signer.startEvm(limits);
    await signing.sign(request({ ...asked, number: 2 }, offer(dearest)));
    signing = await signer.startEvm({ USDT: limits.USDT });
    await refused(await signer.payout(PAYEE, nonce), 'limit', /USDT would leave in an hour/);
  });

  test('of a reimbursement in ether, which may cost more than it takes for gas', async () => {
    const asked = await signer.reimbursement('ETH', PAYEE, etherNonce);
    const dear = request(asked, { evm: { maxFee: String(200n * GWEI) } });
    signing = await signer.startEvm({ ETH: { ...NONE, payout: ETHER } });
    await refused(dear, 'limit', /takes 1\.00378.* ETH, and the limit of one/);
    await signing.sign(asked);
    etherNonce += 1;
    signing = await signer.startEvm({ ETH: { ...NONE, day: ETHER } });
    await refused(await signer.sweep('USDT', index), 'limit', /ETH would leave in a day/);
  });
});

describe('a reimbursement', () => {
  test.each(['ETH', 'USDT'] as const)('in %s pays its gas out of what goes back: no unit more, none less', async (currency) => {
    const asked = await signer.reimbursement(currency, PAYEE, currency === 'ETH' ? etherNonce : nonce);
    const { amount } = outputOf(asked);
    for (const difference of [-1n, 1n]) {
      const other = request(asked, { amount: BigInt(amount) + difference });
      const [input] = asked.inputs as [TransactionToSign['inputs'][number]];
      await refused(withInput(other, { amount: String(BigInt(input.amount) + difference) }), 'fee', /of the fee/);
    }
    const { total: _, ...without } = outputOf(asked);
    await refused({ ...asked, outputs: [without] }, 'payout', /the request says otherwise/);
    await signing.sign(asked);
    if (currency === 'ETH') etherNonce += 1;
    else nonce += 1;
  });
});

describe('what moves between our own addresses', () => {
  test('says what it takes only where gas is paid out of it', async () => {
    const ofEther = await signer.sweep('ETH', index);
    const { total: _, ...without } = outputOf(ofEther);
    await refused({ ...ofEther, outputs: [without] }, 'amounts', /only a sweep of ether pays its gas/);
    const withTotal = (asked: TransactionToSign) => ({
      ...asked,
      outputs: [{ ...outputOf(asked), total: outputOf(asked).amount }],
    });
    await refused(withTotal(await signer.sweep('USDT', index)), 'amounts', /only a sweep of ether pays its gas/);
    await refused(withTotal(await signer.topUp(index, etherNonce)), 'amounts', /only a sweep of ether pays its gas/);
  });

  test('is ether where it is for gas', async () => {
    const asked = await signer.sweep('USDT', index);
    const batchId = await signer.insertBatch('USDT', 'top_up', PAYEE);
    const evm = { purpose: 'top_up', payee: { currency: 'USDT', index } } as const;
    const topUp = request({ ...asked, batchId, outputs: [{ ...outputOf(asked), payoutId: batchId }] }, { evm });
    await refused(topUp, 'destination', /ether for gas is not sent in USDT/);
  });

  test('costs up to the dearest gas, and no unit of gas more', async () => {
    const sweep = await signer.sweep('USDT', index);
    const priced = (maxFee: bigint, tip: bigint) =>
      request(sweep, { evm: { maxFee: String(maxFee), tip: String(tip), fee: String(80_000n * maxFee) } });
    await refused(priced(GAS.mostFee + 1n, 1n), 'fee', /is the most/);
    await refused(priced(GWEI, GWEI + 1n), 'fee', /is the most/);
    await signing.sign(priced(GAS.mostFee, GAS.mostFee));
  });
});

test('where the settings name no contract nothing leaves in a token, and no ether in its place', async () => {
  signing = await signer.startEvm({}, null);
  for (const asked of [await signer.payout(PAYEE, nonce), await signer.sweep('USDT', index)])
    for (const contract of [CONTRACT, null])
      await refused(request(asked, { evm: { contract } }), 'destination', /BURSAR_USDT_CONTRACT names no contract/);
});
