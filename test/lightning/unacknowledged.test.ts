// A payment whose HTLC no channel lists: it may have left for somebody who has not said that he has it, and who gets it again with each connection.
// test/lightning/lnd-unacknowledged.test.ts has it on a real LND.
import { createServer } from 'node:http';
import { describe, expect, test } from 'vitest';
import type { PaymentFacts, TrackedPayment } from '../../src/core/lightning/payer.ts';
import { createLnd } from '../../src/outside/lightning/lnd.ts';
import { createLndPayer } from '../../src/outside/lightning/lnd-payer.ts';
import { closeServer, listen } from '../../src/sandbox/server.ts';

describe('what a node says of it', () => {
  const HASH = 'ab'.repeat(32);
  /** LND has six blocks to close the channel in. */
  const CLOSED_AFTER = 6;
  const part = (status: string, channel: string, until: number) => ({
    status,
    route: { total_time_lock: until - CLOSED_AFTER, hops: [{ chan_id: channel }, { chan_id: '9' }] },
  });
  const payment = { payment_hash: HASH, status: 'IN_FLIGHT', value_msat: '1000', payment_index: '1' };
  async function tracked(htlcs: readonly object[], held: readonly object[] = []): Promise<TrackedPayment> {
    const channel = (id: string, active: boolean) => ({ chan_id: id, active, pending_htlcs: [], zero_conf_confirmed_scid: '0' });
    // used before they were in a block: in lists they have the number of then
    const early = (id: string, active: boolean) => ({
      ...channel(`160${id}`, active),
      zero_conf_confirmed_scid: id,
      alias_scids: [`160${id}`, `161${id}`],
    });
    const answers: Record<string, unknown> = {
      '/v1/channels': {
        channels: [{ ...channel('1', true), pending_htlcs: held }, channel('2', false), early('4', true), early('5', false)],
      },
      '/v1/getinfo': { block_height: 500 },
    };
    const node = createServer((request, response) => {
      // it does not tell its clock
      response.sendDate = false;
      response.end(JSON.stringify(answers[request.url ?? ''] ?? { result: { ...payment, htlcs } }));
    });
    const url = `http://127.0.0.1:${await listen(node, 0)}`;
    const payer = createLndPayer(async () => ({ url, certificate: null, macaroon: '' }));
    const said = await payer.track(HASH);
    payer.close();
    await closeServer(node);
    return said;
  }

  test.each<[string, readonly object[], number | null]>([
    ['has left by a channel whose other side is away', [part('IN_FLIGHT', '2', 501)], 501],
    ['by one whose other side is there, and does not say that it has it', [part('IN_FLIGHT', '1', 501)], 501],
    ['also beside another', [part('IN_FLIGHT', '1', 502), part('IN_FLIGHT', '2', 501)], 502],
    ['also beside one that nobody takes any more', [part('IN_FLIGHT', '1', 499), part('IN_FLIGHT', '2', 501)], 501],
    ['which nobody takes any more', [part('IN_FLIGHT', '2', 500)], null],
    ['by the number of one that is in a block by now', [part('IN_FLIGHT', '5', 501)], 501],
    ['by the number that it had before', [part('IN_FLIGHT', '1605', 501)], 501],
    ['by another number that it had', [part('IN_FLIGHT', '1615', 501)], 501],
    ['by none', [part('IN_FLIGHT', '0', 501)], null],
    ['that is gone', [part('IN_FLIGHT', '3', 501)], null],
    ['by which it came back', [part('FAILED', '2', 501)], null],
    ['that it does not name', [{ status: 'IN_FLIGHT' }], null],
  ])('%s', async (_what, htlcs, until) => {
    const wanted = until === null ? { isPending: false } : { isPending: true, arrivesUntil: until };
    expect(await tracked(htlcs)).toEqual({ payment: expect.objectContaining({ status: 'in_flight' }), ...wanted });
  });

  test('of one that a channel lists it is not asked', async () => {
    const held = { incoming: false, hash_lock: Buffer.from(HASH, 'hex').toString('base64') };
    const said = await tracked([part('IN_FLIGHT', '1', 500), part('IN_FLIGHT', '2', 501)], [held]);
    expect(said).toEqual({ payment: expect.anything(), isPending: true });
  });
});

describe('what it says of parts that were taken', () => {
  const PREIMAGE = 'AB'.repeat(32);
  const part = (status: string, msat: number, feesMsat: number) => ({
    status,
    route: { total_amt_msat: String(msat), total_fees_msat: String(feesMsat), hops: [{ chan_id: '1' }] },
  });
  async function said(status: string, preimage: string, htlcs: readonly object[]): Promise<PaymentFacts> {
    const node = createServer((_request, response) => {
      const of = {
        payment_hash: 'ab'.repeat(32),
        value_msat: '7000',
        fee_msat: '10',
        payment_index: '1',
        failure_reason: 'NONE',
      };
      response.end(JSON.stringify({ payments: [{ ...of, status, payment_preimage: preimage, htlcs }] }));
    });
    const url = `http://127.0.0.1:${await listen(node, 0)}`;
    const payer = createLndPayer(async () => ({ url, certificate: null, macaroon: '' }));
    const [payment] = await payer.payments(0n);
    payer.close();
    await closeServer(node);
    return payment as PaymentFacts;
  }
  const NONE = '00'.repeat(32);
  const taken = part('SUCCEEDED', 3_505, 5);

  test.each<[string, Parameters<typeof said>, string | null, string | undefined]>([
    ['all of it, in two', ['SUCCEEDED', PREIMAGE, [taken, part('FAILED', 3_505, 5), taken]], PREIMAGE, '7000'],
    ['one, and the other came back', ['SUCCEEDED', PREIMAGE, [taken, part('FAILED', 3_500, 0)]], PREIMAGE, '3500'],
    ['one, while the other is under way', ['IN_FLIGHT', PREIMAGE, [taken, part('IN_FLIGHT', 3_500, 0)]], PREIMAGE, '3500'],
    ['none yet', ['IN_FLIGHT', NONE, [part('IN_FLIGHT', 7_000, 0)]], null, undefined],
    ['none', ['FAILED', NONE, [part('FAILED', 7_000, 0)]], null, undefined],
    ['which it does not list', ['SUCCEEDED', PREIMAGE, []], PREIMAGE, undefined],
    ['of which it does not say how much', ['SUCCEEDED', PREIMAGE, [{ status: 'SUCCEEDED' }]], PREIMAGE, undefined],
    [
      'of which it does not say the fees',
      ['SUCCEEDED', PREIMAGE, [{ ...taken, route: { total_amt_msat: '7000' } }]],
      PREIMAGE,
      undefined,
    ],
    ['of one of which it does not say how much', ['SUCCEEDED', PREIMAGE, [taken, { status: 'SUCCEEDED' }]], PREIMAGE, undefined],
  ])('%s', async (_what, of, preimage, takenMsat) => {
    const { preimage: shown, takenMsat: brought, isPartOpen } = await said(...of);
    expect([shown, brought]).toEqual([preimage?.toLowerCase() ?? null, takenMsat]);
    expect(isPartOpen).toBe(of[2].some((one) => 'status' in one && one.status === 'IN_FLIGHT'));
  });
});

describe('whether a channel holds a payment of its own', () => {
  const HASH = 'ab'.repeat(32);
  const htlc = { incoming: false, hash_lock: Buffer.from(HASH, 'hex').toString('base64'), forwarding_channel: '0' };
  test.each<[string, object, boolean]>([
    ['on its way out', htlc, true],
    ['without a word on where it came from', { ...htlc, forwarding_channel: undefined }, true],
    ['of another hash', { ...htlc, hash_lock: Buffer.from('cd'.repeat(32), 'hex').toString('base64') }, false],
    ['that comes', { ...htlc, incoming: true }, false],
    ["that is somebody else's on its way through", { ...htlc, forwarding_channel: '7', forwarding_htlc_index: '1' }, false],
  ])('%s', async (_what, listed, wanted) => {
    const node = createServer((_request, response) => {
      response.end(JSON.stringify({ channels: [{ pending_htlcs: [] }, { pending_htlcs: [listed] }] }));
    });
    const url = `http://127.0.0.1:${await listen(node, 0)}`;
    const port = createLnd(async () => ({ url, certificate: null, macaroon: '' }), { chain: 'regtest' });
    expect(await port.holds(HASH)).toBe(wanted);
    port.close();
    await closeServer(node);
  });
});
