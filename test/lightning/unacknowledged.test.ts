// A payment whose HTLC no channel lists: it may have left for somebody who went away before he said that he has it, and who gets it once he is back.
// test/lightning/lnd-unacknowledged.test.ts has it on a real LND.
import { createServer } from 'node:http';
import { describe, expect, test } from 'vitest';
import { createLnd } from '../../src/outside/lightning/lnd.ts';
import { createLndPayer } from '../../src/outside/lightning/lnd-payer.ts';
import { closeServer, listen } from '../../src/sandbox/server.ts';

describe('what a node says of it', () => {
  const HASH = 'ab'.repeat(32);
  const part = (status: string, channel: string, lockedTo: number) => ({
    status,
    route: { total_time_lock: lockedTo, hops: [{ chan_id: channel }, { chan_id: '9' }] },
  });
  const payment = { payment_hash: HASH, status: 'IN_FLIGHT', value_msat: '1000', payment_index: '1' };
  async function isPending(htlcs: readonly object[]): Promise<boolean> {
    const channel = (id: string, active: boolean) => ({ chan_id: id, active, pending_htlcs: [], zero_conf_confirmed_scid: '0' });
    // used before they were in a block: in lists they have the number of then
    const early = (id: string, active: boolean) => ({
      ...channel(`160${id}`, active),
      zero_conf_confirmed_scid: id,
      alias_scids: [`160${id}`, `161${id}`],
    });
    const answers: Record<string, unknown> = {
      '/v1/channels': { channels: [channel('1', true), channel('2', false), early('4', true), early('5', false)] },
      '/v1/getinfo': { block_height: 500 },
    };
    const node = createServer((request, response) => {
      response.end(JSON.stringify(answers[request.url ?? ''] ?? { result: { ...payment, htlcs } }));
    });
    const url = `http://127.0.0.1:${await listen(node, 0)}`;
    const payer = createLndPayer(async () => ({ url, certificate: null, macaroon: '' }));
    const tracked = await payer.track(HASH);
    payer.close();
    await closeServer(node);
    return tracked.isPending;
  }

  test.each<[string, readonly object[], boolean]>([
    ['has left by a channel whose other side is away', [part('IN_FLIGHT', '2', 501)], true],
    ['also beside another', [part('IN_FLIGHT', '1', 501), part('IN_FLIGHT', '2', 501)], true],
    ['which nobody takes any more', [part('IN_FLIGHT', '2', 500)], false],
    ['by the number of one that is in a block by now', [part('IN_FLIGHT', '5', 501)], true],
    ['by the number that it had before', [part('IN_FLIGHT', '1605', 501)], true],
    ['by another number that it had', [part('IN_FLIGHT', '1615', 501)], true],
    ['whose other side is there', [part('IN_FLIGHT', '1', 501)], false],
    ['also by another number', [part('IN_FLIGHT', '4', 501)], false],
    ['by none', [part('IN_FLIGHT', '0', 501)], false],
    ['that is gone', [part('IN_FLIGHT', '3', 501)], false],
    ['by which it came back', [part('FAILED', '2', 501)], false],
    ['that it does not name', [{ status: 'IN_FLIGHT' }], false],
  ])('%s', async (_what, htlcs, wanted) => {
    expect(await isPending(htlcs)).toBe(wanted);
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
