// What each screen of the checkout page says: a code to pay with only where something is to be paid.
import { expect, test } from 'vitest';
import type { CheckoutScreen } from '../../src/core/judge/checkout.ts';
import { parseRate, type Rate } from '../../src/core/rate.ts';
import type { Checkout } from '../../src/flow/transactions/checkouts.ts';
import { screen, sentence as sentenceIn } from '../../src/http/checkout/screens.ts';
import { EN } from '../../src/http/checkout/words/en.ts';

const ADDRESS = 'bcrt1qw508d6qejxtdg4y5r3zarvary0c5xw7kygt080';
const checkout = (more: Partial<Checkout>): Checkout => ({
  transactionId: 'txn_0351dYxk0d1Jt8vTgkN1AM',
  businessName: 'The Shop',
  label: null,
  address: ADDRESS,
  payments: [],
  expiresAtMs: Date.UTC(2026, 10, 29, 12),
  usdMinor: 25_00n,
  amountDue: 38_462n,
  confirmations: 0,
  screen: 'pay',
  status: 'started',
  currency: 'BTC',
  receivedMinor: 0n,
  awaitedMinor: 0n,
  isWatched: true,
  remainingMinor: 38_462n,
  excessMinor: 0n,
  rate: parseRate('65000') as Rate,
  uri: `bitcoin:${ADDRESS}?amount=0.00038462`,
  tokenContract: null,
  wantedConfirmations: 3,
  nowMs: 0,
  ...more,
});
const shown = (more: Partial<Checkout>): string => screen(checkout(more), EN).html;
const sentence = (of: Checkout): string => sentenceIn(of, EN);

test.each<[CheckoutScreen, boolean, string]>([
  ['pay', true, 'Waiting for the payment.'],
  ['partly_paid', true, '0.00010000 BTC has arrived. 0.00028462 BTC is still to be paid.'],
  ['seen', false, 'The payment was seen. 2 of 3 confirmations. You can close this page.'],
  ['missing', false, 'A payment was seen that the network does not show at present. It may still arrive: do not pay again.'],
  ['paid', false, 'Paid. Thank you.'],
  ['expired', false, 'The time is over, and the payment was not complete.'],
  ['review', false, 'The Shop looks at this payment. Do not pay again.'],
  ['declined', false, 'This payment was not accepted. Do not pay again.'],
  ['cancelled', false, 'The Shop has cancelled this payment. Do not pay.'],
  ['reimbursed', false, 'This payment was returned.'],
])('%s: something to pay with: %s, and it says "%s"', (name, isPayable, said) => {
  const of: Partial<Checkout> = { screen: name, receivedMinor: 10_000n, remainingMinor: 28_462n, confirmations: 2 };
  const text = shown(of);
  for (const part of ['class="qr"', 'class="wallet"', `data-copy="${ADDRESS}"`]) expect(text.includes(part)).toBe(isPayable);
  expect(sentence(checkout(of))).toBe(said);
});

test('a price that has expired with nothing paid says so', () => {
  expect(sentence(checkout({ screen: 'expired' }))).toBe('This price has expired. Do not pay now.');
});

test('confirmations beyond those that are needed are not counted, and where only finality counts none are promised', () => {
  expect(sentence(checkout({ screen: 'seen', confirmations: 5 }))).toContain('3 of 3 confirmations');
  expect(sentence(checkout({ screen: 'seen', confirmations: 5, wantedConfirmations: null }))).toContain(
    'it counts when the network says that its block is final',
  );
});

test('whoever has paid too much is told how much, and where a payment is', () => {
  const payments = [{ currency: 'BTC' as const, txid: 'ab'.repeat(32), minor: 40_000n, isGone: false }];
  const text = shown({ screen: 'paid', receivedMinor: 40_000n, excessMinor: 1_538n, payments });
  expect(text).toContain('You have sent 0.00001538 BTC more than was asked for.');
  expect(text).toContain(`0.00040000 BTC</bdi> <code>${'ab'.repeat(32)}</code>`);
  expect(shown({ screen: 'paid', receivedMinor: 38_462n })).not.toContain('more than was asked for');
});

test('coins of another currency are told while there is still something to pay, and a payment that is not there now is marked', () => {
  const other = { currency: 'BCH' as const, txid: 'cd'.repeat(32), minor: 10_000_000n, isGone: false };
  const text = shown({ payments: [other] });
  expect(text).toContain(
    '0.10000000 BCH has come to this address, which is not what is asked for. Ask The Shop to send it back.',
  );
  const payments = [{ currency: 'BTC' as const, txid: 'ab'.repeat(32), minor: 38_462n, isGone: true }];
  expect(shown({ screen: 'missing', payments })).toContain(`${'ab'.repeat(32)}</code> (not shown by the network at present)`);
  expect(shown({ screen: 'pay', payments })).not.toContain('has come to this address');
});

test('a token names its contract, and an invoice no address and no network', () => {
  const contract = '0xdAC17F958D2ee523a2206206994597C13D831ec7';
  expect(shown({ currency: 'USDT', tokenContract: contract })).toContain(
    `Send USDT on Ethereum only (ERC-20, contract ${contract}).`,
  );
  expect(shown({ currency: 'ETH' })).toContain('Send ETH on the Ethereum network only.');
  const invoice = shown({ currency: 'BTC-LN', address: 'lnbcrt250n1abcdefghijkl' });
  expect(invoice).toContain('Copy invoice');
  expect(invoice).not.toMatch(/Copy address|Copy payment link|network/);
});
