// What others begin and need never end is not under way for what a node has: otherwise anybody could have that never compared with the books.
import { createServer } from 'node:http';
import { expect, test } from 'vitest';
import { createLnd } from '../../src/outside/lightning/lnd.ts';
import { closeServer, listen } from '../../src/sandbox/server.ts';

type Lists = { readonly pending?: object; readonly wallet?: object; readonly unmined?: readonly object[] };
async function says({ pending = {}, wallet = {}, unmined = [] }: Lists) {
  const answers: Record<string, unknown> = {
    '/v1/balance/blockchain': { total_balance: '700', confirmed_balance: '700', unconfirmed_balance: '0', ...wallet },
    '/v1/channels': { channels: [] },
    '/v1/channels/pending': pending,
    '/v1/transactions?start_height=-1&end_height=-1': { transactions: unmined },
  };
  const node = createServer((request, response) => void response.end(JSON.stringify(answers[request.url ?? ''])));
  const url = `http://127.0.0.1:${await listen(node, 0)}`;
  const lnd = createLnd(async () => ({ url, certificate: null, macaroon: '' }), { chain: 'regtest' });
  const { isMoving, inWallet } = await lnd.holdings();
  lnd.close();
  await closeServer(node);
  return { isMoving, inWallet };
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
  expect(await says(lists)).toEqual({ isMoving, inWallet: 700n });
});
