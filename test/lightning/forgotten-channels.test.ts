// A node that is put back to before it had a channel has forgotten the channel too, and shows nothing of it in any list. What was closed before a payout was
// requested says nothing of it. On a simulated node with a clock that the test moves.
import { createServer } from 'node:http';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { createLnd } from '../../src/outside/lightning/lnd.ts';
import { closeServer, listen } from '../../src/sandbox/server.ts';
import { channelsSince } from '../../src/store/lightning/channels.ts';
import {
  AMOUNT,
  at,
  clock,
  close,
  engine,
  invoice,
  looks,
  MINUTE,
  open,
  outgoing,
  pass,
  reached,
  status,
  unheard,
} from './funded-payouts.ts';
import { bothPutBack } from './put-back.ts';

describe('with a node that is put back', () => {
  beforeEach(() => open());
  afterEach(close);
  const own = () => engine.node().own;
  /** A payout, and what puts the node back to before it had a channel that it has now. */
  async function requested() {
    own().move(2_000_000);
    const putBack = engine.backup();
    own().open(1_000_000);
    await looks(1, 21_000);
    const to = invoice('hold');
    const { id } = await at.request(to.request, AMOUNT);
    return { id, hash: to.hash, putBack };
  }

  test('to before it had a channel, one of which no answer came is neither asked for again nor failed', async () => {
    const { id, hash, putBack } = await requested();
    await at.look(unheard());
    await putBack();
    await reached();
    await looks(3, 2 * MINUTE);
    expect(outgoing().payment(hash)).toBeNull();
    expect(await at.payout(id)).toMatchObject({ status: 'processing', heldReason: 'unknown_outcome' });
    // what is requested from then on has nothing to do with it
    await looks(1, 62 * MINUTE);
    const later = await at.request(invoice('fail').request, AMOUNT);
    await at.look(unheard());
    await looks(3, 2 * MINUTE);
    expect(await status(later.id)).toBe('failed');
  });

  test('to before it had a channel, and the database to before a payout was sent, it is not asked for again', async () => {
    const { id, hash, putBack } = await requested();
    const restored = await bothPutBack(
      async () => {
        await at.look();
        expect(outgoing().payment(hash)?.status).toBe('IN_FLIGHT');
      },
      { putBack },
    );
    await restored.looks(1, 16_000);
    expect(outgoing().payment(hash)).toBeNull();
    const { rows } = await restored.db.query<{ reason: string }>({
      text: 'select held_reason as reason from payouts where id = $1',
      values: [id],
    });
    expect(rows).toEqual([{ reason: 'unknown_outcome' }]);
    await restored.end();
  });

  test('to before it had a channel, and the database too, what the signer knows to have been paid by it is not asked for again', async () => {
    own().move(2_000_000);
    const to = invoice('hold');
    const { id } = await at.request(to.request, AMOUNT);
    const putBack = engine.backup();
    const restored = await bothPutBack(
      async () => {
        own().open(1_000_000);
        await at.look();
        expect(outgoing().payment(to.hash)?.status).toBe('IN_FLIGHT');
      },
      { putBack },
    );
    await restored.looks(3, 2 * MINUTE);
    expect(outgoing().payment(to.hash)).toBeNull();
    expect(await restored.seen(id)).toMatchObject({ status: 'processing', heldReason: 'unknown_outcome' });
    await restored.end();
  });

  test('a channel is kept also while others have the node pay all the time', async () => {
    own().move(2_000_000);
    const point = own().open(1_000_000);
    for (let paymentIndex = 100; paymentIndex < 104; paymentIndex++) {
      pass(16_000);
      await at.look({ node: async () => ({ ...(await at.paying.node()), paymentIndex: String(paymentIndex) }) });
    }
    expect((await channelsSince(at.ctx.db, engine.node().identity, clock.nowMs)).had).toContain(point);
  });

  test('what was closed an hour before a payout is known to say nothing of it', async () => {
    own().move(2_000_000);
    const point = own().open(1_000_000);
    await looks(1, 21_000);
    const { identity } = engine.node();
    const known = () => channelsSince(at.ctx.db, identity, clock.nowMs);
    expect((await known()).had).toContain(point);
    own().close(point, 0);
    await looks(1, 21_000);
    expect((await known()).had).toContain(point);
    await looks(1, 61 * MINUTE);
    expect(await known()).toMatchObject({ had: [expect.any(String)], closedBefore: [point] });
  });
});

describe('what the lists of a node say of its channels', () => {
  const point = (n: number): string => `${String(n).repeat(64)}:0`;
  const pendingOf = (n: number, more = {}) => [{ channel: { channel_point: point(n), ...more } }];
  type Lists = { open?: readonly object[]; pending?: object; closed?: readonly object[] };
  async function says(
    { open: channels = [], pending = {}, closed = [] }: Lists,
    known?: { had?: string[]; closedBefore?: string[] },
    run?: { readonly hasRunOn: boolean; readonly areMet: boolean },
  ) {
    const answers: Record<string, unknown> = {
      '/v1/channels': { channels },
      '/v1/channels/pending': pending,
      '/v1/channels/closed': { channels: closed },
      '/v1/getinfo': { block_height: 1_000 },
    };
    const node = createServer((request, response) => void response.end(JSON.stringify(answers[request.url ?? ''])));
    const url = `http://127.0.0.1:${await listen(node, 0)}`;
    const lnd = createLnd(async () => ({ url, certificate: null, macaroon: '' }), { chain: 'regtest' });
    const said = await lnd.mayBeOlder(10 * MINUTE, { had: [], closedBefore: [], ...known }, run);
    lnd.close();
    await closeServer(node);
    return said;
  }
  const usable = { channel_point: point(1), active: true };
  const away = { channel_point: point(1), active: false };
  const byForce = (height: number) => ({ channel_point: point(2), close_type: 'REMOTE_FORCE_CLOSE', close_height: height });
  /** As a real LND says it. */
  const OURS_BY_FORCE = 'ChanStatusBorked|ChanStatusCommitBroadcasted|ChanStatusLocalCloseInitiator';
  const byAgreement = (height: number) => ({ ...byForce(height), close_type: 'COOPERATIVE_CLOSE' });

  test.each<[string, Lists, { had?: string[]; closedBefore?: string[] }, string]>([
    ['all of them usable', { open: [usable] }, { had: [point(1)] }, 'no'],
    ['one away', { open: [usable, { ...away, channel_point: point(2) }] }, {}, 'not_met'],
    ['one that it had is in no list', { open: [usable] }, { had: [point(1), point(2)] }, 'yes'],
    [
      'one that it had is opened',
      { open: [usable], pending: { pending_open_channels: pendingOf(2) } },
      { had: [point(2)] },
      'not_met',
    ],
    ['one that it had is closing', { pending: { waiting_close_channels: pendingOf(2) } }, { had: [point(2)] }, 'no'],
    ['one that it had is closed by agreement', { closed: [byAgreement(991)] }, { had: [point(2)] }, 'yes'],
    ['one was closed by agreement before', { closed: [byAgreement(991)] }, { closedBefore: [point(2)] }, 'no'],
    ['one was closed by agreement long ago', { closed: [byAgreement(990)] }, { had: [point(2)] }, 'no'],
    [
      'one has lost data',
      { pending: { waiting_close_channels: pendingOf(2, { chan_status_flags: 'ChanStatusLocalDataLoss' }) } },
      { closedBefore: [point(2)] },
      'yes',
    ],
    ['one is closing by force', { pending: { pending_force_closing_channels: pendingOf(2) } }, {}, 'yes'],
    [
      'one is being closed by force by the node itself, and is in no block',
      { pending: { waiting_close_channels: pendingOf(2, { chan_status_flags: OURS_BY_FORCE }) } },
      {},
      'yes',
    ],
    [
      'one was being closed by force by the node itself before',
      { pending: { waiting_close_channels: pendingOf(2, { chan_status_flags: OURS_BY_FORCE }) } },
      { closedBefore: [point(2)] },
      'no',
    ],
    [
      'one was closing by force before',
      { pending: { pending_force_closing_channels: pendingOf(2) } },
      { closedBefore: [point(2)] },
      'no',
    ],
    ['one was closed by force', { closed: [byForce(991)] }, {}, 'yes'],
    ['one was closed by force before', { closed: [byForce(991)] }, { closedBefore: [point(2)] }, 'no'],
    ['one was closed by force long ago', { closed: [byForce(990)] }, {}, 'no'],
    ['one was closed by force after one that was long ago', { closed: [byForce(990), byForce(991)] }, {}, 'yes'],
  ])('%s', async (_what, lists, known, wanted) => {
    expect(await says(lists, known)).toBe(wanted);
  });

  test('of a node that has run on neither says anything: one away, one closed by agreement', async () => {
    const lists = { open: [away], closed: [byAgreement(991)] };
    expect(await says(lists, { had: [point(2)] }, { hasRunOn: true, areMet: true })).toBe('no');
    expect(await says({ open: [away] }, {}, { hasRunOn: true, areMet: false })).toBe('no');
  });

  test('one that it calls usable says nothing while it cannot know that', async () => {
    expect(await says({ open: [usable] }, {}, { hasRunOn: false, areMet: false })).toBe('not_met');
  });
});
