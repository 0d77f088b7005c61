// The bank of the sandbox, reached by the service's own client: what it takes, what it loses, what it remembers.
import { createHash } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { type BankFile, type BankPort, BankTrouble } from '../../src/core/ach/bank-port.ts';
import { type NachaEntry, type NachaFile, writeNachaFile } from '../../src/core/ach/nacha-file.ts';
import { readNachaFile } from '../../src/core/ach/nacha-reader.ts';
import { sandboxBank } from '../../src/outside/bank/sandbox-bank.ts';
import { type Bank, openBank, SANDBOX_BANK } from '../../src/sandbox/bank/bank.ts';
import { openExchanges } from '../../src/sandbox/rates.ts';
import { closeServer, listen, sandboxHandler } from '../../src/sandbox/server.ts';
import { collected } from '../support/collected.ts';
import { checkedByMoov } from '../support/moov-ach.ts';
import { tableService } from './support/table-service.ts';

const SECRET = 'a secret';
let nowMs = Date.UTC(2026, 10, 23, 22, 30);
const now = (): number => nowMs;
let folder: string;
let bank: Bank;
let server: Server;
let port: number;
let client: BankPort;

function open(): void {
  bank = openBank(join(folder, 'bank.jsonl'), now);
  const context = {
    nodes: new Map(),
    lightning: null as never,
    exchanges: openExchanges({ folder: null, now }),
    bank,
    service: tableService().service,
    clock: { now, advance: () => undefined },
    url: '',
    nudge: async () => undefined,
  };
  server = createServer(sandboxHandler({ secret: SECRET, nodes: [], context, log: () => undefined }));
}
beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'bursar-bank-'));
  open();
  port = await listen(server, 0);
  client = sandboxBank(async () => ({ url: `http://127.0.0.1:${port}`, secret: SECRET }));
});
afterEach(async () => {
  await closeServer(server);
  bank.close();
  rmSync(folder, { recursive: true, force: true });
});

const ENTRY: NachaEntry = {
  transactionCode: 22,
  routing: '021000021',
  account: '123456',
  cents: 99_00n,
  id: 'A1',
  name: 'SHOP',
  trace: '091000010000001',
};
function fileOf(more: Partial<NachaFile> = {}, name = '2026-11-23-A'): BankFile {
  const text = writeNachaFile({
    origin: SANDBOX_BANK,
    date: '2026-11-23',
    time: '1700',
    modifier: 'A',
    entryClass: 'CCD',
    description: 'PAYOUT',
    effective: '2026-11-24',
    entries: [ENTRY],
    ...more,
  });
  const bytes = new TextEncoder().encode(text);
  return { name, bytes, sha256: createHash('sha256').update(bytes).digest() };
}
const account = { routing: '021000021', account: '123456', kind: 'checking' };

describe('the bank', () => {
  test('takes a file once, pays on the next banking day, and remembers both after it ended', async () => {
    const file = fileOf();
    expect(await client.ask(file)).toEqual({ state: 'never' });
    expect(await client.had()).toEqual([]);
    expect(await client.handOver(file)).toEqual({ state: 'accepted' });
    expect(await client.handOver(file)).toEqual({ state: 'duplicate' });
    expect(await client.had()).toEqual([{ name: file.name, sha256: Buffer.from(file.sha256) }]);
    expect(Buffer.from(await client.contentOf(file)).equals(file.bytes)).toBe(true);
    expect(bank.received(account)).toEqual([]);
    nowMs = Date.UTC(2026, 10, 24, 5);
    const paid = [{ trace: ENTRY.trace, cents: 99_00n }];
    expect(bank.received(account)).toEqual(paid);
    expect(bank.received({ ...account, kind: 'savings' })).toEqual([]);
    bank.close();
    bank = openBank(join(folder, 'bank.jsonl'), now);
    expect(bank.received(account)).toEqual(paid);
    expect(bank.ask(Buffer.from(file.sha256).toString('hex'))).toEqual({ state: 'accepted' });
  });

  test('refuses what does not add up, another bank’s file and another company’s, for good', async () => {
    const broken = fileOf();
    const bytes = new TextEncoder().encode(new TextDecoder().decode(broken.bytes).replace('0000009900A1', '0000009901A1'));
    const wrong = [
      { ...broken, bytes, sha256: createHash('sha256').update(bytes).digest() },
      fileOf({ origin: { ...SANDBOX_BANK, bankRouting: '021000021' } }),
      fileOf({ origin: { ...SANDBOX_BANK, companyId: '9999999999' } }),
    ];
    for (const file of wrong) {
      expect(await client.handOver(file)).toMatchObject({ state: 'refused' });
      expect(await client.ask(file)).toMatchObject({ state: 'refused' });
    }
    expect(bank.settle()).toEqual([]);
  });

  test('sends an entry back once, in a file that moov-io/ach accepts, until it is acknowledged', async () => {
    await client.handOver(fileOf());
    expect(bank.answer('091000010000009', 'R03')).toBe(false);
    expect(bank.answer(ENTRY.trace, 'C01')).toBe(true);
    expect(bank.answer(ENTRY.trace, 'R03')).toBe(true);
    expect(bank.answer(ENTRY.trace, 'R03')).toBe(false);
    bank.settle();
    const reports = await collected((await client.news()).reports);
    expect(reports.map(({ kind }) => kind)).toEqual(['nacha', 'nacha', 'over']);
    const read = reports.flatMap((report) => (report.kind === 'nacha' ? readNachaFile(report.content).entries : []));
    expect(read.map(({ change, returned, cents }) => [change?.code, returned?.code, cents])).toEqual([
      ['C01', undefined, 0n],
      [undefined, 'R03', 99_00n],
    ]);
    for (const report of reports)
      if (report.kind === 'nacha') expect(checkedByMoov('-', report.content)).toMatchObject({ errors: [] });
    expect(bank.received(account)).toEqual([]);
    for (const { id } of reports) await client.acknowledge(id);
    expect((await client.news()).reports).toEqual([]);
  });

  test('in trouble does what was asked and loses the answer, refuses, or is not there', async () => {
    const [one, two, three] = [fileOf(), fileOf({ time: '1701' }, '2026-11-23-B'), fileOf({ time: '1702' }, '2026-11-23-C')];
    bank.setTrouble({ down: false, fault: 'lose_answers', left: 1 });
    await expect(client.handOver(one)).rejects.toThrow(BankTrouble);
    expect(await client.ask(one)).toEqual({ state: 'accepted' });
    bank.setTrouble({ down: false, fault: 'reject', left: 1 });
    expect(await client.handOver(two)).toMatchObject({ state: 'refused' });
    expect(bank.trouble()).toEqual({ down: false, fault: null, left: null });
    bank.setTrouble({ down: true, fault: null, left: null });
    for (const call of [client.handOver(three), client.ask(three), client.news()])
      await expect(call).rejects.toThrow(BankTrouble);
    bank.setTrouble({ down: false, fault: null, left: null });
    expect(await client.ask(three)).toEqual({ state: 'never' });
  });

  test('answers nobody without the password, and a client does not believe nonsense', async () => {
    const stranger = sandboxBank(async () => ({ url: `http://127.0.0.1:${port}`, secret: 'guess' }));
    await expect(stranger.handOver(fileOf())).rejects.toThrow(BankTrouble);
    expect(await client.ask(fileOf())).toEqual({ state: 'never' });
    let said = '';
    const liar = createServer((_, response) => void response.end(said));
    const liarPort = await listen(liar, 0);
    const asking = sandboxBank(async () => ({ url: `http://127.0.0.1:${liarPort}`, secret: SECRET }));
    for (said of [
      '',
      '[]',
      '{"state":"perhaps"}',
      '{"state":"refused"}',
      '{"reports":[{"id":1}]}',
      '{"cut_off_ms":"x","reports":[]}',
    ]) {
      await expect(asking.handOver(fileOf())).rejects.toThrow(BankTrouble);
      await expect(asking.ask(fileOf())).rejects.toThrow(BankTrouble);
      await expect(asking.news()).rejects.toThrow(BankTrouble);
    }
    await closeServer(liar);
  });
});
