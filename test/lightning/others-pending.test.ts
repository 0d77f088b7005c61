// What others begin and need never end is not under way for what a node has: otherwise anybody could have that never compared with the books.
import { createServer } from 'node:http';
import { describe, expect, test } from 'vitest';
import { createLnd } from '../../src/outside/lightning/lnd.ts';
import { closeServer, listen } from '../../src/sandbox/server.ts';

type Lists = {
  readonly channels?: readonly object[];
  readonly invoices?: object;
  readonly pending?: object;
  readonly wallet?: object;
  readonly unmined?: readonly object[];
};
async function says({ channels = [], invoices = {}, pending = {}, wallet = {}, unmined = [] }: Lists) {
  const answers: Record<string, object> = {
    '/v1/balance/blockchain': { total_balance: '700', confirmed_balance: '700', unconfirmed_balance: '0', ...wallet },
    '/v1/channels': { channels },
    ...invoices,
    '/v1/channels/pending': pending,
    '/v1/transactions?start_height=-1&end_height=-1': { transactions: unmined },
  };
  const node = createServer((request, response) => {
    const answer = answers[request.url ?? ''] ?? { code: 5, message: 'unable to locate invoice' };
    response.writeHead('code' in answer ? 404 : 200).end(JSON.stringify(answer));
  });
  const url = `http://127.0.0.1:${await listen(node, 0)}`;
  const lnd = createLnd(async () => ({ url, certificate: null, macaroon: '' }), { chain: 'regtest' });
  const { isMoving, inWallet, inChannels, roundedUp } = await lnd.holdings();
  lnd.close();
  await closeServer(node);
  return { isMoving, inWallet, inChannels, roundedUp };
}

const opening = (initiator: string) => [{ channel: { channel_point: `${'1'.repeat(64)}:0`, initiator } }];
const waits = { total_balance: '1000', unconfirmed_balance: '300' };
const received = { amount: '300', label: '', previous_outpoints: [{ is_our_output: false }] };

test.each<[string, Lists, boolean]>([
  ['nothing', {}, false],
  ['a channel that another opens', { pending: { pending_open_channels: opening('INITIATOR_REMOTE') } }, false],
  ['a channel of its own that opens', { pending: { pending_open_channels: opening('INITIATOR_LOCAL') } }, true],
  ['one of each', { pending: { pending_open_channels: [...opening('INITIATOR_REMOTE'), ...opening('INITIATOR_LOCAL')] } }, true],
  ['a channel of which nobody says who opens it', { pending: { pending_open_channels: [{}] } }, true],
  ['a channel that closes', { pending: { waiting_close_channels: opening('INITIATOR_REMOTE') } }, true],
  ['something that another has sent', { wallet: waits, unmined: [received] }, false],
  [
    'what spends an output of the wallet',
    { wallet: waits, unmined: [received, { ...received, previous_outpoints: [{ is_our_output: true }] }] },
    true,
  ],
  ['what leaves the wallet', { wallet: waits, unmined: [{ ...received, amount: '-1' }] }, true],
  ['what LND itself has made', { wallet: waits, unmined: [{ ...received, label: '0:closechannel:shortchanid-1' }] }, true],
  ['what was mined meanwhile', { wallet: waits, unmined: [] }, true],
  ['what is locked', { wallet: { locked_balance: '1' } }, true],
])('%s', async (_what, lists, isMoving) => {
  expect(await says(lists)).toMatchObject({ isMoving, inWallet: 700n });
});

describe('an HTLC', () => {
  const hash = Buffer.alloc(32, 7);
  const invoice = `/v1/invoice/${hash.toString('hex')}`;
  const htlc = (incoming: boolean, [number, channel, index]: readonly [number, number, number], amount = '100') => ({
    ...{ incoming, amount, htlc_index: String(number), hash_lock: hash.toString('base64') },
    ...{ forwarding_channel: String(channel), forwarding_htlc_index: String(index) },
  });
  const channel = (id: number, isOurs: boolean, pending: readonly object[]) => ({
    ...{ chan_id: String(id), initiator: isOurs, capacity: '1000', local_balance: '400', remote_balance: '500' },
    pending_htlcs: pending,
  });
  /** By channel 1, which we have opened, and on by channel 2, which another has. */
  const through = (coming: readonly object[], going: readonly object[]) => ({
    channels: [channel(1, true, coming), channel(2, false, going)],
  });
  const [coming, going] = [htlc(true, [3, 2, 4], '101'), htlc(false, [4, 1, 3])];
  const ALIAS = '17592186044416000001';

  test.each<[string, Lists, boolean]>([
    ['that goes through the node', through([coming], [going]), false],
    [
      'that goes through the node by an alias',
      {
        channels: [
          { ...channel(1, true, [{ ...coming, forwarding_channel: ALIAS }]) },
          { ...channel(2, false, [going]), chan_id: ALIAS },
        ],
      },
      false,
    ],
    ['that came, and goes on as another', through([coming], [htlc(false, [5, 1, 3])]), true],
    ['that came, and has arrived where it was for', through([coming], []), true],
    ['that goes on, and came no more', through([], [going]), true],
    ['that has the number of its other half in another channel', { channels: [channel(2, true, [coming, going])] }, true],
    ['of which nobody says where it is for', through([htlc(true, [0, 0, 0])], []), true],
    ['of a payment of its own', through([], [htlc(false, [0, 0, 0])]), true],
    ['beside one of a payment of its own', through([coming], [going, htlc(false, [0, 0, 0])]), true],
    [
      'for an invoice that is open',
      { ...through([htlc(true, [0, 0, 0])], []), invoices: { [invoice]: { state: 'OPEN' } } },
      false,
    ],
    ['for one that is settled', { ...through([htlc(true, [0, 0, 0])], []), invoices: { [invoice]: { state: 'SETTLED' } } }, true],
    [
      'of its own, with the hash of an open invoice',
      { ...through([], [htlc(false, [0, 0, 0])]), invoices: { [invoice]: { state: 'OPEN' } } },
      true,
    ],
  ])('%s', async (_what, lists, isMoving) => {
    expect((await says(lists)).isMoving).toBe(isMoving);
  });

  test('that goes through the node is of whoever sends it while it comes, and ours while it goes on', async () => {
    // 1,000 less 500 and 101, which may be less; 400 and 100, which may be more
    expect(await says(through([coming], [going]))).toMatchObject({ inChannels: 399n + 502n, roundedUp: 4 });
  });
});
