// Who has stolen something: the database's password, or an API process with its key. The first gets nothing, the second no more than the
// signer's limits.
import { randomBytes } from 'node:crypto';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { approvalBytes, intentBytes } from '../../src/core/payouts/intent.ts';
import { openIntentKey } from '../../src/main/wiring/intent-key.ts';
import type { SignerLimits } from '../../src/signer/limits.ts';
import { newId, openTestSigner, payeeScript, requestFor, type TestSigner, type Wanted, WHOLE } from './setup.ts';

vi.setConfig({ testTimeout: 60_000 });
let at: TestSigner;
beforeEach(async () => {
  at = await openTestSigner();
});
afterEach(() => at.close());

const rule = (name: string) => ({ name: 'SigningRefused', rule: name });

describe("whoever has the database owner's password", () => {
  /** A thief writes rows, entries and batches as it likes; the inputs are ours, and known to everybody. */
  async function forged(batchId: string, change: Partial<Wanted> = {}): Promise<Wanted> {
    const wanted: Wanted = {
      id: newId('po'),
      currency: 'BTC',
      amount: WHOLE,
      feeMax: 50_000n,
      script: payeeScript(),
      merchantId: 66n,
      reimburses: null,
      batchId,
      ...change,
    };
    await at.fund(wanted.merchantId, 'BTC', wanted.amount + wanted.feeMax);
    await at.hold(wanted);
    return wanted;
  }
  const nothingWasSigned = async (): Promise<void> => {
    const signing = await at.start();
    expect((await signing.signed(0, null)).transactions).toEqual([]);
  };

  it('makes payout, hold, batch and a signature of its own: nothing is signed', async () => {
    const signing = await at.start();
    const batchId = await at.batch();
    const wanted = await forged(batchId);
    const own = await openIntentKey(`${at.folder}/thief`);
    await at.insertPayout(wanted, own.sign(intentBytes(at.intentOf(wanted))));
    const request = requestFor([wanted], [at.input(2n * WHOLE)]);
    await expect(signing.sign(request)).rejects.toMatchObject(rule('intent'));
    // under the name of the API's key, with its own signature, another's, or any bytes
    const { keyId } = at.intents.sign(new Uint8Array());
    const merchants = await at.payout({ batchId: await at.batch() });
    for (const signature of [
      own.sign(intentBytes(at.intentOf(wanted))).signature,
      at.intents.sign(intentBytes(at.intentOf(merchants))).signature,
      randomBytes(64),
      new Uint8Array(0),
    ]) {
      await at.owner.query('update payouts set intent_key = $2, intent = $3 where id = $1', [
        wanted.id,
        keyId,
        Buffer.from(signature),
      ]);
      await expect(signing.sign(request)).rejects.toMatchObject(rule('intent'));
    }
    await nothingWasSigned();
  });

  it("sends a merchant's payout elsewhere, or more of it: nothing is signed", async () => {
    const signing = await at.start();
    const payout = await at.payout({ batchId: await at.batch() });
    const script = payeeScript();
    await at.owner.query('update payouts set script = $2, destination = $3 where id = $1', [
      payout.id,
      Buffer.from(script, 'hex'),
      'mine',
    ]);
    await expect(signing.sign(requestFor([{ ...payout, script }], [at.input(WHOLE)]))).rejects.toMatchObject(rule('intent'));
    await expect(signing.sign(requestFor([payout], [at.input(WHOLE)]))).rejects.toMatchObject(rule('payout'));
    await nothingWasSigned();
  });

  it('lets a payout go that needs an approval: nothing is signed without one that an API has signed for this payout', async () => {
    const signing = await at.start();
    const wanted = await forged(await at.batch());
    const other = await at.payout({ batchId: await at.batch() });
    await at.insertPayout(wanted, at.intents.sign(intentBytes({ ...at.intentOf(wanted), needsApproval: true })));
    const request = requestFor([wanted], [at.input(2n * WHOLE)]);
    await expect(signing.sign(request)).rejects.toMatchObject(rule('intent'));
    await at.owner.query(`update payouts set needs_approval = true, approved_at = now(), approved_by = 'ann' where id = $1`, [
      wanted.id,
    ]);
    const approve = ({ keyId, signature }: { readonly keyId: string; readonly signature: Uint8Array }) =>
      at.owner.query('update payouts set approval_key = $2, approval = $3 where id = $1', [
        wanted.id,
        keyId,
        Buffer.from(signature),
      ]);
    await expect(signing.sign(request)).rejects.toMatchObject(rule('intent'));
    const own = await openIntentKey(`${at.folder}/thief`);
    const { network } = at.intentOf(wanted);
    for (const signature of [own.sign(approvalBytes(network, wanted.id)), at.intents.sign(approvalBytes(network, other.id))]) {
      await approve(signature);
      await expect(signing.sign(request)).rejects.toMatchObject({
        ...rule('intent'),
        message: expect.stringContaining('approval'),
      });
    }
    await nothingWasSigned();
    await approve(at.intents.sign(approvalBytes(network, wanted.id)));
    expect((await (await at.start()).sign(request)).txid).toMatch(/^[0-9a-f]{64}$/);
  });

  it("pays a merchant's payout a second time, under its id and under another: nothing more is signed", async () => {
    const signing = await at.start();
    const payout = await at.payout({ batchId: await at.batch() });
    await signing.sign(requestFor([payout], [at.input(WHOLE)]));
    const batchId = await at.batch();
    await at.owner.query('update payouts set batch_id = $2 where id = $1', [payout.id, batchId]);
    await expect(signing.sign(requestFor([{ ...payout, batchId }], [at.input(WHOLE)]))).rejects.toMatchObject(rule('conflict'));
    const copy = await forged(batchId, { ...payout, id: newId('po'), batchId: await at.batch() });
    await at.insertPayout(copy, at.intents.sign(intentBytes(at.intentOf(payout))));
    await expect(signing.sign(requestFor([copy], [at.input(WHOLE)]))).rejects.toMatchObject(rule('intent'));
  });

  it('takes the rest of an input as change of its own, or lets it be a fee: the change is ours, and fees are bounded', async () => {
    const signing = await at.start();
    const payout = await at.payout({ batchId: await at.batch(), feeMax: 20_000n });
    const request = requestFor([payout], [at.input(WHOLE)]);
    await expect(signing.sign({ ...request, change: null })).rejects.toMatchObject(rule('fee'));
    // an output without a payout has no place in a request
    const thiefs = { payoutId: 'po_thief', script: payeeScript(), amount: '1000' };
    await expect(signing.sign({ ...request, outputs: [...request.outputs, thiefs] })).rejects.toMatchObject(rule('payout'));
    const { raw } = await signing.sign({ ...request, ...{ change: { ...request.change!, script: thiefs.script } } });
    expect(raw).not.toContain(thiefs.script);
    expect(raw).toContain(at.script('BTC', 1, 7));
  });

  it('says in two requests two different amounts of two inputs, to join the signatures: the second is refused', async () => {
    const signing = await at.start();
    const payout = await at.payout({ batchId: await at.batch() });
    const [a, b] = [at.input(WHOLE), at.input(WHOLE)];
    const less = (input: typeof a) => ({ ...input, amount: (WHOLE / 2n).toString() });
    await signing.sign(requestFor([payout], [a, less(b)]));
    const second = requestFor([payout], [less(a), b], { number: 2, fee: 2_000n });
    await expect(signing.sign(second)).rejects.toMatchObject(rule('amounts'));
  });

  it('cannot write anything by the role of the signer', async () => {
    for (const statement of [
      "update payouts set status = 'completed', step = 'ended'",
      "insert into outgoing_batches (id, currency, state, fee_rate, due_at, created_at) values ('x', 'BTC', 'reserved', 1, now(), now())",
      "select ledger.post('x', 'deposit', '[]', now())",
      'select * from users',
      'select * from merchants',
      'delete from outgoing_attempts',
    ])
      await expect(at.readOnly.query({ text: statement }), statement).rejects.toThrow(/permission denied/);
  });
});

describe('whoever has taken over an API process', () => {
  const limits: SignerLimits = { BTC: { payout: WHOLE, hour: 3n * WHOLE, day: 5n * WHOLE } };
  const most = 20_000n;
  /** One payout after the other, each with everything that an API can make, until all are refused. */
  async function steal(amount: bigint, times: number): Promise<bigint> {
    const signing = await at.start(limits);
    let left = 0n;
    for (let n = 0; n < times; n++) {
      const payout = await at.payout({ batchId: await at.batch(), amount, feeMax: most, merchantId: 9n });
      const request = requestFor([payout], [at.input(2n * WHOLE)]);
      const outcome = await signing.sign(request).catch((error: unknown) => error);
      if (outcome instanceof Error) expect(outcome).toMatchObject(rule('limit'));
      else left += amount + 1_000n;
    }
    return left;
  }

  it('gets no payout above the limit of one, its share of the fee included', async () => {
    expect(await steal(WHOLE, 1)).toBe(0n);
    expect(await steal(WHOLE - 999n, 1)).toBe(0n);
    expect(await steal(WHOLE - 1_000n, 1)).toBe(WHOLE);
  });

  it('gets the limit of an hour, then of a day, and no more, over restarts and with a clock that is set back', async () => {
    expect(await steal(WHOLE - 1_000n, 8)).toBe(3n * WHOLE);
    at.clock.nowMs -= 7_200_000;
    expect(await steal(WHOLE / 2n, 2)).toBe(0n);
    at.clock.nowMs += 7_200_000 + 3_600_000 - 1;
    expect(await steal(1_000_000n, 2)).toBe(0n);
    at.clock.nowMs += 1;
    expect(await steal(WHOLE - 1_000n, 8)).toBe(2n * WHOLE);
    at.clock.nowMs += 20 * 3_600_000;
    expect(await steal(1_000_000n, 2)).toBe(0n);
    at.clock.nowMs += 3 * 3_600_000;
    expect(await steal(WHOLE - 1_000n, 8)).toBe(3n * WHOLE);
  });

  it('gets no more by many payouts in one transaction, nor by replacing it: a replacement counts what it adds', async () => {
    const signing = await at.start(limits);
    const batchId = await at.batch();
    const payouts: Wanted[] = [];
    for (let n = 0; n < 4; n++) payouts.push(await at.payout({ batchId, amount: WHOLE - most, feeMax: most }));
    const three = payouts.slice(0, 3);
    const input = at.input(5n * WHOLE);
    await expect(signing.sign(requestFor(payouts, [input]))).rejects.toMatchObject(rule('limit'));
    await at.owner.query("update payouts set batch_id = null, step = 'queued' where id = $1", [payouts[3]!.id]);
    const replaced = (number: number, fee: bigint) => requestFor(three, [input], { number, fee });
    await signing.sign(replaced(1, 1_000n));
    await signing.sign(replaced(2, 30_000n));
    // cheaper than the dearest: adds nothing, and takes nothing back
    await signing.sign(replaced(3, 2_000n));
    await signing.sign(replaced(4, 60_000n));
    // the limit is reached to the last unit: what adds nothing is still signed
    await signing.sign(replaced(5, 59_999n));
    const last = await at.payout({ batchId: await at.batch(), amount: 1_000n });
    await expect(signing.sign(requestFor([last], [at.input(WHOLE)], { fee: 0n }))).rejects.toMatchObject(rule('limit'));
  });

  it('is bounded in each currency by itself', async () => {
    const signing = await at.start({ BTC: limits.BTC!, LTC: { payout: null, hour: null, day: 1_000n } });
    const payout = await at.payout({ batchId: await at.batch({ currency: 'LTC' }), currency: 'LTC', amount: 1_001n });
    const request = requestFor([payout], [at.input(WHOLE, { currency: 'LTC' })], { fee: 0n });
    await expect(signing.sign(request)).rejects.toMatchObject({
      ...rule('limit'),
      message: expect.stringContaining('0.00001001 LTC would leave in a day, and the limit is 0.00001000 LTC'),
    });
    expect(await steal(WHOLE - 1_000n, 1)).toBe(WHOLE);
  });

  it('who asks for more than the limits gets nothing, and keeps nobody waiting while the Lightning node hangs', async () => {
    let answer: (hasFailed: boolean) => void = () => undefined;
    const hanging = new Promise<boolean>((resolve) => {
      answer = resolve;
    });
    const signing = await at.start(limits, () => hanging);
    const large = await at.payout({ batchId: await at.batch(), amount: 2n * WHOLE });
    const refused = signing.sign(requestFor([large], [at.input(3n * WHOLE)])).catch((error: unknown) => error);
    const other = await at.payout({ batchId: await at.batch() });
    const { txid } = await signing.sign(requestFor([other], [at.input(WHOLE)]));
    expect(txid).toMatch(/^[0-9a-f]{64}$/);
    answer(true);
    expect(await refused).toMatchObject(rule('limit'));
  });

  it('cannot make another network trust it, nor sign for a key that is no longer trusted', async () => {
    const { changeTrust } = await import('../../src/signer/intent-trust.ts');
    const { keyId } = at.intents.sign(new Uint8Array());
    await changeTrust(at.signerFolder, 'distrust', keyId);
    const signing = await at.start();
    const payout = await at.payout({ batchId: await at.batch() });
    await expect(signing.sign(requestFor([payout], [at.input(WHOLE)]))).rejects.toMatchObject(rule('intent'));
  });
});

describe('limits', () => {
  it('must be set for a currency on mainnet before anything leaves in it', async () => {
    const main = await openTestSigner({ network: 'mainnet' });
    try {
      const payout = await main.payout({ batchId: await main.batch() });
      const request = requestFor([payout], [main.input(WHOLE)]);
      await expect((await main.start()).sign(request)).rejects.toMatchObject({
        ...rule('limit'),
        message: expect.stringContaining('BURSAR_SIGNER_LIMITS names no limits for BTC'),
      });
      await (await main.start({ BTC: { payout: null, hour: null, day: WHOLE } })).sign(request);
    } finally {
      await main.close();
    }
  });
});
