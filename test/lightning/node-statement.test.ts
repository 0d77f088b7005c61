// What a node that says so has in its channels and its wallet, and what of it is between two of them: each of the answers that it is read from, as a real
// LND gives them.
import { createServer } from 'node:http';
import { describe, expect, test } from 'vitest';
import type { LightningPort } from '../../src/core/lightning/port.ts';
import { createLnd } from '../../src/outside/lightning/lnd.ts';
import { closeServer, listen } from '../../src/sandbox/server.ts';

type Said = {
  readonly channels?: readonly object[];
  readonly pending?: object;
  readonly closed?: readonly object[];
  readonly wallet?: object;
  readonly transactions?: readonly object[];
  readonly waiting?: readonly object[];
  readonly invoice?: { readonly status?: number; readonly body: object };
};
const NO_INVOICE = { status: 404, body: { code: 5, message: 'there are no existing invoices', details: [] } };

/** Asks a node with these answers. */
async function asked<T>(
  { channels = [], pending = {}, closed = [], wallet = {}, transactions = [], waiting = [], invoice = NO_INVOICE }: Said,
  ask: (port: LightningPort) => Promise<T>,
): Promise<T> {
  const answers: Record<string, object> = {
    '/v1/balance/blockchain': wallet,
    '/v1/channels': { channels },
    '/v1/channels/pending': pending,
    '/v1/channels/closed': { channels: closed },
    '/v1/transactions?start_height=-1&end_height=-1': { transactions: waiting },
    '/v1/transactions?start_height=100&end_height=200': { transactions },
  };
  const node = createServer((request, response) => {
    const url = request.url ?? '';
    const { status = 200, body } = url === `/v1/invoice/${HASH}` ? invoice : { body: answers[url] };
    response.writeHead(body === undefined ? 501 : status, { 'Content-Type': 'application/json' }).end(JSON.stringify(body ?? {}));
  });
  const url = `http://127.0.0.1:${await listen(node, 0)}`;
  const port = createLnd(async () => ({ url, certificate: null, macaroon: '' }), { chain: 'regtest' });
  try {
    return await ask(port);
  } finally {
    port.close();
    await closeServer(node);
  }
}
const HASH = 'ab'.repeat(32);
const LOCK = Buffer.from(HASH, 'hex').toString('base64');
const OTHER_LOCK = Buffer.from('cd'.repeat(32), 'hex').toString('base64');
const isMoving = async (said: Said): Promise<boolean> => (await asked(said, (port) => port.holdings())).isMoving;

describe('what is ours of the channels', () => {
  const opened = { initiator: true, capacity: '100000', local_balance: '60000', remote_balance: '30000' };
  const others = { initiator: false, capacity: '100000', local_balance: '40000', remote_balance: '50000' };
  const comes = { incoming: true, amount: '2000', hash_lock: LOCK };
  const goes = { incoming: false, amount: '5000' };
  test.each<[string, readonly object[], bigint, number]>([
    [
      'we have opened: all that is neither the other side’s nor on its way to us',
      [{ ...opened, pending_htlcs: [comes, goes] }],
      68_000n,
      3,
    ],
    [
      'the other side has opened: what is ours and goes out, each shown rounded down',
      [{ ...others, pending_htlcs: [comes, goes, { amount: '700' }] }],
      40_000n + 5_700n + 3n,
      4,
    ],
    ['the other side has opened, where nothing goes out', [{ ...others, pending_htlcs: [comes] }], 40_001n, 2],
    ['both have opened one of', [opened, others], 70_000n + 40_001n, 2],
  ])('that %s', async (_whose, channels, inChannels, roundedUp) => {
    const wallet = { confirmed_balance: '900', unconfirmed_balance: '0', locked_balance: '0' };
    const held = await asked({ channels, wallet }, (port) => port.holdings());
    expect(held).toMatchObject({ inChannels, roundedUp, inWallet: 900n });
  });
});

describe('whether something of its own is between two places', () => {
  const sentByOthers = { amount: '500', label: '', previous_outpoints: [{ is_our_output: false }] };
  const unconfirmed = { unconfirmed_balance: '500' };
  const initiated = (initiator: string) => ({ pending_open_channels: [{ channel: { initiator } }] });
  test.each<[string, boolean, Said]>([
    ['nothing is', false, {}],
    ['a channel that it opens', true, { pending: initiated('INITIATOR_LOCAL') }],
    ['a channel of which it does not say who opens it', true, { pending: { pending_open_channels: [{}] } }],
    ['a channel that somebody else opens', false, { pending: initiated('INITIATOR_REMOTE') }],
    ['a channel that is closed by agreement', true, { pending: { pending_closing_channels: [{}] } }],
    ['a channel that is closed by force', true, { pending: { pending_force_closing_channels: [{}] } }],
    ['a channel whose closing is in no block', true, { pending: { waiting_close_channels: [{}] } }],
    ['what the wallet has set aside', true, { wallet: { locked_balance: '1' } }],
    ['what somebody sends to its wallet', false, { wallet: unconfirmed, waiting: [sentByOthers] }],
    ['what was mined while it was asked', true, { wallet: unconfirmed }],
    ['what it sends itself', true, { wallet: unconfirmed, waiting: [{ ...sentByOthers, amount: '-1' }] }],
    ['what moves nothing of its wallet', false, { wallet: unconfirmed, waiting: [{ ...sentByOthers, amount: '0' }] }],
    ['what it has made and named', true, { wallet: unconfirmed, waiting: [{ ...sentByOthers, label: '0:sweep' }] }],
    [
      'what spends one of its outputs',
      true,
      {
        wallet: unconfirmed,
        waiting: [{ ...sentByOthers, previous_outpoints: [{ is_our_output: false }, { is_our_output: true }] }],
      },
    ],
    [
      'what it sends beside somebody else',
      true,
      { wallet: unconfirmed, waiting: [sentByOthers, { ...sentByOthers, amount: '-1' }] },
    ],
    // it is no more than the end of what it knows
    ['what is in no block, where nothing is unconfirmed', false, { waiting: [{ ...sentByOthers, amount: '-1' }] }],
  ])('%s: %s', async (_what, wanted, said) => {
    expect(await isMoving(said)).toBe(wanted);
  });
});

describe('whether a payment is on its way through its channels', () => {
  const channel = (chan_id: string, ...pending_htlcs: readonly object[]) => ({
    ...{ chan_id, initiator: true, capacity: '100000', remote_balance: '0' },
    pending_htlcs,
  });
  const comes = {
    incoming: true,
    amount: '10',
    hash_lock: LOCK,
    htlc_index: '7',
    forwarding_channel: '0',
    forwarding_htlc_index: '0',
  };
  const goes = { ...comes, incoming: false };
  const through = (forwarding_channel: string, htlc_index: string, forwarding_htlc_index: string) => ({
    ...{ forwarding_channel, htlc_index, forwarding_htlc_index },
  });
  const invoice = (state: string) => ({ body: { r_hash: LOCK, state } });
  test.each<[string, boolean, Said]>([
    ['one that it pays itself', true, { channels: [channel('1', goes)] }],
    ['one that it pays, of an invoice of its own', true, { channels: [channel('1', goes)], invoice: invoice('OPEN') }],
    [
      'one that comes for an invoice that is not settled',
      false,
      { channels: [channel('1', comes)], invoice: invoice('ACCEPTED') },
    ],
    [
      'one that comes for such an invoice, and names no channel to go on by',
      false,
      { channels: [channel('1', { ...comes, forwarding_channel: undefined })], invoice: invoice('OPEN') },
    ],
    ['one that comes for an invoice that is settled', true, { channels: [channel('1', comes)], invoice: invoice('SETTLED') }],
    ['one that comes for no invoice', true, { channels: [channel('1', comes)] }],
    [
      'one that goes through it, of which both halves are there',
      false,
      {
        channels: [channel('1', { ...comes, ...through('2', '7', '9') }), channel('2', { ...goes, ...through('1', '9', '7') })],
      },
    ],
    [
      'one that goes through it, and has left already',
      true,
      { channels: [channel('1', { ...comes, ...through('2', '7', '9') }), channel('2')], invoice: invoice('OPEN') },
    ],
    [
      'one that goes through it, of which another is in the place of its other half',
      true,
      {
        channels: [channel('1', { ...comes, ...through('2', '7', '9') }), channel('2', { ...goes, ...through('1', '8', '7') })],
      },
    ],
    [
      'two that come, and name each other',
      true,
      {
        channels: [channel('1', { ...comes, ...through('2', '7', '9') }), channel('2', { ...comes, ...through('1', '9', '7') })],
      },
    ],
    [
      'one that it pays, behind one that goes through it',
      true,
      {
        channels: [
          channel('1', { ...comes, ...through('2', '7', '9') }),
          channel('2', { ...goes, ...through('1', '9', '7') }, { ...goes, htlc_index: '10' }),
        ],
      },
    ],
  ])('%s: %s', async (_what, wanted, said) => {
    expect(await isMoving(said)).toBe(wanted);
  });

  test('where it does not say whether an invoice is settled, nothing is known', async () => {
    const fails = { status: 500, body: { code: 2, message: 'a fault', details: [] } };
    await expect(isMoving({ channels: [channel('1', comes)], invoice: fails })).rejects.toThrow('a fault');
  });

  const ours = { incoming: false, hash_lock: LOCK };
  test.each<[string, boolean, readonly object[]]>([
    ['what it pays itself', true, [ours]],
    ['what it pays itself, and names no other channel', true, [{ ...ours, forwarding_channel: '0' }]],
    ['what it pays itself, beside others', true, [{ ...ours, hash_lock: OTHER_LOCK }, ours]],
    ['what it pays of another hash', false, [{ ...ours, hash_lock: OTHER_LOCK }]],
    ['what comes with that hash', false, [{ ...ours, incoming: true }]],
    ['what goes through it with that hash', false, [{ ...ours, forwarding_channel: '5', forwarding_htlc_index: '1' }]],
    ['nothing', false, []],
  ])('it holds %s of a payment: %s', async (_what, wanted, htlcs) => {
    const channels = [channel('1'), channel('2', ...htlcs)];
    expect(await asked({ channels }, (port) => port.holds(HASH))).toBe(wanted);
  });
});

test.each<[string, boolean, object]>([
  ['by force', true, { pending_force_closing_channels: [{}] }],
  ['in no block yet', true, { waiting_close_channels: [{}] }],
  ['by agreement', false, { pending_closing_channels: [{}] }],
  ['not at all', false, {}],
])('a channel that is being closed %s may hold what is in no list: %s', async (_how, wanted, pending) => {
  expect(await asked({ pending }, (port) => port.isClosing())).toBe(wanted);
});

describe('what the blocks have done to its wallet', () => {
  const id = (n: number): string => String(n).repeat(64);
  const transaction = (n: number, more = {}) => ({
    ...{ tx_hash: id(n), block_height: 150, amount: '-1000', total_fees: '200', label: '', previous_outpoints: [] },
    ...more,
  });
  const closed = { ...{ channel_point: `${id(1)}:0`, closing_tx_hash: id(2), close_height: 100, capacity: '70000' } };
  const spending = (n: number, isOurs: boolean) => ({ previous_outpoints: [{ outpoint: `${id(n)}:1`, is_our_output: isOurs }] });
  const events = (said: Said) => asked(said, (port) => port.chainEvents(100, 200));
  const booked = async (said: Said) => (await events(said)).transactions.map(({ txid }) => txid);

  test('a transaction is what it has taken from the wallet, and its fee', async () => {
    const { transactions } = await events({ transactions: [transaction(1)] });
    expect(transactions).toEqual([{ txid: id(1), height: 150, amount: -1_000n, fee: 200n, intoChannels: 0n }]);
  });

  const local = { channel_point: `${id(1)}:0`, initiator: true, capacity: '60000', push_amount_sat: '5000' };
  const wasOurs = { ...closed, open_initiator: 'INITIATOR_LOCAL' };
  test.each<[string, Said, bigint]>([
    ['that we have opened, but what was given with it', { channels: [local] }, 55_000n],
    ['that we have opened, and is closed', { closed: [wasOurs] }, 70_000n],
    [
      'of several that one transaction opens',
      { channels: [local, { ...local, channel_point: `${id(1)}:1` }], closed: [wasOurs] },
      180_000n,
    ],
    [
      'that others have opened',
      { channels: [{ ...local, initiator: false }], closed: [{ ...closed, open_initiator: 'INITIATOR_REMOTE' }] },
      0n,
    ],
    ['that another transaction opens', { channels: [{ ...local, channel_point: `${id(3)}:0` }] }, 0n],
  ])('it has put into channels what is in those %s', async (_which, said, intoChannels) => {
    const { transactions } = await events({ ...said, transactions: [transaction(1)] });
    expect(transactions).toMatchObject([{ intoChannels }]);
  });

  const swept = { ...closed, resolutions: [{ sweep_txid: id(4) }] };
  test.each<[string, boolean, object]>([
    ['closes it', false, transaction(2)],
    ['gets an output of it', false, transaction(4)],
    ['spends what the wallet does not own of it', false, transaction(5, spending(2, false))],
    ['spends what the wallet owns of it', true, transaction(5, spending(2, true))],
    ['spends an output of another', true, transaction(5, spending(3, false))],
    ['the node calls a close', false, transaction(5, { label: '0:closechannel:shortchanid-1' })],
    ['the node calls a penalty', false, transaction(5, { label: '0:justicetx' })],
    ['the node calls the opening of a channel', true, transaction(5, { label: '0:openchannel:shortchanid-1' })],
    ['somebody has called a close', true, transaction(5, { label: 'my 0:closechannel' })],
    ['the node calls a sweep, and does not say of what', false, transaction(5, { label: '0:sweep' })],
    ['the node calls a sweep of what is not the wallet’s', false, transaction(5, { label: '0:sweep', ...spending(3, false) })],
    ['the node calls a sweep of what is the wallet’s', true, transaction(5, { label: '0:sweep', ...spending(3, true) })],
  ])('of a closed channel money comes back by what %s; booked by itself: %s', async (_what, isBooked, one) => {
    expect((await booked({ closed: [swept], transactions: [one] })).length).toBe(isBooked ? 1 : 0);
  });

  test('a channel that was closed before the first of the blocks is not told again', async () => {
    const before = { ...closed, channel_point: `${id(6)}:0`, close_height: 99 };
    expect((await events({ closed: [closed, before] })).closed).toEqual([{ channelPoint: `${id(1)}:0`, height: 100 }]);
  });
});
