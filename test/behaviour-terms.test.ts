// The terms of docs/behaviour.md §3 and its table of refusals, word by word against the code: depths with their locks, coinbase outputs, tolerance,
// the bounds of fields and of Lightning; and nothing is promised there that the code does not know.
import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { describe, expect, test } from 'vitest';
import { MERCHANT_API } from '../src/contract/merchant-api.ts';
import { finalDepth, type RequiredDepth, requiredDepth } from '../src/core/confirmations.ts';
import { CURRENCIES, CURRENCY_CODES, type CurrencyCode, chainRow } from '../src/core/currency.ts';
import { MAX_TOLERANCE_USD_MINOR } from '../src/core/judge/payments.ts';
import { formatMinor } from '../src/core/money.ts';
import { REFUSALS } from '../src/core/refusal.ts';
import { MAX_TOLERANCE_BPS } from '../src/flow/merchants/settings.ts';
import { LIGHTNING_MAX_USD_MINOR, LIGHTNING_MIN_USD_MINOR } from '../src/flow/transactions/quote.ts';

const CONTRACT = readFileSync(join(resolve(import.meta.dirname, '..'), 'docs/behaviour.md'), 'utf8');
const TIERS = [50_00n, 500_00n, 5_000_00n, 50_000_00n];

const inWords = (code: CurrencyCode, { depth, lock, onlyLock }: RequiredDepth): string => {
  if (onlyLock) return 'finalized';
  // on Ethereum's chain every depth can be reached by finality too
  if (lock === null || CURRENCIES[code].family !== 'utxo') return String(depth);
  return `${lock === 'instantsend' ? 'lock' : 'ChainLock'} or ${depth}`;
};

describe('the table of required depths', () => {
  const rows = CONTRACT.split('\n')
    .map((line) => line.split('|').map((cell) => cell.trim()))
    .filter(
      (cells) =>
        cells.length === 8 && (cells[1] ?? '').split(', ').every((code) => (CURRENCY_CODES as readonly string[]).includes(code)),
    );

  test('has every currency once', () => {
    expect(rows.flatMap((cells) => (cells[1] as string).split(', ')).sort()).toEqual([...CURRENCY_CODES].sort());
  });

  test.each(CURRENCY_CODES)('%s: every tier, and when it is final', (code) => {
    const said = rows.find((cells) => (cells[1] as string).split(', ').includes(code))?.slice(2, 7);
    const needed = [...TIERS.map((usd) => requiredDepth(code, usd)), finalDepth(code)];
    expect(said?.map((cell) => cell.replace('InstantSend lock', 'lock'))).toEqual(needed.map((one) => inWords(code, one)));
  });
});

describe('the figures beside it', () => {
  test('coinbase outputs', () => {
    const ofDoge = chainRow('DOGE').coinbaseMaturity;
    const others = new Set(CURRENCY_CODES.filter((code) => code !== 'DOGE').map((code) => chainRow(code).coinbaseMaturity));
    expect(CONTRACT).toContain(
      `when it is mature: ${[...others].filter((blocks) => blocks > 0).join()} blocks, for DOGE ${ofDoge}.`,
    );
  });

  test('the tolerance', () => {
    const most = formatMinor(MAX_TOLERANCE_USD_MINOR, 2).replace('.00', '');
    expect(CONTRACT).toContain(`0 to ${MAX_TOLERANCE_BPS / 100n} %), at most what ${most} USD buy`);
  });

  test('amounts over Lightning', () => {
    const usd = (minor: bigint) => formatMinor(minor, 2).replace(/\B(?=(\d{3})+\.)/g, ',');
    expect(CONTRACT).toContain(`over Lightning ${usd(LIGHTNING_MIN_USD_MINOR)} to ${usd(LIGHTNING_MAX_USD_MINOR)} USD`);
  });

  test('the lengths of label and email, and how long a check may wait', () => {
    const { label, email } = MERCHANT_API.createTransaction.fields;
    expect(CONTRACT).toContain(
      `\`label\` has at most ${label.schema.maxLength} characters, \`email\` ${email.schema.maxLength}; `,
    );
    const { minimum, maximum } = MERCHANT_API.checkTransaction.fields.wait_seconds.schema;
    expect(CONTRACT).toContain(`\`wait_seconds\` (an integer from ${minimum} to ${maximum}, anything else is 400)`);
  });
});

test('every refusal in the table of errors is one of the code', () => {
  const table = CONTRACT.slice(CONTRACT.indexOf('| HTTP | `error` |'), CONTRACT.indexOf('`https_required` is answered'));
  const named = [...table.matchAll(/`([a-z_]+)`/g)].map((match) => match[1] as string).filter((name) => name !== 'error');
  expect(named.sort()).toEqual(Object.keys(REFUSALS).sort());
});
