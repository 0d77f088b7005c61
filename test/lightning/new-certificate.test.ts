// LND makes another certificate when it is started after the one before has expired: it is read from the file again, without a start of this server.
import { mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { targetOf } from '../../src/main/wiring/lightning.ts';

const pem = (text: string): string => `-----BEGIN CERTIFICATE-----\n${text}\n-----END CERTIFICATE-----\n`;
let folder: string;
const cert = (): string => join(folder, 'tls.cert');
const macaroon = (): string => join(folder, 'pay.macaroon');
/** As a program does that lets nobody see half of it; also within the same millisecond. */
function put(file: string, text: string): void {
  writeFileSync(`${file}.new`, text);
  renameSync(`${file}.new`, file);
}
const opened = () => targetOf('https://node', cert(), macaroon(), 'BURSAR_LND_PAY_MACAROON');

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'bursar-lnd-'));
  put(cert(), pem('one'));
  put(macaroon(), 'abc');
});
afterEach(() => rmSync(folder, { recursive: true }));

test('files that have changed are read again, each by itself', async () => {
  const target = opened();
  const before = await target();
  expect(before).toEqual({ url: 'https://node', certificate: pem('one'), macaroon: '616263' });
  // the same object: connections are kept
  expect(await target()).toBe(before);
  put(cert(), pem('two'));
  expect(await target()).toMatchObject({ certificate: pem('two'), macaroon: '616263' });
  put(macaroon(), 'abd');
  expect(await target()).toMatchObject({ certificate: pem('two'), macaroon: '616264' });
});

test('while a file is missing, or half of it is there, what was read before counts', async () => {
  const target = opened();
  rmSync(cert());
  expect(await target()).toMatchObject({ certificate: pem('one') });
  put(cert(), pem('two').slice(0, 40));
  expect(await target()).toMatchObject({ certificate: pem('one') });
  put(cert(), pem('two'));
  expect(await target()).toMatchObject({ certificate: pem('two') });
});

test('at the start a file that cannot be read is refused', () => {
  rmSync(cert());
  expect(opened).toThrow(/BURSAR_LND_CERT/);
  put(cert(), pem('one'));
  rmSync(macaroon());
  expect(opened).toThrow(/BURSAR_LND_PAY_MACAROON/);
});

test('what the variables hold themselves is read once', async () => {
  const target = targetOf('https://node', pem('one').replaceAll('\n', '\\n'), '0a0b', 'BURSAR_LND_MACAROON');
  expect(await target()).toEqual({ url: 'https://node', certificate: pem('one'), macaroon: '0a0b' });
  expect(await target()).toBe(await target());
});
