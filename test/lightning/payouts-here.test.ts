// Payouts to the invoice of another merchant here, whose worker is cut off between the node's cancel and the booking, or is late. On the simulated node, with
// a clock that the test moves.
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { cancelTransaction } from '../../src/flow/transactions/create-cancel-resolve.ts';
import { at, close, looks, MINUTE, open, status, toAnother } from './funded-payouts.ts';

beforeEach(() => open());
afterEach(close);

describe('one to the invoice of another merchant, whose worker has ended once the node had cancelled that', () => {
  async function cutOff() {
    const made = await toAnother();
    const port = at.ctx.ports.lightning!;
    const { cancelInvoice } = port;
    const killed = new Error('the process has ended');
    Object.assign(port, { cancelInvoice: (hash: string) => cancelInvoice(hash).then(() => Promise.reject(killed)) });
    await expect(at.look()).rejects.toThrow(killed);
    Object.assign(port, { cancelInvoice });
    expect(await port.invoice(await at.hashOf(made.made.transactionId))).toMatchObject({ state: 'cancelled' });
    expect(await status(made.id)).toBe('processing');
    return made;
  }

  test('pays it once its lease has ended', async () => {
    const { other, made, id } = await cutOff();
    await looks(1, 21_000);
    await at.work();
    expect([await status(id), (await at.path(made.transactionId)).at(-1)]).toEqual(['completed', 'succeeded']);
    expect([await at.available(), await at.balance(`merchant:${other}:available:BTC`)]).toEqual([490_000n, 10_000n]);
  });

  test('fails where the other merchant has cancelled it meanwhile', async () => {
    const { other, made, id } = await cutOff();
    await cancelTransaction(at.ctx, { merchantId: other, transactionId: made.transactionId });
    await looks(1, 21_000);
    expect(await at.payout(id)).toMatchObject({ status: 'failed', error: 'invoice_expired' });
    expect(await at.available()).toBe(500_000n);
  });

  test('fails where it has expired meanwhile, although its transaction has not timed out yet', async () => {
    const { made, id } = await cutOff();
    await looks(1, 16 * MINUTE);
    expect(await at.payout(id)).toMatchObject({ status: 'failed', error: 'invoice_expired' });
    expect(await at.available()).toBe(500_000n);
    await at.work();
    expect(await at.path(made.transactionId)).toEqual(['started', 'timedout']);
  });
});

test('one whose invoice has expired before anybody looked at it fails', async () => {
  const { made, id } = await toAnother();
  await looks(1, 16 * MINUTE);
  expect(await at.payout(id)).toMatchObject({ status: 'failed', error: 'invoice_expired' });
  await at.work();
  expect(await at.path(made.transactionId)).toEqual(['started', 'timedout']);
});
