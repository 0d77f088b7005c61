// Bodies that are no JSON object, wrong media types and methods, refused by every operation; and what is just accepted. First section of
// refusals.test.ts.
import { expect, test } from 'vitest';
import { MERCHANT_API } from '../../../src/contract/merchant-api.ts';
import { NAMES, type RefusedCalls } from './refused-calls.ts';

export function refusesBodies(calls: RefusedCalls): void {
  const { note, refused } = calls;

  const bad: [string, string | Buffer, string][] = [
    ['nothing', '', 'invalid_json'],
    ['no JSON', 'amount=25', 'invalid_json'],
    ['half of it', '{"amount":', 'invalid_json'],
    ['NaN', '{"amount": NaN}', 'invalid_json'],
    ['a list', '[]', 'invalid_json'],
    ['a string', '"x"', 'invalid_json'],
    ['null', 'null', 'invalid_json'],
    ['a byte order mark', '\ufeff{}', 'invalid_json'],
    ['invalid UTF-8', Buffer.from([0x7b, 0x22, 0x61, 0x22, 0x3a, 0x22, 0xff, 0x22, 0x7d]), 'invalid_json'],
    ['an overlong NUL', Buffer.from([0x7b, 0x22, 0x61, 0x22, 0x3a, 0x22, 0xc0, 0x80, 0x22, 0x7d]), 'invalid_json'],
    ['six levels', '{"a":[[[[[]]]]]}', 'invalid_json'],
    ['a depth bomb', `{"a":${'['.repeat(30_000)}${']'.repeat(30_000)}}`, 'invalid_json'],
    ['__proto__', '{"__proto__":{"access_token":"x"}}', 'invalid_request'],
    ['constructor below', '{"a":{"constructor":1}}', 'invalid_request'],
    ['prototype in a list', '{"a":[{"prototype":1}]}', 'invalid_request'],
    ['one byte too much', `{"a":"${'x'.repeat(65_536 - 7)}"}`, 'payload_too_large'],
    ['1 MB', `{"a":"${'x'.repeat(1_000_000)}"}`, 'payload_too_large'],
  ];
  test.each(NAMES)('%s refuses what is no good JSON object', async (name) => {
    for (const [, body, code] of bad) await refused(name, code, body);
  });
  test.each(NAMES)('%s takes JSON only, uncompressed, by POST', async (name) => {
    for (const type of [
      'text/plain',
      'application/x-www-form-urlencoded',
      'application/jsonx',
      'application/json; charset=latin1',
      '',
    ]) {
      await refused(name, 'unsupported_media_type', '{}', { 'content-type': type });
    }
    await refused(name, 'unsupported_media_type', '{}', { 'content-encoding': 'gzip' });
    for (const method of ['GET', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']) {
      for (const prefix of ['', '/v1']) {
        const reply = await calls.api.send(prefix + MERCHANT_API[name].path, undefined, {}, method);
        expect(note(name, reply).json.error).toBe('method_not_allowed');
        expect(reply.headers.get('allow')).toBe('POST');
      }
    }
  });
  test('what is accepted: five levels, 65,536 bytes, a media type with its charset, the last of two keys', async () => {
    const token = await calls.api.tokenOf('shop');
    const start = `{"access_token":"${token}","x":"`;
    const full = `${start}${'x'.repeat(65_536 - start.length - 2)}"}`;
    expect((await calls.api.send('/get_rates', full)).status).toBe(200);
    const json = JSON.stringify({ access_token: token, a: [[[[]]]] });
    for (const type of [
      'application/json; charset=utf-8',
      'APPLICATION/JSON;charset="UTF-8"',
      'application/json;',
      'application/json; v=1',
    ]) {
      expect((await calls.api.send('/get_rates', json, { 'content-type': type })).status).toBe(200);
    }
    expect((await calls.api.send('/get_rates', `{"access_token":5,"access_token":"${token}"}`)).status).toBe(200);
  });
}
