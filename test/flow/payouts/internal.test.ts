// A payout to the address of another merchant's transaction here: an entry pays it, nothing leaves, and the transaction's rules hold as ever.
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { intentBytes } from '../../../src/core/payouts/intent.ts';
import { holdEntry, releaseEntry } from '../../../src/core/payouts/postings.ts';
import type { Context } from '../../../src/flow/context.ts';
import { setSettings } from '../../../src/flow/merchants/settings.ts';
import { formBatch } from '../../../src/flow/payouts/batches.ts';
import { requestPayout } from '../../../src/flow/payouts/bitcoin-request.ts';
import { approvePayout } from '../../../src/flow/payouts/cancel-and-approve.ts';
import { bookInternalPayouts, type InternalBooking } from '../../../src/flow/payouts/internal-payouts.ts';
import { cancelTransaction } from '../../../src/flow/transactions/create-cancel-resolve.ts';
import { isTrusted } from '../../../src/signer/intent-trust.ts';
import { recordCondition } from '../../../src/store/chain/node-conditions.ts';
import { postEntries } from '../../../src/store/ledger/ledger.ts';
import { createHeldPayouts } from '../../../src/worker/payouts/held-payouts.ts';
import { batchesOf, RATE } from '../../support/batches.ts';
import { OUTSIDE, owe, tellFee } from '../../support/funded.ts';
import { INTENT_KEY, newIntentKey } from '../../support/ports.ts';
import { openServiceOnDatabase, type ServiceOnDatabase } from '../../support/service-on-database.ts';

const EARNED = 3_000_000n;
const KEY = INTENT_KEY.sign(new Uint8Array()).keyId;
const troubles: string[] = [];
let trusted: readonly string[] | null;
const booking: InternalBooking = {
  intents: async () =>
    trusted === null ? null : (intent, keyId, signature) => isTrusted(trusted ?? [], intent, keyId, signature),
  onTrouble: (what) => troubles.push(what),
};
let service: ServiceOnDatabase;
let ctx: Context;
let other: bigint;
let batches: ReturnType<typeof batchesOf>;
beforeEach(async () => {
  trusted = [KEY];
  troubles.length = 0;
  service = await openServiceOnDatabase();
  ({ ctx } = service);
  await tellFee(ctx);
  batches = batchesOf(service);
  await batches.earn(3);
  other = await service.openShop('other');
});
afterEach(() => service.drop());

/** A transaction of the other merchant, and what pays it. */
async function invoice(usd = 1_000_00n): Promise<{ id: string; address: string; due: bigint }> {
  const { transactionId: id } = await service.create(usd, 'BTC', other);
  const { rows } = await service.admin.query('select address, amount_due from transactions where id = $1', [id]);
  return { id, address: rows[0].address, due: BigInt(rows[0].amount_due) };
}
const btc = (minor: bigint): string => `${minor / 100_000_000n}.${(minor % 100_000_000n).toString().padStart(8, '0')}`;
const pay = (destination: string, amount: string, merchantId = service.merchantId) =>
  requestPayout(ctx, { merchantId, amount, destination });
const available = (merchantId: bigint) => service.balance(`merchant:${merchantId}:available:BTC`);
const status = async (id: string): Promise<string> => (await service.row(id)).status as unknown as string;
const booked = () => bookInternalPayouts(ctx, booking).then(() => service.judge());
/** Two nodes hold all blocks that were read. */
async function agree(): Promise<void> {
  const { rows } = await service.admin.query(
    `select height, hash from blocks where currency = 'BTC' order by height desc limit 1`,
  );
  const ready = { state: 'ready', ...rows[0], tipTimeMs: service.now(), peers: 2 } as const;
  await recordCondition(ctx.db, 'BTC', { ...ready, agreement: { state: 'agreed', ...rows[0] } }, service.now());
}
const green = async () => expect(await service.findings()).toEqual([]);

describe('a payout to a transaction of another merchant', () => {
  test('costs no fee, pays it at once and for good, and nothing moves on the chain', async () => {
    const { id, address, due } = await invoice();
    const made = await pay(address, btc(due));
    expect(made).toMatchObject({ status: 'processing', feeMax: 0n });
    expect(await formBatch(ctx, 'BTC', RATE)).toEqual({ outcome: 'nothing' });
    await green();
    await bookInternalPayouts(ctx, booking);
    expect(await batches.row(made.id)).toMatchObject({ status: 'completed', fee: '0', batch_id: null });
    await green();
    await service.judge();
    expect(await status(id)).toBe('succeeded');
    expect([await available(service.merchantId), await available(other)]).toEqual([EARNED - due, due]);
    expect(await service.balance('asset:chain:BTC')).toBe(EARNED);
    await green();
    await booked();
    await service.mine(8);
    await service.judge();
    expect(await available(other)).toBe(due);
    await green();
  });

  test('that is large is credited when two nodes hold the chain again, also after a reorganisation', async () => {
    await service.mine(1);
    await agree();
    const { id, address, due } = await invoice(2_000_00n);
    await pay(address, btc(due));
    await service.vanish('BTC', 1);
    await booked();
    expect(await status(id)).toBe('pending');
    await agree();
    await service.judge();
    expect(await status(id)).toBe('succeeded');
    await green();
  });

  test('of all leaves nothing, and what is above the price lies in suspense', async () => {
    const { id, address, due } = await invoice();
    expect(await pay(address, 'all')).toMatchObject({ amount: EARNED });
    await booked();
    expect([await available(service.merchantId), await available(other)]).toEqual([0n, due]);
    expect([await status(id), await service.balance(`suspense:${id}:BTC`)]).toEqual(['succeeded', EARNED - due]);
    await green();
  });

  test('that comes after a cancel is in review, like every late payment', async () => {
    const { id, address, due } = await invoice();
    await cancelTransaction(ctx, { merchantId: other, transactionId: id });
    await pay(address, btc(due));
    await booked();
    expect([await status(id), await available(other)]).toEqual(['review', 0n]);
    await green();
  });

  test('waits while its merchant owes something or payouts are stopped, as others do', async () => {
    const { id, address, due } = await invoice();
    const made = await pay(address, btc(due));
    await owe(ctx, service.merchantId, 5n);
    await booked();
    await createHeldPayouts(ctx, (_id, error) => expect(error).toBeNull()).run();
    expect(await batches.row(made.id)).toMatchObject({ status: 'processing', held_reason: 'receivable' });
    expect(await status(id)).toBe('started');
    await owe(ctx, service.merchantId, -5n);
    await createHeldPayouts(ctx, (_id, error) => expect(error).toBeNull()).run();
    await booked();
    expect(await status(id)).toBe('succeeded');
  });

  test('is booked once, by any number of workers', async () => {
    const { address, due } = await invoice();
    const made = await Promise.all([pay(address, btc(due)), pay(address, btc(due))]);
    await Promise.all([bookInternalPayouts(ctx, booking), bookInternalPayouts(ctx, booking), bookInternalPayouts(ctx, booking)]);
    await service.judge();
    for (const { id } of made) expect((await batches.row(id)).status).toBe('completed');
    expect(await available(service.merchantId)).toBe(EARNED - 2n * due);
    expect(await available(other)).toBe(due);
    await green();
  });

  test('whose booking fails is named and tried again, and holds up no other', async () => {
    const [bad, good] = [await invoice(), await invoice()];
    const [failing] = [await pay(bad.address, btc(bad.due)), await pay(good.address, btc(good.due))];
    await service.admin.query(`alter table payments add constraint refuses check (paid_by <> '${failing.id}')`);
    expect(await bookInternalPayouts(ctx, booking)).toBe(true);
    await service.judge();
    const said = expect.stringContaining(`payout ${failing.id} cannot be booked: `);
    expect([await status(bad.id), await status(good.id), ...troubles]).toEqual(['started', 'succeeded', said]);
    await service.admin.query('alter table payments drop constraint refuses');
    expect([await bookInternalPayouts(ctx, booking), await service.findings()]).toEqual([false, []]);
  });

  test('can be paid out again, and the outputs that the first merchant has earned pay for it', async () => {
    const { address, due } = await invoice();
    await pay(address, btc(due));
    await booked();
    const { id } = await requestPayout(ctx, { merchantId: other, amount: 'all', destination: OUTSIDE });
    const batch = await batches.formed();
    expect(batch.payouts.map((payout) => payout.id)).toEqual([id]);
    await batches.mined(batch, await batches.signed(batch), 1);
    await green();
  });
});

test("one's own address is refused, and so is one of another currency", async () => {
  const { transactionId } = await service.create(1_000_00n);
  const own = (await service.admin.query('select address from transactions where id = $1', [transactionId])).rows[0].address;
  await expect(pay(own, '0.001')).rejects.toMatchObject({ code: 'invalid_destination' });
  const { id, address } = await invoice();
  await service.admin.query(`update transactions set currency = 'LTC' where id = $1`, [id]);
  await expect(pay(address, '0.001')).rejects.toMatchObject({ code: 'invalid_destination' });
});

describe('whoever has the password of the database', () => {
  /** A payout of the first merchant to a transaction of the other one, with its hold, as the service's role can write it. */
  async function forge(to: { id: string; address: string; due: bigint }, own = INTENT_KEY): Promise<string> {
    const id = 'payout_forged';
    const { rows } = await service.admin.query(`select encode(script, 'hex') as script from transactions where id = $1`, [to.id]);
    const createdAtMs = service.now();
    const asked = { network: ctx.network, payoutId: id, merchantId: service.merchantId, method: 'bitcoin', currency: 'BTC' };
    const whole = { ...asked, amount: to.due, feeMax: 0n, createdAtMs, reimburses: null, internalTo: to.id };
    // he has a key of his own, and not the API's
    const { keyId, signature } = own.sign(intentBytes({ ...whole, destination: own === INTENT_KEY ? '00' : rows[0].script }));
    await ctx.db.query({
      text: `insert into payouts (id, merchant_id, method, amount_text, currency, amount, fee_max, destination, script, status, step, intent_key, intent,
                                  created_at, internal_to)
             values ($1, $2, 'bitcoin', $3::text, 'BTC', $3::text::numeric, 0, $4, decode($5, 'hex'), 'processing', 'queued', $6, $7, $8, $9)`,
      values: [
        id,
        service.merchantId,
        String(to.due),
        to.address,
        rows[0].script,
        keyId,
        signature,
        new Date(createdAtMs),
        to.id,
      ],
    });
    const hold = holdEntry({
      id,
      merchantId: service.merchantId,
      currency: 'BTC',
      amount: to.due,
      feeMax: 0n,
      reimburses: null,
    });
    await postEntries(ctx.db, [{ entry: hold, transactionId: null, payoutId: id, atMs: createdAtMs }]);
    return id;
  }
  const stopped = async (): Promise<boolean> =>
    (await service.admin.query('select from breakers where cleared_at is null')).rows.length > 0;
  async function nothingMoves(id: string, invoiceId: string): Promise<void> {
    await booked();
    expect(await batches.row(id)).toMatchObject({ status: 'pending', step: 'held', held_reason: 'approval' });
    expect([await status(invoiceId), await available(other)]).toEqual(['started', 0n]);
    expect(troubles.join()).toContain(id);
  }

  test('cannot pay a transaction by a row and a hold of his own: it waits, and payouts stop', async () => {
    const to = await invoice();
    await nothingMoves(await forge(to), to.id);
    expect(await stopped()).toBe(true);
  });

  test('cannot do it by a key of his own either: it waits for an operator, alone', async () => {
    const to = await invoice();
    await nothingMoves(await forge(to, newIntentKey()), to.id);
    expect(await stopped()).toBe(false);
    const more = await invoice();
    await pay(more.address, btc(more.due));
    await booked();
    expect(await status(more.id)).toBe('succeeded');
  });

  test('cannot lead a signed one to another transaction', async () => {
    const to = await invoice();
    const made = await pay(to.address, btc(to.due));
    const his = await invoice();
    await service.admin.query('update payouts set internal_to = $1 where id = $2', [his.id, made.id]);
    await nothingMoves(made.id, his.id);
    expect(await stopped()).toBe(true);
  });

  test('cannot give a transaction another address after it was paid', async () => {
    const to = await invoice();
    const made = await pay(to.address, btc(to.due));
    await ctx.db.query({ text: `update transactions set script = '\\x00' where id = $1`, values: [to.id] });
    await nothingMoves(made.id, to.id);
    expect(await stopped()).toBe(true);
  });

  test('cannot approve one that waits for its approval, nor say that it needs none', async () => {
    const to = await invoice();
    const scopes = new Set(['payouts'] as const);
    await setSettings(ctx, { merchantId: service.merchantId, scopes, change: { payoutApprovalAbove: '1.00' } });
    const made = await pay(to.address, btc(to.due));
    const goes = `status = 'processing', step = 'queued', held_reason = null, approved_at = now(), approved_by = 'ann'`;
    await ctx.db.query({ text: `update payouts set ${goes} where id = $1`, values: [made.id] });
    await nothingMoves(made.id, to.id);
    expect(await stopped()).toBe(false);
    await approvePayout(ctx, { payoutId: made.id, by: 'ann' });
    await booked();
    expect(await status(to.id)).toBe('succeeded');
  });

  test('cannot have one booked whose hold was given back', async () => {
    const to = await invoice();
    const made = await pay(to.address, btc(to.due));
    const entry = releaseEntry({ ...made, currency: 'BTC', reimburses: null }, 0n);
    await postEntries(ctx.db, [{ entry, transactionId: null, payoutId: made.id, atMs: service.now() }]);
    await nothingMoves(made.id, to.id);
    expect(await stopped()).toBe(true);
  });
});

test('nothing is booked while the signer does not say which APIs are trusted', async () => {
  const to = await invoice();
  const made = await pay(to.address, btc(to.due));
  trusted = null;
  await booked();
  expect(await batches.row(made.id)).toMatchObject({ status: 'processing', step: 'queued' });
  expect(troubles).toEqual(['payouts to transactions here wait: the signer does not say which APIs are trusted']);
  trusted = [];
  await booked();
  expect(await batches.row(made.id)).toMatchObject({ status: 'pending', held_reason: 'approval' });
  trusted = [KEY];
  await service.wait(60_000);
  await createHeldPayouts(ctx, (_id, error) => expect(error).toBeNull()).run();
  await booked();
  expect(await status(to.id)).toBe('succeeded');
});
