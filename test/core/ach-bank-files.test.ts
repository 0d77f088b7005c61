// Files of banks as they come: as moov-io/ach reads them, also where tools for text were at them, and what is refused.
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { type NachaEntry, returnAddenda, writeNachaFile } from '../../src/core/ach/nacha-file.ts';
import { beginsAsNacha, NachaMalformed, readNachaFile } from '../../src/core/ach/nacha-reader.ts';
import { checkedByMoov } from '../support/moov-ach.ts';
import { fileOf, ORIGIN, TWO } from './ach-files.ts';

describe('a NACHA file of a bank', () => {
  const of = { trace: '091000010000001', routing: '011401533' };
  const back: NachaEntry = { ...(TWO[0] as NachaEntry), transactionCode: 21, routing: '091000019', trace: '011401530000007' };
  const second: NachaEntry = {
    ...back,
    trace: '011401530000008',
    addenda: returnAddenda('R02', { ...of, trace: '091000010000002' }),
  };
  const origin = { ...ORIGIN, bankRouting: '011401533' };
  const returned = writeNachaFile(fileOf([{ ...back, addenda: returnAddenda('R03', of) }], { origin }));
  const withTwo = writeNachaFile(fileOf([{ ...back, addenda: returnAddenda('R03', of) }, second], { origin }));
  const isFill = (line: string): boolean => /^9+$/.test(line);
  const linesOf = (text: string): string[] => text.trimEnd().split('\n');
  const recordsIn = (text: string): string[] => linesOf(text).filter((line) => !isFill(line));
  /** One less is counted, and the entry announces none. */
  const withoutAddenda = (text: string): string =>
    recordsIn(text)
      .filter((line) => !line.startsWith('799'))
      .map((line) => (line.startsWith('6') ? `${line.slice(0, 78)}0${line.slice(79)}` : line))
      .map((line) => line.replace(/^(8\d{3})000002/, '$1000001').replace(/^(9.{12})00000002/, '$100000001'))
      .join('\n');
  const codes = (text: string) => readNachaFile(text).entries.map(({ returned: said }) => said?.code ?? null);
  const moovCodes = (text: string) =>
    checkedByMoov('-', text).batches.flatMap(({ entries }) => entries.map((entry) => entry.return?.code));

  test.each([
    [
      'without the lines that fill its last block',
      linesOf(withTwo)
        .filter((line) => !isFill(line))
        .join('\n'),
    ],
    [
      'without the blanks at the ends of its lines',
      linesOf(withTwo)
        .map((line) => line.trimEnd())
        .join('\r\n'),
    ],
    [
      'whose header names nobody, without its blanks',
      linesOf(withTwo)
        .map((line, at) => (at === 0 ? line.slice(0, 40) : line))
        .join('\n'),
    ],
    ['without line ends', linesOf(withTwo).join('')],
    ['without line ends and the blanks at its end', recordsIn(withTwo).join('').trimEnd()],
    ['with CR alone at the ends of its lines', linesOf(withTwo).join('\r')],
    ['with CR twice at the ends of its lines', linesOf(withTwo).join('\r\r\n')],
    ['with empty lines', `\r\n${linesOf(withTwo).join('\n\n')}\n`],
    ['with a line of blanks after it', `${withTwo}${' '.repeat(94)}\n`],
    ['whose last block is filled in part', linesOf(withTwo).slice(0, 9).join('\n')],
    ['whose last block is filled by blanks', [...recordsIn(withTwo), ' '.repeat(94)].join('\n')],
    [
      'whose last block is filled by shorter lines',
      linesOf(withTwo)
        .map((line) => (isFill(line) ? line.slice(9) : line))
        .join('\n'),
    ],
    ['that is filled by a block too much', [...linesOf(withTwo), ...Array<string>(10).fill('9'.repeat(94))].join('\n')],
  ])('is read %s, as moov-io/ach does', (_, text) => {
    expect(codes(text)).toEqual(['R03', 'R02']);
    expect(moovCodes(text)).toEqual(['R03', 'R02']);
  });

  test('is read with blanks after each of its lines', () => {
    const wide = linesOf(withTwo).map((line) => line.padEnd(100));
    expect(codes(wide.join('\n'))).toEqual(['R03', 'R02']);
  });

  test.each([
    [
      'one of whose lines is too long',
      linesOf(returned)
        .map((line, at) => (at === 2 ? `${line}1` : line))
        .join('\n'),
    ],
    ['with another file after it', `${returned}${returned}`],
    ['with something after its end that is no fill', `${recordsIn(returned).join('\n')}\n\x1a`],
    ['that says another number of blocks', returned.replace(/\n9000001000001/, '\n9000001000002')],
    ['of which a return has one wrong digit in what says that it is one', returned.replace('\n799R03', '\n769R03')],
    ['of which a return has no whole trace number of ours', returned.replace('799R03091000010000001', '799R0309100001000000 ')],
    ['of which a return has no addenda any more', `${withoutAddenda(returned)}`],
    ['whose end is cut off', recordsIn(returned).join('').slice(0, -50)],
    [
      'whose last line lacks more than blanks',
      linesOf(returned)
        .map((line) => (line.startsWith('9000') ? line.slice(0, 54) : line))
        .join('\n'),
    ],
    ['with addenda that an entry does not announce', returned.replace(/1(011401530000007\n7)/, '0$1')],
    ['with addenda of another entry', returned.replace(/011401530000007\n8/, '011401530000009\n8')],
    ['with addenda of no kind', returned.replace('\n799', '\n7X9')],
  ])('is not read %s', (_, text) => {
    expect(() => readNachaFile(text)).toThrow(NachaMalformed);
  });

  test('with as many lines as would look like one without line ends is read', () => {
    const entries = Array.from({ length: 91 }, (_, at) => ({
      ...(TWO[0] as NachaEntry),
      trace: `09100001${String(at + 1).padStart(7, '0')}`,
    }));
    const text = linesOf(writeNachaFile(fileOf(entries)))
      .filter((line) => !isFill(line))
      .join('\n');
    expect([text.length % 94, readNachaFile(text).entries.length]).toEqual([0, 91]);
  });

  test.each([
    ['as it is', withTwo, true],
    ['after empty lines', `\r\n\n${withTwo}`, true],
    ['after the mark of UTF-8', Buffer.from(`\ufeff${withTwo}`).toString('latin1'), true],
    ['after other words', `ACK ${withTwo}`, true],
    ['whose first digit is another one', `2${withTwo.slice(1)}`, true],
    ['that lacks its first character', withTwo.slice(1), true],
    ['of two bytes a character', Buffer.from(`\ufeff${withTwo}`, 'utf16le').toString('latin1'), true],
    ['that is none', 'ACK 2026-06-02 everything is fine', false],
    ['that is empty', '', false],
  ])('may be what begins %s: %#', (_, text, may) => {
    expect(beginsAsNacha(text)).toBe(may);
  });

  const remittance = (trace: string): string => `705${'INVOICE 17'.padEnd(80)}0001${trace.slice(8)}`;
  const beside = (trace: string): string =>
    linesOf(withTwo)
      .map((line, at) => (at === 2 ? line.replace(/^621/, '622') : at === 3 ? remittance(trace) : line))
      .join('\n');
  test('with remittance of an entry that is no return is read: the returns beside it count', () => {
    expect(codes(beside(back.trace))).toEqual([null, 'R02']);
    expect(() => readNachaFile(beside(second.trace))).toThrow(NachaMalformed);
  });

  test('with several addenda of an entry is read, as long as one of them at most says what became of it', () => {
    const others = (text: string, ...more: readonly string[]): string => {
      const found = linesOf(text).filter((line) => !isFill(line));
      const count = (line: string, from: number, width: number): string =>
        line.slice(0, from) +
        String(Number(line.slice(from, from + width)) + more.length).padStart(width, '0') +
        line.slice(from + width);
      const [control = '', last = ''] = found.splice(-2);
      return [...found, ...more, count(control, 4, 6), count(last, 13, 8)].join('\n');
    };
    expect(codes(others(returned, remittance(back.trace), remittance(back.trace)))).toEqual(['R03']);
    expect(() => readNachaFile(others(returned, linesOf(returned)[3] as string))).toThrow(NachaMalformed);
  });

  /** What tools for text do to a file. */
  const layouts = fc.record({
    ending: fc.constantFrom('\n', '\r', '\r\n', '\r\r\n', '\n\n', ''),
    fill: fc.integer({ min: 0, max: 12 }),
    isTrimmed: fc.boolean(),
  });
  /** A character that is another one, is missing or is one too much, and where. */
  const damages = fc.array(
    fc.record({ at: fc.nat(), kind: fc.constantFrom('other', 'less', 'more'), as: fc.constantFrom(...'0123456789 R\n\r') }),
    { maxLength: 2 },
  );
  test('that is damaged is read as moov-io/ach reads it, where both read it', { timeout: 60_000 }, () => {
    const said = (text: string): ReturnType<typeof readNachaFile>['entries'] | null => {
      try {
        return readNachaFile(text).entries;
      } catch (error) {
        if (error instanceof NachaMalformed) return null;
        throw error;
      }
    };
    let [read, refused] = [0, 0];
    fc.assert(
      fc.property(layouts, damages, ({ ending, fill, isTrimmed }, all) => {
        const records = [...recordsIn(withTwo), ...Array<string>(fill).fill('9'.repeat(94))];
        const whole = records.map((line) => (isTrimmed && ending !== '' ? line.trimEnd() : line)).join(ending);
        const text = all.reduce((now, { at, kind, as }) => {
          const place = at % now.length;
          return `${now.slice(0, place)}${kind === 'less' ? '' : as}${now.slice(kind === 'more' ? place : place + 1)}`;
        }, whole);
        const ours = said(text);
        if (all.length === 0) expect(ours).not.toBeNull();
        if (ours === null) {
          refused += 1;
          return;
        }
        const { batches, errors } = checkedByMoov('-', text);
        // of a file that it refuses, for a header or a code that is none, it leaves out what it likes
        if (errors.some((error) => !error.startsWith('layout: '))) return;
        read += 1;
        const moovs = batches
          .flatMap(({ entries }) => entries)
          .map(({ cents, return: one }) => [cents, one?.code, one?.originalTrace]);
        expect(ours.map(({ cents, returned: one }) => [Number(cents), one?.code, one?.trace])).toEqual(moovs);
      }),
      // others were tried; one that fails by chance would stop whoever has changed something else
      { numRuns: 400, seed: 19 },
    );
    expect(Math.min(read, refused)).toBeGreaterThan(40);
  });
});
