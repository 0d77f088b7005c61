// The controls of the sandbox as a table, for the documents: what POST /sandbox/<name> accepts and answers. A test compares it with the
// sandbox's own controls (src/sandbox/controls.ts).
import { CURRENCY_CODES } from '../core/currency.ts';
import type { JsonSchema } from './fields.ts';
import * as shape from './shapes.ts';

type ControlField = { readonly required: boolean; readonly about: string; readonly schema: JsonSchema };
export type Control = {
  readonly summary: string;
  readonly about: string;
  readonly fields: Readonly<Record<string, ControlField>>;
  readonly reply: shape.Shape<unknown>;
};

export const CONTROL_ERROR = shape.named(
  'ControlError',
  shape.object({
    error: shape.string('What went wrong.', 'not_possible'),
    message: shape.string('The same in words.', 'depth: this chain can be replaced 100 blocks deep at most'),
    param: shape.optional(shape.string('The field at fault.', 'depth')),
  }),
);

const TXID = '82f33bcc7168481c89b4df851d39bf44a646d5dd957a5df3258c9c90cda26e86';
const field =
  (required: boolean) =>
  (about: string, schema: JsonSchema, example: unknown): ControlField => ({
    required,
    about,
    schema: { ...schema, examples: [example] },
  });
const needs = field(true);
const may = field(false);
const text = { type: 'string', minLength: 1, maxLength: 1000 };
const whole = (minimum: number, maximum: number): JsonSchema => ({ type: 'integer', minimum, maximum });
const flag = { type: 'boolean' };

const transactionId = needs('A transaction of the service.', text, 'txn_0351dYxk0d1Jt8vTgkN1AM');
const currency = needs('A currency code, any case.', text, 'BTC');
const block = shape.object({ height: shape.whole('Height of the new tip.', 101), hash: shape.string('Its hash.', TXID) });
const txid = shape.object({ txid: shape.string('Id of the transaction on its chain.', TXID) });
const price = { type: ['string', 'null'] };
const PRICE_EXAMPLES: Readonly<Record<string, string>> = { BTC: '65000.00', USDT: '1.00' };
const PAYMENT_HASH = '0001020304050607080900010203040506070809000102030405060708090102';
const decimal = { type: 'string', pattern: '^(0|[1-9][0-9]{0,17})(\\.[0-9]{1,18})?$' };

export const SANDBOX_API: Readonly<Record<string, Control>> = {
  pay: {
    summary: 'Pay a transaction on its chain',
    about: 'Answers when the node has the payment; the service sees it within a second. Default is what is still due.',
    fields: {
      transaction_id: transactionId,
      amount: may('In whole units of the currency, a decimal string above zero.', decimal, '0.00038462'),
      currency: may('Another currency to the same address.', text, 'LTC'),
      split: may('One transaction with this many outputs to it.', whole(1, 500), 2),
      replace: may('A fee replacement of this payment.', { type: 'string', pattern: '^[0-9a-f]{64}$' }, TXID),
      kind: may(
        'An unusual payment.',
        { type: 'string', enum: ['coinbase', 'token_fake', 'token_failed', 'internal', 'internal_reverted'] },
        'coinbase',
      ),
    },
    reply: txid,
  },
  double_spend: {
    summary: 'Conflict with every unconfirmed payment of a transaction',
    about: '409 when all of them are mined.',
    fields: { transaction_id: transactionId },
    reply: shape.object({ txids: shape.list('The conflicts.', shape.string('Its id.', TXID)) }),
  },
  evict: {
    summary: 'Drop every unconfirmed payment of a transaction',
    about: 'From every mempool, without a conflict. 409 when there is none.',
    fields: { transaction_id: transactionId },
    reply: shape.object({ txids: shape.list('What was dropped.', shape.string('Its id.', TXID)) }),
  },
  return: {
    summary: 'Send what was evicted again',
    about: '409 when there is nothing of this transaction that could come back.',
    fields: { transaction_id: transactionId },
    reply: shape.object({ txids: shape.list('What came back.', shape.string('Its id.', TXID)) }),
  },
  mine: {
    summary: 'Mine blocks',
    about: 'Answers when the service has read them, or after 10 s.',
    fields: { currency, blocks: needs('How many.', whole(1, 10_000), 1) },
    reply: block,
  },
  reorg: {
    summary: 'Replace the top of a chain by empty blocks',
    about: 'Its transactions go back to the mempool, and a later block mines them.',
    fields: {
      currency,
      depth: needs('How many blocks are replaced, by one more.', whole(1, 1000), 1),
      drop: may('Incoming payments are double-spent in the new branch and never return.', flag, true),
    },
    reply: block,
  },
  node: {
    summary: 'Give a node trouble',
    about: '`down` cuts only the connection to the service; a fault lasts for `for` calls, or until null ends it.',
    fields: {
      currency,
      down: may('Whether the service reaches it.', flag, true),
      fault: may(
        'What it does wrong.',
        { type: 'string', enum: ['lose_answers', 'hang', 'reject', 'forgets', 'no_locks'] },
        'hang',
      ),
      for: may('For how many calls.', whole(1, 1_000_000), 3),
    },
    reply: shape.object({
      currency: shape.string('Its code.', 'BTC'),
      down: shape.flag('Whether it is cut off.', true),
      fault: shape.nullable(shape.string('What it does wrong.', 'hang')),
      for: shape.nullable(shape.whole('Calls left.', 3)),
    }),
  },
  address: {
    summary: 'An address of the outside world',
    about: 'An address to send payments to.',
    fields: { currency },
    reply: shape.object({ address: shape.string('It.', 'bcrt1qq5nunksgr27r57vrpp2xzc2nlwrv3xmdhydntp') }),
  },
  receive: {
    summary: 'What has arrived outside',
    about:
      'At an address of `/sandbox/address`; BTC-LN: by an invoice of `/sandbox/invoice`, or an LNURL or address of `/sandbox/lnurl`; USD: in a bank account `ach:…`, by trace numbers.',
    fields: { currency, address: needs('Which.', text, 'bcrt1qq5nunksgr27r57vrpp2xzc2nlwrv3xmdhydntp') },
    reply: shape.object({
      received: shape.string('In whole units of the currency.', '0.00038462'),
      payments: shape.list(
        'Each of them.',
        shape.object({
          txid: shape.string('Its transaction.', TXID),
          amount: shape.string('In whole units of the currency.', '0.00038462'),
          confirmations: shape.whole('Blocks on it.', 1),
        }),
      ),
    }),
  },
  clock: {
    summary: 'Move the clock of the service forward',
    about: 'Tokens, windows, limits, keys and jobs are all on it. Answers when the jobs that are due have run once.',
    fields: { advance_seconds: needs('By so much.', { type: 'integer', minimum: 0 }, 900) },
    reply: shape.object({ now: shape.string('The new time.', '2026-11-22T10:15:00.000Z', { format: 'date-time' }) }),
  },
  rates: {
    summary: 'Set the prices of the simulated exchanges',
    about: 'One price for all four, an array with one for each, or null: that one, or all of the currency, is down.',
    fields: Object.fromEntries(
      CURRENCY_CODES.map((code) => [
        code,
        may(
          'USD for one unit.',
          { type: ['string', 'null', 'array'], items: price, minItems: 4, maxItems: 4 },
          PRICE_EXAMPLES[code] ?? '80.00',
        ),
      ]),
    ),
    reply: shape.object({
      rates: shape.byName(
        CURRENCY_CODES,
        shape.list('One of each exchange; null where it is down.', shape.nullable(shape.string('USD for one unit.', '80.00'))),
      ),
    }),
  },
  merchant: {
    summary: 'Add a merchant',
    about: 'As `bursar merchant add`.',
    fields: {
      username: needs('Name of its first user.', text, 'shop'),
      password: needs('Password of that user.', text, 'shop-shop-shop'),
      email: may('E-mail address of the account.', text, 'shop@example.com'),
      business_name: may('Registered name.', text, 'The Shop'),
    },
    reply: shape.object({ affiliate_id: shape.string('The new merchant.', 'aff_0351dYxk0d1Jt8vTgkN1AM') }),
  },
  user: {
    summary: 'Add a user of a merchant',
    about: 'As `bursar user add`.',
    fields: {
      affiliate_id: needs('The merchant.', text, 'aff_0351dYxk0d1Jt8vTgkN1AM'),
      username: needs('Name.', text, 'till'),
      password: needs('Password.', text, 'till-till-till'),
      scopes: needs(
        'What the user may do.',
        { type: 'array', items: { type: 'string', enum: ['read', 'payments', 'payouts'] } },
        ['read'],
      ),
    },
    reply: shape.object({
      affiliate_id: shape.string('The merchant.', 'aff_0351dYxk0d1Jt8vTgkN1AM'),
      username: shape.string('The new user.', 'till'),
      scopes: shape.list('What the user may do.', shape.word('A scope.', ['read', 'payments', 'payouts'])),
    }),
  },
  invoice: {
    summary: 'A Lightning invoice of the outside world',
    about: 'Of a node that is not ours, to pay out to.',
    fields: {
      amount: may('In BTC; without it the payer chooses.', decimal, '0.00038462'),
      expires_in: may('Seconds until it expires.', whole(1, 31_536_000), 3600),
      behaviour: may(
        'What becomes of a payment; `hold` keeps it in flight.',
        { type: 'string', enum: ['pay', 'hold', 'fail'] },
        'pay',
      ),
    },
    reply: shape.object({
      payment_request: shape.string('The invoice (BOLT 11).', 'lnbcrt384620n1p0examplepp5qqqsyqcyq5rqwzqfqqqsyqcyq5rqwzqf'),
      payment_hash: shape.string('Its payment hash.', PAYMENT_HASH),
    }),
  },
  invoice_resolve: {
    summary: 'Settle or fail a held invoice',
    about: '409 when no payment of it is held.',
    fields: {
      payment_hash: needs('Of an invoice with `behaviour` `hold`.', { type: 'string', pattern: '^[0-9a-f]{64}$' }, PAYMENT_HASH),
      settle: needs('Whether it is settled; false = it fails.', flag, true),
    },
    reply: shape.object({
      payment_hash: shape.string('The invoice.', PAYMENT_HASH),
      settled: shape.flag('Whether it was settled.', true),
    }),
  },
  lnurl: {
    summary: 'An LNURL-pay and Lightning address of the outside world',
    about: 'Of a service that takes payments, honest or not.',
    fields: {
      min: may('The least that it takes, in BTC.', decimal, '0.00000001'),
      max: may('The most that it takes, in BTC.', decimal, '0.01'),
      behaviour: may(
        'How it answers, honest or not.',
        { type: 'string', enum: ['pay', 'html', 'other_amount', 'other_hash', 'redirect'] },
        'pay',
      ),
    },
    reply: shape.object({
      lnurl: shape.string('LUD-01.', 'LNURL1DP68GURN8GHJ7MRWW4EXCTNV9E3K7MF0D3H82UNVWQHKUMEDD3JHQ'),
      address: shape.string('The same as a Lightning address (LUD-16).', 'shop@127.0.0.1'),
    }),
  },
  bank: {
    summary: 'The bank',
    about:
      '`settle` takes what waits, and makes its settlement date and the two banking days after it over now; `return` and `noc` answer for a payout, which is taken first where it waits; `lose_answer` takes the next file and loses its acknowledgement. Answers when the service has read it.',
    fields: {
      action: needs('What it does.', { type: 'string', enum: ['settle', 'return', 'noc', 'lose_answer'] }, 'settle'),
      payout_id: may('For `return` and `noc`.', text, 'payout_0351dYxk0d1Jt8vTgkN1AM'),
      code: may('Of the return (default R03) or of the notice (default C01).', text, 'R03'),
    },
    reply: shape.object({
      action: shape.string('What it did.', 'settle'),
      files: shape.optional(shape.list('`settle`: the files that it concerned.', shape.string('Its name.', '2026-11-23-A'))),
      trace: shape.optional(shape.string('`return` and `noc`: the trace number of the entry.', '091000010000001')),
    }),
  },
};
