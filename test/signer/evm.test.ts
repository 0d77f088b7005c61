// The signer's rules for Ethereum's chain, one request for each that breaks only that one: payouts, and what moves between our own addresses
// without anybody's intent.
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { evmInput, evmScript, GAS } from '../../src/core/currencies/evm.ts';
import type { EvmCode } from '../../src/core/currency.ts';
import { MOST_TOP_UP } from '../../src/core/payouts/sweeps.ts';
import type { TransactionToSign } from '../../src/core/signer-wire.ts';
import type { Signing } from '../../src/signer/signing.ts';
import { clearBreakers, tripBreaker } from '../../src/store/ledger/breakers.ts';
import { CONTRACT, ETHER, type Evm, FEE, GWEI, openEvmSigner, request, withInput } from './evm-requests.ts';

const PAYEE = `0x${'a1'.repeat(20)}`;
let signer: Awaited<ReturnType<typeof openEvmSigner>>;
let signing: Signing;
/** Of USDT's own address, and of ether's: each test signs its next one. */
let nonce = 0;
let etherNonce = 0;
/** Of an address of a transaction: each test has one of its own. */
let index = 0;

beforeAll(async () => {
  signer = await openEvmSigner();
  signing = await signer.startEvm();
});
afterAll(() => signer?.close());
beforeEach(() => {
  index += 1;
});

const hot = (currency: EvmCode): string => signer.hot(currency);
const payout = (payee = PAYEE): Promise<TransactionToSign> => signer.payout(payee, nonce);
const sweep = (currency: EvmCode): Promise<TransactionToSign> => signer.sweep(currency, index);
const topUp = (): Promise<TransactionToSign> => signer.topUp(index, etherNonce);

async function refused(asked: TransactionToSign, rule: string, about: RegExp): Promise<void> {
  const before = signer.signatures();
  await expect(signing.sign(asked)).rejects.toMatchObject({
    name: 'SigningRefused',
    rule,
    message: expect.stringMatching(about),
  });
  expect(signer.signatures()).toBe(before);
}
describe('a payout in a token', () => {
  test('that keeps every rule is signed once, and the same request gets the same bytes', async () => {
    const asked = await payout();
    const first = await signing.sign(asked);
    expect(await signing.sign(asked)).toEqual(first);
    nonce += 1;
  });

  test('leaves from our own address of its account only', async () => {
    const asked = await payout();
    await refused(withInput(asked, evmInput(hot('ETH'), nonce)), 'keys', /not the signer's address/);
    await refused(withInput(asked, { chain: 0 }), 'keys', /not the signer's address/);
    await refused(withInput(asked, { index: 1 }), 'keys', /not the signer's address/);
    await refused(withInput(asked, { xpub: signer.xpub('ETH') }), 'keys', /not the signer's address/);
  });

  test('calls the contract of the signer’s own settings only', async () => {
    const asked = await payout();
    await refused(request(asked, { evm: { contract: PAYEE } }), 'destination', /another contract/);
    await refused(request(asked, { evm: { contract: null } }), 'destination', /another contract/);
  });

  test('pays neither nobody, nor the token, nor ourselves', async () => {
    const zero = `0x${'0'.repeat(40)}`;
    for (const payee of [zero, CONTRACT, hot('USDT')])
      await refused(await payout(payee), 'destination', /no address that can be paid/);
    const asked = await payout();
    await refused(request(asked, { script: `0014${'aa'.repeat(20)}` }), 'destination', /no address that can be paid/);
  });

  test('pays no more for gas than the most, and charges its payout no more than it allows', async () => {
    const asked = await payout();
    await refused(request(asked, { evm: { maxFee: String(GAS.mostFee + 1n) } }), 'fee', /is the most/);
    await refused(request(asked, { evm: { tip: String(21n * GWEI) } }), 'fee', /is the most/);
    await refused(request(asked, { evm: { fee: String(FEE + 1n) } }), 'fee', /is its most/);
    await refused(withInput(asked, { amount: '50000001' }), 'amounts', /says otherwise/);
  });

  test('same_nonce: has the next nonce of its sender, and one of one payout is nobody else’s', async () => {
    const asked = await payout();
    await refused(withInput(asked, { vout: nonce + 1 }), 'conflict', /the next nonce/);
    await signing.sign(asked);
    const other = await payout();
    await refused(other, 'conflict', /belongs to batch/);
    nonce += 1;
    await refused(withInput({ ...asked, number: 2 }, { vout: nonce }), 'conflict', /shares no input/);
  });

  test('has the nonce after those that blocks have used without this signer, and leaves none else out', async () => {
    const asked = await payout();
    await signing.sign(asked);
    const later = withInput(await payout(), { vout: nonce + 3 });
    await refused(later, 'conflict', /the next nonce/);
    await signer.usedElsewhere('USDT', nonce + 1);
    await refused(later, 'conflict', /the next nonce/);
    await signer.usedElsewhere('USDT', nonce + 2);
    await signing.sign(later);
    nonce += 4;
  });

  test('is replaced at its nonce for an eighth more of its price and of its tip, to the same payee', async () => {
    const asked = await payout();
    await signing.sign(asked);
    nonce += 1;
    const dearer = (maxFee: bigint, tip = (GWEI * 9n) / 8n): TransactionToSign =>
      request({ ...asked, number: 2 }, { evm: { maxFee: String(maxFee), tip: String(tip) } });
    await refused(dearer((20n * GWEI * 9n) / 8n, (GWEI * 9n) / 8n - 1n), 'fee', /an eighth more/);
    await refused(dearer((20n * GWEI * 9n) / 8n - 1n), 'fee', /an eighth more/);
    await refused(request(dearer(23n * GWEI), { script: evmScript(`0x${'b2'.repeat(20)}`) }), 'payout', /another destination/);
    await signing.sign(dearer((20n * GWEI * 9n) / 8n));
  });
});

describe('a sweep', () => {
  test.each(['ETH', 'USDT'] as const)('of %s is signed once, and the same request gets the same bytes', async (currency) => {
    const asked = await sweep(currency);
    const first = await signing.sign(asked);
    expect(await signing.sign(asked)).toEqual(first);
  });

  test('goes to the address that payouts in its currency leave from, and nowhere else', async () => {
    for (const currency of ['ETH', 'USDT'] as const) {
      const asked = await sweep(currency);
      const other = currency === 'ETH' ? hot('USDT') : hot('ETH');
      for (const to of [PAYEE, other, signer.addressAt(currency, 0, index + 50)])
        await refused(request(asked, { script: evmScript(to) }), 'destination', /another address/);
    }
    const asked = await sweep('USDT');
    await refused(request(asked, { evm: { contract: PAYEE } }), 'destination', /another contract/);
  });

  test('leaves from an address of a transaction, and never from the one that payouts leave from', async () => {
    const asked = await sweep('ETH');
    await refused(withInput(asked, { ...evmInput(hot('ETH'), 0), chain: 1, index: 0 }), 'keys', /does not leave from chain 1/);
    await refused(withInput(asked, { index: index + 1 }), 'keys', /not the signer's address/);
    await refused(withInput(asked, { xpub: signer.xpub('USDT') }), 'keys', /not of the signer's account/);
  });

  test('burns no more than the dearest gas, and not most of what it moves', async () => {
    const asked = await sweep('ETH');
    const total = 10n ** 15n;
    const dear = { maxFee: String(40n * GWEI), tip: String(40n * GWEI), fee: String(21_000n * 40n * GWEI) };
    const amount = total - 21_000n * 40n * GWEI;
    const outputs = [
      { ...(asked.outputs[0] as TransactionToSign['outputs'][number]), amount: String(amount), total: String(total) },
    ];
    await refused(withInput(request({ ...asked, outputs }, { evm: dear }), { amount: String(total) }), 'fee', /of gas to move/);
    await refused(request(asked, { evm: { maxFee: String(GAS.mostFee + 1n) } }), 'fee', /is the most/);
    await refused(request(asked, { evm: { fee: '1' } }), 'fee', /its gas costs/);
    await refused(request(asked, { amount: 1n }), 'amounts', /would move/);
    await refused(withInput(asked, { amount: String(2n * ETHER) }), 'amounts', /is not what it moves/);
  });

  test('is one batch without payouts, at its lease, and not while payouts are stopped', async () => {
    const asked = await sweep('USDT');
    await refused({ ...asked, leaseEpoch: '2' }, 'lease', /is at lease 1/);
    await refused(
      { ...(await payout()), evm: asked.evm as Evm, inputs: asked.inputs, outputs: asked.outputs },
      'payout',
      /pays no payout/,
    );
    const other = await signer.insertBatch('USDT', 'payout', null);
    const outputs = [{ ...(asked.outputs[0] as TransactionToSign['outputs'][number]), payoutId: other }];
    await refused({ ...asked, batchId: other, outputs }, 'batch', /there is no sweep/);
    await tripBreaker(signer.db, { name: 'payouts', by: ['INV-7'], findings: ['a test'], atMs: signer.clock.nowMs });
    await refused(asked, 'stopped', /payouts are stopped/);
    await clearBreakers(signer.db, 'a test', signer.clock.nowMs);
    await signing.sign(asked);
  });

  test('of one address is mined once: a second one at its nonce, or another nonce for the same sweep, is refused', async () => {
    const asked = await sweep('ETH');
    await signing.sign(asked);
    const second = await sweep('ETH');
    await refused(second, 'conflict', /belongs to batch/);
    await refused(withInput({ ...asked, number: 2 }, { vout: 1 }), 'conflict', /shares no input/);
    await refused(withInput(second, { vout: 2 }), 'conflict', /the next nonce/);
    await signing.sign(withInput(second, { vout: 1 }));
  });

  test('counts with its gas for the limits of ether, and what it moves does not', async () => {
    signing = await signer.startEvm({
      ETH: { payout: null, hour: 10n ** 12n, day: null },
      USDT: { payout: 1n, hour: 1n, day: 1n },
    });
    await refused(await sweep('USDT'), 'limit', /would leave in an hour/);
    signing = await signer.startEvm({ USDT: { payout: 1n, hour: 1n, day: 1n } });
    await signing.sign(await sweep('USDT'));
    signing = await signer.startEvm();
  });
});

describe('ether for gas', () => {
  test('goes from ether’s own address to one of a token’s account at the index it names, and nowhere else', async () => {
    const asked = await topUp();
    for (const to of [PAYEE, signer.addressAt('ETH', 0, index), signer.addressAt('USDT', 0, index + 1), hot('USDT')])
      await refused(request(asked, { script: evmScript(to) }), 'destination', /no address of ours/);
    await refused(
      request(asked, { script: evmScript(signer.addressAt('ETH', 0, index)), evm: { payee: { currency: 'ETH', index } } }),
      'destination',
      /no address of ours/,
    );
    await refused(
      withInput(asked, { ...evmInput(signer.addressAt('ETH', 0, 3), 0), chain: 0, index: 3 }),
      'keys',
      /does not leave from chain 0/,
    );
    await signing.sign(asked);
    etherNonce += 1;
  });

  test('goes to the address that a token’s payouts leave from where the request says so, and to no other so', async () => {
    const asked = await topUp();
    const toHot = (currency: 'ETH' | 'USDT', payee: object): TransactionToSign =>
      request(asked, { script: evmScript(hot(currency)), evm: { payee: payee as NonNullable<Evm['payee']> } });
    await refused(toHot('USDT', { currency: 'USDT', index: 0 }), 'destination', /no address of ours/);
    await refused(toHot('ETH', { currency: 'ETH', index: 0, chain: 1 }), 'destination', /no address of ours/);
    await refused(
      request(asked, { script: evmScript(PAYEE), evm: { payee: { currency: 'USDT', index: 0, chain: 1 } } }),
      'destination',
      /no address of ours/,
    );
    await expect(signing.sign(toHot('USDT', { currency: 'USDT', index: 1, chain: 1 }))).rejects.toThrow(/index of the payee/);
    await expect(signing.sign(toHot('USDT', { currency: 'USDT', index: 0, chain: 0 }))).rejects.toThrow(/chain of the payee/);
    await signing.sign(toHot('USDT', { currency: 'USDT', index: 0, chain: 1 }));
    etherNonce += 1;
  });

  test('is at most what the dearest gas costs, and counts whole for the limits of ether', async () => {
    const asked = await topUp();
    const most = MOST_TOP_UP + 1n;
    await refused(withInput(request(asked, { amount: most }), { amount: String(most) }), 'fee', /for gas, and/);
    signing = await signer.startEvm({ ETH: { payout: ETHER / 1_000n, hour: null, day: null } });
    await refused(asked, 'limit', /the limit of one/);
    signing = await signer.startEvm();
    await signing.sign(asked);
    etherNonce += 1;
  });

  test('is of ether, and names its payee', async () => {
    const asked = await topUp();
    const { payee: _payee, ...unnamed } = asked.evm as Evm;
    await expect(signing.sign({ ...asked, evm: unnamed })).rejects.toThrow(/names its payee/);
  });
});
