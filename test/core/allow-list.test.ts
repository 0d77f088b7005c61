// What an allow-list takes: every place that a payout or a reimbursement can name, and no text that would refuse all of them.
import { describe, expect, test } from 'vitest';
import { checkAllowList, isSameDestination } from '../../src/core/payouts/validation.ts';
import { createDestinations } from '../../src/outside/destinations.ts';

const destinations = createDestinations('mainnet');
const check = (list: readonly string[]) => () => checkAllowList(list, 'payout_allow_list', destinations);
const PLACES = [
  'bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4',
  'BC1QW508D6QEJXTDG4Y5R3ZARVARY0C5XW7KV8F3T4',
  '1A1zP1eP5QGefi2DMPTfTL5SLmv7DivfNa',
  'bitcoincash:qpm2qsznhks23z7629mms6s4cwef74vcwvy22gdx6a',
  '0x52908400098527886E0F7030069857D2E4169EE7',
  '0x52908400098527886e0f7030069857d2e4169ee7',
  'ach:021000021:1234',
  'ach:021000021:1234:savings',
  'shop@example.com',
  'lnbc1pvjluezpp5qqqsyqcyq5rqwzqfqqqsyqcyq5rqwzqfqqqsyqcyq5rqwzqfqypq',
];

describe('an allow-list', () => {
  test('takes what payouts and reimbursements can be sent to', () => {
    expect(check([])).not.toThrow();
    for (const place of PLACES) expect(check([place]), place).not.toThrow();
  });

  test.each([
    'x',
    'bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t5',
    'bcrt1qw508d6qejxtdg4y5r3zarvary0c5xw7kygt080',
    '0x52908400098527886e0F7030069857D2E4169EE7',
    'ach:021000020:1234',
    'ach:021000021:1234:CHECKING',
    'ba_123',
    'lnurl1x',
    'a@',
  ])('refuses %s, and says which entry it is', (wrong) => {
    expect(check([...PLACES, wrong])).toThrow(
      expect.objectContaining({
        code: 'invalid_destination',
        param: 'payout_allow_list',
        message: expect.stringContaining(`Entry ${PLACES.length + 1} `),
      }),
    );
  });
});

describe('the same destination', () => {
  test.each([
    ['ach:021000021:1234', 'ach:021000021:1234:checking', true],
    ['ach:021000021:1234', 'ach:021000021:1234:savings', false],
    ['ach:021000021:1234', 'ach:021000021:12345', false],
    ['bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4', 'BC1QW508D6QEJXTDG4Y5R3ZARVARY0C5XW7KV8F3T4', true],
    ['0x52908400098527886E0F7030069857D2E4169EE7', '0x52908400098527886e0f7030069857d2e4169ee7', true],
    ['1A1zP1eP5QGefi2DMPTfTL5SLmv7DivfNa', '1a1zp1ep5qgefi2dmptftl5slmv7divfna', false],
  ])('%s and %s: %s', (one, other, same) => {
    expect(isSameDestination(one, other)).toBe(same);
    expect(isSameDestination(other, one)).toBe(same);
  });
});
