// Payouts to bank accounts as pure functions: accounts, banking days, NACHA files against a table, against what they say themselves, and against
// moov-io/ach.
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { isRouting, readBankAccount } from '../../src/core/ach/bank-account.ts';
import {
  easternTime,
  federalHolidays,
  isBankingDay,
  lastCutOff,
  returnsEndMs,
  settlementDate,
  settlementMs,
} from '../../src/core/ach/banking-days.ts';
import { changeAddenda, MOST_CENTS_EACH, type NachaEntry, returnAddenda, writeNachaFile } from '../../src/core/ach/nacha-file.ts';
import { isDispute, NachaMalformed, readNachaFile } from '../../src/core/ach/nacha-reader.ts';
import { workedMs } from '../support/longest-turn.ts';
import { checkedByMoov } from '../support/moov-ach.ts';
import { fileOf, ORIGIN, TWO } from './ach-files.ts';

const FILE = `101 09100001912345678902611211430A094101WELLS FARGO BANK       EXAMPLE PAYMENTS INC           
5220EXAMPLE PAYMENTS                    1234567890CCDPAYOUT    261121261123   1091000010000001
622011401533123456789        0000099000PO7K2M9Q4T1    ACME COFFEE LLC         0091000010000001
632021000021000987654321     0002500050PO8R3N1W6X2    BLUE BIKE INC           0091000010000002
822000000200032401550000000000000000025990501234567890                         091000010000001
9000001000001000000020003240155000000000000000002599050                                       
${`${'9'.repeat(94)}\n`.repeat(4)}`;

describe('a bank account', () => {
  test.each([
    ['ach:021000021:1234', { routing: '021000021', account: '1234', kind: 'checking' }],
    ['ach:091000019:00012345678901234:savings', { routing: '091000019', account: '00012345678901234', kind: 'savings' }],
    ['ach:021000021:12345:checking', { routing: '021000021', account: '12345', kind: 'checking' }],
  ])('%s is read', (text, account) => expect(readBankAccount(text)).toEqual(account));

  test.each([
    'ach:021000022:12345',
    'ach:000000000:12345',
    'ach:02100002:12345',
    'ach:021000021:123',
    'ach:021000021:123456789012345678',
    'ach:021000021:12345:saving',
    'ach:021000021:12a45',
    'ach:021000021:12345:checking\n',
    'ACH:021000021:12345',
    'ba_1',
  ])('%s is refused', (text) => expect(readBankAccount(text)).toHaveProperty('problem'));

  test('any other last digit of a routing number is wrong', () => {
    const right = '0123456789'.split('').filter((digit) => isRouting(`02100002${digit}`));
    expect(right).toEqual(['1']);
  });
});

describe('banking days', () => {
  test('follow the calendar of the Federal Reserve', () => {
    expect(federalHolidays(2026)).toEqual(
      ['01-01', '01-19', '02-16', '05-25', '06-19', '07-04', '09-07', '10-12', '11-11', '11-26', '12-25'].map(
        (day) => `2026-${day}`,
      ),
    );
    // a Saturday is not observed, a Sunday is on the Monday after
    expect(isBankingDay('2026-07-03')).toBe(true);
    expect(isBankingDay('2027-07-05')).toBe(false);
    expect(isBankingDay('2026-11-21')).toBe(false);
    expect(settlementDate('2026-11-25')).toBe('2026-11-27');
    expect(settlementDate('2026-12-31')).toBe('2027-01-04');
  });

  test('end at 17:00 in New York, in summer and in winter, and on weekends on the Friday before', () => {
    for (const [now, end] of [
      ['2026-11-23T21:59:59.999Z', '2026-11-20T22:00:00.000Z'],
      ['2026-11-23T22:00:00.000Z', '2026-11-23T22:00:00.000Z'],
      ['2026-07-01T21:00:00.000Z', '2026-07-01T21:00:00.000Z'],
      ['2026-11-22T12:00:00.000Z', '2026-11-20T22:00:00.000Z'],
      ['2026-03-09T01:00:00.000Z', '2026-03-06T22:00:00.000Z'],
    ] as const)
      expect(new Date(lastCutOff(Date.parse(now))).toISOString()).toBe(end);
  });

  test('what settles on a day comes back until the second banking day after it has ended', () => {
    expect(new Date(settlementMs('2026-11-24')).toISOString()).toBe('2026-11-24T05:00:00.000Z');
    // Thanksgiving and the weekend lie between
    expect(new Date(returnsEndMs('2026-11-25')).toISOString()).toBe('2026-12-01T05:00:00.000Z');
    expect(easternTime(Date.parse('2026-07-01T03:59:00Z'))).toEqual({ date: '2026-06-30', time: '2359' });
  });
});

describe('a NACHA file', () => {
  test('is written character for character as the rules show it, and moov-io/ach accepts it', () => {
    expect(writeNachaFile(fileOf(TWO))).toBe(FILE);
    expect(checkedByMoov('-', FILE)).toMatchObject({ valid: true, errors: [], creditCents: 2_599_050, hash: 3_240_155 });
  });

  test('is read as it was written, whatever is in it, and moov-io/ach reads the same', () => {
    const routings = ['011401533', '021000021', '121042882', '091000019'];
    const entry = fc.record({
      transactionCode: fc.constantFrom(22 as const, 32 as const),
      routing: fc.constantFrom(...routings),
      account: fc.stringMatching(/^\d{4,17}$/),
      cents: fc.bigInt(1n, MOST_CENTS_EACH),
      id: fc.stringMatching(/^[0-9A-Z]{1,15}$/),
      name: fc.string({ unit: 'binary', minLength: 1, maxLength: 30 }).map((name) => `Shop ${name}`),
    });
    fc.assert(
      fc.property(fc.array(entry, { minLength: 1, maxLength: 12 }), (found) => {
        const entries = found.map((one, at) => ({ ...one, trace: `09100001${String(at + 1).padStart(7, '0')}` }));
        const text = writeNachaFile(fileOf(entries));
        const read = readNachaFile(text);
        const plain = ({
          routing,
          account,
          cents,
          id,
          trace,
        }: {
          routing: string;
          account: string;
          cents: bigint;
          id: string;
          trace: string;
        }) => [routing, account, cents, id, trace];
        expect(read.entries.map(plain)).toEqual(entries.map(plain));
        const moov = checkedByMoov('-', text);
        expect(moov.errors).toEqual([]);
        expect(moov.batches[0]?.entries.map((one) => [one.account, BigInt(one.cents), one.trace])).toEqual(
          entries.map(({ account, cents, trace }) => [account, cents, trace]),
        );
      }),
      { numRuns: 40 },
    );
  });

  test('with what does not fit its fields is not written', () => {
    for (const wrong of [
      { cents: MOST_CENTS_EACH + 1n },
      { routing: '0210000211' },
      { trace: '0910000100000011' },
      { cents: -1n },
    ])
      expect(() => writeNachaFile(fileOf([{ ...(TWO[0] as NachaEntry), ...wrong }]))).toThrow(RangeError);
  });

  const lines = FILE.trimEnd().split('\n');
  const changed = (at: number, from: number, text: string): string =>
    `${lines.map((line, n) => (n === at ? line.slice(0, from) + text + line.slice(from + text.length) : line)).join('\n')}\n`;
  test.each([
    ['batch hash off by one', changed(4, 10, '0003240156')],
    ['file hash off by one', changed(5, 21, '0003240156')],
    ['batch credit off by a cent', changed(4, 32, '000002599051')],
    ['file credit off by a cent', changed(5, 43, '000002599051')],
    ['debit total', changed(4, 20, '000000000001')],
    ['entry count', changed(5, 13, '00000003')],
    ['batch count', changed(5, 1, '000002')],
    ['block count', changed(5, 7, '000002')],
    ['format code', changed(0, 34, '094102')],
    ['check digit of a receiver', changed(2, 11, '4')],
    ['a letter in the amount', changed(2, 29, 'A')],
    ['a letter outside ASCII', changed(2, 54, 'É')],
    ['a trace number twice', changed(3, 79, '091000010000001')],
    ['control of another batch', changed(4, 87, '0000002')],
    ['an addenda that is not there', changed(3, 78, '1')],
    ['a short line', `${lines.map((line, n) => (n === 2 ? line.slice(1) : line)).join('\n')}\n`],
    ['no file control', `${[...lines.slice(0, 5), ...Array.from({ length: 5 }, () => '9'.repeat(94))].join('\n')}\n`],
    ['a batch without an end', `${[...lines.slice(0, 4), ...lines.slice(5), '9'.repeat(94)].join('\n')}\n`],
    ['nothing', ''],
  ])('that is wrong is not read: %s', (_, text) => expect(() => readNachaFile(text)).toThrow(NachaMalformed));

  test('of a bank is read: a return and a notice of change, as moov-io/ach reads them; CRLF is a line end too', () => {
    const of = { trace: '091000010000001', routing: '011401533' };
    const back: NachaEntry = { ...(TWO[0] as NachaEntry), transactionCode: 21, routing: '091000019', trace: '011401530000007' };
    const origin = { ...ORIGIN, bankRouting: '011401533' };
    const returned = writeNachaFile(fileOf([{ ...back, addenda: returnAddenda('R03', of) }], { origin }));
    expect(readNachaFile(returned.replaceAll('\n', '\r\n')).entries[0]).toMatchObject({
      returned: { code: 'R03', trace: of.trace },
      change: null,
      cents: 99_000n,
    });
    expect(checkedByMoov('-', returned)).toMatchObject({
      errors: [],
      batches: [{ entries: [{ category: 'Return', return: { code: 'R03', originalTrace: of.trace } }] }],
    });
    const notice = writeNachaFile(
      fileOf([{ ...back, cents: 0n, addenda: changeAddenda('C01', of, '1234567890') }], { origin, entryClass: 'COR' }),
    );
    expect(readNachaFile(notice).entries[0]).toMatchObject({ returned: null, change: { code: 'C01', trace: of.trace } });
    expect(checkedByMoov('-', notice)).toMatchObject({ errors: [], batches: [{ entries: [{ category: 'NOC' }] }] });
    expect(() => readNachaFile(returned.replace('799R03', '799X03'))).toThrow(NachaMalformed);
  });

  // a bank's tools, or a thief in its folder, lay down anything of up to 16 MiB
  test.each([
    ['empty lines', `101${'\n'.repeat(16_000_000)}`, /more than 100000 lines/],
    ['empty lines and a letter', `101${'\n'.repeat(16_000_000)}x`, /more than 100000 lines/],
    ['line ends of another system', `101${'\r\n'.repeat(8_000_000)}\r`, /more than 100000 lines/],
    ['characters and no line end, as many as it may have', '1'.repeat(94 * 100_000), /no file header/],
    ['characters and no line end', '1'.repeat(94 * 100_001), /more than 100000 lines/],
    ['half line ends', `101${'\r'.repeat(16_000_000)}\n`, /more than 100000 lines/],
  ])('with millions of %s is read in the time that its length takes', (_, content, why) => {
    const began = workedMs();
    expect(() => readNachaFile(content)).toThrow(why);
    expect(workedMs() - began).toBeLessThan(5_000);
  });

  test('that says R61 to R77 is about a dispute of two banks', () => {
    const codes = Array.from({ length: 99 }, (_, at) => `R${String(at + 1).padStart(2, '0')}`);
    const disputes = codes.filter(isDispute);
    expect([disputes.length, disputes[0], disputes.at(-1)]).toEqual([17, 'R61', 'R77']);
    expect(['C61', 'R610', 'R6'].filter(isDispute)).toEqual([]);
  });

  test('with as many batches as it may have lines is read in the time that its length takes', () => {
    const [header = '', start = '', , , end = ''] = lines;
    const control = `${end.slice(0, 4)}${'0'.repeat(40)}${end.slice(44)}`;
    const batches = (count: number): string => {
      const body = Array.from({ length: count }, () => [start, control]).flat();
      const blocks = String(Math.ceil((body.length + 2) / 10));
      const last = `9${String(count).padStart(6, '0')}${blocks.padStart(6, '0')}${'0'.repeat(42)}${' '.repeat(39)}`;
      const all = [header, ...body, last];
      return [...all, ...Array.from({ length: Number(blocks) * 10 - all.length }, () => '9'.repeat(94))].join('\n');
    };
    const readMs = (content: string): number => {
      const began = workedMs();
      expect(readNachaFile(content).entries).toEqual([]);
      return workedMs() - began;
    };
    readMs(batches(4_000));
    // quadratic, they took a hundred times as long
    expect(readMs(batches(49_990))).toBeLessThan(40 * readMs(batches(4_999)) + 50);
  });
});
