// Every rule of the signer: a request that keeps them all is signed, and one that breaks a single one is refused by that rule's name.
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { UTXO_CODES } from '../../src/core/currency.ts';
import { intentBytes } from '../../src/core/payouts/intent.ts';
import { completeEntries, releaseEntry } from '../../src/core/payouts/postings.ts';
import type { TransactionToSign } from '../../src/core/signer-wire.ts';
import { openIntentKey } from '../../src/main/wiring/intent-key.ts';
import type { Signing } from '../../src/signer/signing.ts';
import { postEntries } from '../../src/store/ledger/ledger.ts';
import { asking } from './asking.ts';
import { newId, openTestSigner, payeeScript, requestFor, type TestSigner, type Wanted, WHOLE } from './setup.ts';

vi.setConfig({ testTimeout: 60_000 });
let at: TestSigner;
let signing: Signing;
beforeAll(async () => {
  at = await openTestSigner();
  signing = await at.start();
});
afterAll(() => at.close());

const { ready, refused } = asking(
  () => at,
  () => signing,
);

describe('a request that keeps every rule', () => {
  it('is signed, for several payouts and with change to a key of the signer', async () => {
    const batchId = await at.batch();
    const payouts = [await at.payout({ batchId }), await at.payout({ batchId, merchantId: 2n })];
    const signed = await signing.sign(requestFor(payouts, [at.input(WHOLE), at.input(WHOLE, { chain: 1, index: 9 })]));
    expect(signed).toMatchObject({ fee: '1000', request: { batchId, number: 1 } });
    expect(signed.raw).toContain(`160014${at.script('BTC', 1, 7).slice(4)}`);
  });
});

describe('change', () => {
  it('goes to an address that whoever has the seed alone finds again', async () => {
    const { request } = await ready();
    const to = (index: number) => ({ ...request, change: { index, amount: '1000' } });
    await refused(to(2 ** 31 - 1), 'change', /to address 2147483647 of our own/);
  });
});

describe('a payout', () => {
  it('must be in the database', async () => {
    const { request } = await ready();
    const [output] = request.outputs;
    await refused({ ...request, outputs: [{ ...output!, payoutId: 'po_none' }] }, 'payout', /is not in the database/);
  });

  it.each([
    ["status = 'pending', step = 'held'", /is pending, held/],
    ["step = 'queued'", /is processing, queued/],
    ["status = 'completed', step = 'ended'", /is completed, ended/],
    ["status = 'failed', step = 'ended', error = 'cancelled'", /is failed, ended/],
    ["method = 'usdt'", /is paid by usdt/],
    ["currency = 'LTC'", /in LTC/],
    ['batch_id = null', /is not of this batch/],
  ])('must be as it is when it is in a batch: not %s', async (change, about) => {
    const { payout, request } = await ready();
    await at.owner.query(`update payouts set ${change} where id = $1`, [payout.id]);
    await refused(request, 'payout', about);
  });

  it('gets its own amount at its own destination', async () => {
    const { request } = await ready();
    const [output] = request.outputs;
    const less = { ...request, outputs: [{ ...output!, amount: (BigInt(output!.amount) - 1n).toString() }] };
    await refused(less, 'payout', /another destination or amount/);
    await refused({ ...request, outputs: [{ ...output!, script: payeeScript() }] }, 'payout', /another destination or amount/);
  });

  it('is paid once in a transaction', async () => {
    const { request } = await ready();
    await refused({ ...request, outputs: [...request.outputs, ...request.outputs], change: null }, 'payout', /stands twice/);
  });

  it('goes to a script that nodes relay', async () => {
    const { request } = await ready({ script: '51' });
    await refused(request, 'destination', /no standard form/);
  });

  it.each(UTXO_CODES.filter((code) => code !== 'BTC'))(
    'by bitcoin is an amount of satoshi: not the same number of %s',
    async (currency) => {
      const payout = await at.payout({ batchId: await at.batch({ currency }), currency, reimburses: null });
      const { input, previous } = at.madeOutput(currency, WHOLE, { chain: 0, index: 4 });
      await refused(requestFor([payout], [input], { previous: [previous] }), 'payout', /is paid by bitcoin in/);
      const back = await at.payout({ batchId: await at.batch({ currency }), currency });
      await signing.sign(requestFor([back], [input], { previous: [previous] }));
    },
  );

  it('is paid with all others of its batch', async () => {
    const { payout, request } = await ready();
    const other = await at.payout({ batchId: payout.batchId });
    await refused(request, 'complete', new RegExp(`has payout ${other.id} too`));
  });
});

describe('an intent', () => {
  it.each([
    ['amount', { amount: WHOLE / 2n }],
    ['fee_max', { feeMax: 90_000n }],
    ['script', { script: payeeScript() }],
    ['merchant', { merchantId: 77n }],
  ])('covers the %s: a changed row is not what the API has signed', async (_, change) => {
    const batchId = await at.batch();
    const before: Wanted = {
      ...{
        id: newId('po'),
        currency: 'BTC',
        amount: WHOLE / 10n,
        feeMax: 20_000n,
        script: payeeScript(),
        merchantId: 1n,
        reimburses: null,
      },
      batchId,
    };
    const changed: Wanted = { ...before, ...change };
    await at.fund(changed.merchantId, 'BTC', changed.amount + changed.feeMax);
    await at.hold(changed);
    await at.insertPayout(changed, at.intents.sign(intentBytes(at.intentOf(before))));
    await refused(requestFor([changed], [at.input(WHOLE)]), 'intent', /not what its API has signed/);
  });

  it('is of this network, and of a key that is trusted', async () => {
    const batchId = await at.batch();
    const wanted = (await ready()).payout;
    const foreign: Wanted = { ...wanted, id: newId('po'), batchId };
    await at.fund(1n, 'BTC', WHOLE);
    await at.hold(foreign);
    await at.insertPayout(foreign, at.intents.sign(intentBytes({ ...at.intentOf(foreign), network: 'mainnet' })));
    await refused(requestFor([foreign], [at.input(WHOLE)]), 'intent', /not what its API has signed/);
    const stranger = await openIntentKey(`${at.folder}/other`);
    const payout = await at.payout({ batchId: await at.batch() }, stranger);
    await refused(requestFor([payout], [at.input(WHOLE)]), 'intent', /an API that is not trusted/);
  });
});

describe('a hold', () => {
  async function without(held: bigint | null): Promise<TransactionToSign> {
    const wanted = { ...(await ready()).payout, id: newId('po'), batchId: await at.batch() };
    if (held !== null) {
      await at.fund(1n, 'BTC', WHOLE);
      await at.hold({ ...wanted, amount: held });
    }
    await at.insertPayout(wanted, at.intents.sign(intentBytes(at.intentOf(wanted))));
    return requestFor([wanted], [at.input(WHOLE)]);
  }
  it('exists', async () => refused(await without(null), 'hold', /has no hold/));
  it('is of the amount and the highest fee', async () => {
    await refused(await without(WHOLE / 10n - 1n), 'hold', /has no hold/);
    await refused(await without(WHOLE / 10n + 1n), 'hold', /has no hold/);
  });
  it('is of the merchant and the currency', async () => {
    const wanted = { ...(await ready()).payout, id: newId('po'), batchId: await at.batch() };
    await at.fund(5n, 'BTC', WHOLE);
    await at.hold({ ...wanted, merchantId: 5n });
    await at.insertPayout(wanted, at.intents.sign(intentBytes(at.intentOf(wanted))));
    await refused(requestFor([wanted], [at.input(WHOLE)]), 'hold', /has no hold/);
  });
  it('was neither released nor paid out', async () => {
    const { payout, request } = await ready();
    const entry = releaseEntry(payout, 0n);
    await postEntries(at.db, [{ entry, transactionId: null, atMs: at.clock.nowMs }]);
    await refused(request, 'hold', /was released or paid out/);
    const other = await ready();
    const entries = completeEntries(other.payout, 500n, 500n, 0n).map((one) => ({
      ...one,
      postings: one.postings.map((line) => ({ ...line, account: line.account.replace(':outbound', '') })),
    }));
    await postEntries(
      at.db,
      entries.map((one) => ({ entry: one, transactionId: null, atMs: at.clock.nowMs })),
    );
    await refused(other.request, 'hold', /was released or paid out/);
  });
});

describe('a batch', () => {
  it.each(['mined', 'final', 'dead'])('that is %s gets no signature', async (state) => {
    const { payout, request } = await ready();
    await at.owner.query('update outgoing_batches set state = $2 where id = $1', [payout.batchId, state]);
    await refused(request, 'batch', /that is reserved or signed/);
  });
  it('must exist, in the currency of the request', async () => {
    const { request } = await ready();
    await refused({ ...request, batchId: 'batch_none' }, 'batch', /there is no batch/);
    const payout = await at.payout({ batchId: await at.batch({ currency: 'LTC' }) });
    await refused(requestFor([payout], [at.input(WHOLE)]), 'batch', /of BTC/);
  });
  it.each(['0', '2'])('signs for the worker that has its lease: not for epoch %s', async (leaseEpoch) => {
    const { request } = await ready();
    await refused({ ...request, leaseEpoch }, 'lease', /is at lease 1/);
  });
});

describe('an input', () => {
  it('stands once, and is of our own account of that currency', async () => {
    const { payout } = await ready();
    const input = at.input(WHOLE);
    await refused(requestFor([payout], [input, input]), 'keys', /stands twice/);
    const foreign = { ...at.input(WHOLE), xpub: at.xpubOf('LTC') };
    await refused(requestFor([payout], [foreign]), 'keys', /not the signer's account/);
    await refused(requestFor([payout], [input, foreign]), 'keys', /not the signer's account/);
  });

  it('keeps the amount and the key that were said of it first', async () => {
    const { payout, request } = await ready();
    await signing.sign(request);
    const [input] = request.inputs;
    const again = (change: Partial<typeof input>) =>
      requestFor([payout], [{ ...input!, ...change }, at.input(WHOLE)], { number: 2, fee: 2_000n });
    await refused(again({ amount: (2n * WHOLE).toString() }), 'amounts', /another amount or key/);
    await refused(again({ index: 4 }), 'amounts', /another amount or key/);
    await refused(again({ chain: 1 }), 'amounts', /another amount or key/);
    await signing.sign(again({}));
  });
});

describe('a fee', () => {
  it('is not negative', async () => {
    const { payout } = await ready();
    await refused(requestFor([payout], [at.input(payout.amount - 1n)], { change: null }), 'fee', /more than the inputs/);
  });
  it('is all that is left where nothing comes back', async () => {
    for (const fee of [0n, 777n]) {
      const { payout } = await ready();
      const request = requestFor([payout], [at.input(payout.amount + fee)], { change: null });
      expect(await signing.sign(request)).toMatchObject({ fee: fee.toString() });
    }
  });
  it('is divided among the payouts, and none pays more than its most', async () => {
    const batchId = await at.batch();
    const payouts = [await at.payout({ batchId, feeMax: 10_000n }), await at.payout({ batchId, feeMax: 9_999n })];
    const input = at.input(WHOLE);
    await refused(requestFor(payouts, [input], { fee: 20_000n }), 'fee', /would pay 10000 of the fee, and 9999 is its most/);
    await signing.sign(requestFor(payouts, [input], { fee: 19_999n }));
  });
  it('is at most 500 minor units a virtual byte', async () => {
    const payout = await at.payout({ batchId: await at.batch(), feeMax: WHOLE });
    // one P2WPKH input, two P2WPKH outputs
    const most = 500n * 141n;
    const next = (fee: bigint) => requestFor([payout], [at.input(WHOLE)], { fee });
    await refused(next(most + 1n), 'fee', /is above 70500, which is the highest rate/);
    await signing.sign(next(most));
  });
});
