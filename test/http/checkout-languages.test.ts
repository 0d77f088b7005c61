// The checkout page in the customer's language: every word of it, with every amount and name, and the same in what open pages are told.
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { EN } from '../../src/http/checkout/words/en.ts';
import { LANGUAGES, languageOf } from '../../src/http/checkout/words/languages.ts';
import { openStream } from '../support/event-stream.ts';
import { type ApiServer, makeApi } from './api-server.ts';

const OTHERS = Object.entries(LANGUAGES).filter(([tag]) => tag !== 'en');
const GIVEN = ['FIRST', 'SECOND'];

/** Every word by where it stands; those that something is put into with that in them. */
function wordsOf(words: object, above = ''): (readonly [string, string])[] {
  return Object.entries(words).flatMap(([name, word]) => {
    const path = above + name;
    if (typeof word === 'string') return [[path, word] as const];
    if (typeof word === 'function') return [[path, word(...GIVEN.slice(0, word.length)) as string] as const];
    return wordsOf(word, `${path}.`);
  });
}
const english = new Map(wordsOf(EN));
/** What is put into a word, and is the same in every language. */
const given = (text: string): readonly string[] => text.match(/FIRST|SECOND|#|ERC-20|Lightning|Ethereum|UTC|USD/g) ?? [];

describe.each(OTHERS)('%s', (_tag, words) => {
  test.each(wordsOf(words))('%s is its own, and has what the English one has in it', (path, text) => {
    const inEnglish = english.get(path) as string;
    expect([...given(text)].toSorted(byName)).toEqual([...given(inEnglish)].toSorted(byName));
    if (path !== 'direction') expect(text).not.toBe(inEnglish);
    expect(text.trim()).toBe(text);
    expect(text).not.toBe('');
  });
});

test.each(OTHERS)('%s does not call confirmed what was only seen', (_tag, words) => {
  const { wasSeen, headings, steps, notShownDoNotPayAgain, doNotSendAgain } = words;
  for (const seen of [wasSeen, headings.seen, steps[0], notShownDoNotPayAgain, doNotSendAgain('1 BTC')])
    expect(seen).not.toMatch(/bestätig|confirm|確認|承認|تأكيد|مؤكد/i);
});
const byName = (one: string, other: string): number => one.localeCompare(other);

test.each([
  ['de', null, 'de'],
  ['de-AT,de;q=0.9,en;q=0.8', null, 'de'],
  ['en;q=0.3, fr;q=0.7, *;q=0.1', null, 'fr'],
  ['nl,sv;q=0.9', null, 'en'],
  ['nl, es;q=0', null, 'en'],
  ['JA-jp', null, 'ja'],
  ['pt-BR', null, 'pt'],
  ['fr', 'ar', 'ar'],
  ['fr', 'DE-ch', 'de'],
  ['fr', 'xx', 'fr'],
  ['fr', 'constructor', 'fr'],
  [';;q=,,=', '', 'en'],
  [undefined, null, 'en'],
] as const)('a browser that accepts %s, at an address that asks for %s, gets %s', (accepted, asked, language) => {
  expect(languageOf({ accepted, asked })).toBe(language);
});

describe('the page', () => {
  let api: ApiServer;
  beforeAll(async () => {
    api = await makeApi();
  });
  afterAll(() => api.end());
  async function open(): Promise<string> {
    const { json } = await api.call('/create_transaction', { amount: '25.00', crypto_selected: 'BTC', expand: ['checkout'] });
    return new URL(json.checkout.url).pathname;
  }
  const show = (path: string, language: string) =>
    api.send(path, undefined, { accept: 'text/html', 'accept-language': language }, 'GET');

  test('is in the language of the browser, and leads to the others', async () => {
    const path = await open();
    const { text } = await show(path, 'de-DE,de;q=0.9');
    expect(text).toContain('<html lang="de" dir="ltr">');
    for (const part of [
      'Zahlung an The Shop',
      'Warten auf die Zahlung.',
      'Adresse kopieren',
      'In der Wallet öffnen',
      '25.00 USD',
    ])
      expect(text).toContain(part);
    expect(text).not.toMatch(/Copy|Waiting|Open in|Send Bitcoin/);
    expect([...text.matchAll(/href="\?lang=(\w+)"/g)].map(([, tag]) => tag)).toEqual(Object.keys(LANGUAGES));
    expect(text.match(/aria-current="true">Deutsch/g)).toHaveLength(1);
  });

  test('is written from right to left where the language is, with amounts and addresses as they are', async () => {
    const { text } = await show(`${await open()}?lang=ar`, 'en');
    expect(text).toContain('<html lang="ar" dir="rtl">');
    expect(text).toMatch(/<bdi dir="ltr">0\.\d{8} BTC<\/bdi>/);
    expect(text).toContain('\u20681 BTC = 65000.00 USD\u2069');
    // as its own first letter says
    expect(text).toContain('<p class="merchant" dir="auto">The Shop</p>');
  });

  test('is told changes in its language', async () => {
    const path = await open();
    const { text } = await show(`${path}?lang=ja`, 'en');
    const events = /data-events="([^"]+)"/.exec(text)?.[1] as string;
    const stream = await openStream(api.base, null, {}, `/pay/${events}`);
    await stream.count(1);
    const change = JSON.parse(stream.messages[0]?.data ?? '');
    expect(change.said).toBe(LANGUAGES.ja.waiting);
    expect(change.html).toContain(LANGUAGES.ja.copyAddress);
    await stream.close();
  });
});
