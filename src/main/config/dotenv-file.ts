// The settings file `.env`: NAME=value lines beside package.json. Values that the reader must not know (another process's secrets) are
// never decoded from the file's bytes.
import { readFileSync } from 'node:fs';

/** A value as written in the file, and the line it begins on. */
export type FileSetting = { readonly value: string; readonly line: number };

export type SettingsFile = {
  readonly path: string;
  /** The wanted ones; of a duplicate name the last counts. */
  readonly settings: ReadonlyMap<string, FileSetting>;
  /** Every name in the file with its line, including those whose values were not read. */
  readonly names: ReadonlyMap<string, number>;
  /** What is wrong with the file, one line each; never a value. */
  readonly problems: readonly string[];
};

const TAB = 0x09;
const NEWLINE = 0x0a;
const RETURN = 0x0d;
const SPACE = 0x20;
const DOUBLE_QUOTE = 0x22;
const HASH = 0x23;
const SINGLE_QUOTE = 0x27;
const EQUALS = 0x3d;
const BACKSLASH = 0x5c;
const BYTE_ORDER_MARK = Buffer.from('\uFEFF');
const ESCAPED: Readonly<Record<string, string>> = { n: '\n', r: '\r', t: '\t', '"': '"', '\\': '\\' };
const ACCEPTED = 'accepted is NAME=value, a comment that begins with #, or an empty line';

/**
 * Reads the file. A value is taken literally up to white space and `#`, or in quotation marks, where it may span several lines; within
 * double ones \n, \r, \t, \" and \\ are understood. `export ` before a name is skipped. Nothing is expanded.
 * @param wants which values to read from the file; the bytes of all others are wiped unread
 * @returns null when there is no such file
 */
export function readSettingsFile(path: string, wants: (name: string) => boolean): SettingsFile | null {
  let bytes: Buffer;
  try {
    bytes = readFileSync(path);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT') return null;
    return { path, settings: new Map(), names: new Map(), problems: [`${path} cannot be read (${code})`] };
  }
  try {
    return { path, ...parse(bytes, path, wants) };
  } finally {
    bytes.fill(0);
  }
}

function parse(bytes: Buffer, path: string, wants: (name: string) => boolean): Omit<SettingsFile, 'path'> {
  const settings = new Map<string, FileSetting>();
  const names = new Map<string, number>();
  const problems: string[] = [];
  let at = bytes.subarray(0, 3).equals(BYTE_ORDER_MARK) ? 3 : 0;
  for (let line = 1; at < bytes.length; ) {
    const begins = skipBlanks(bytes, at);
    const end = endOfLine(bytes, begins);
    if (begins === end || bytes[begins] === HASH) {
      at = end + 1;
      line++;
      continue;
    }
    const name = readName(bytes, begins, end);
    const found = name === null ? { fault: ACCEPTED } : readValue(bytes, name.next, end);
    if (name !== null) names.set(name.text, line);
    if ('fault' in found) problems.push(`${path}, line ${line}: ${found.fault}`);
    else if (name !== null && wants(name.text)) {
      const value = decodedValue(bytes, found);
      if (value === null) problems.push(`${path}, line ${line}: the value of ${name.text} is not text in UTF-8`);
      else settings.set(name.text, { value, line });
    }
    const next = 'fault' in found ? end : found.lineEnd;
    line += newlines(bytes, at, next) + 1;
    at = next + 1;
  }
  return { settings, names, problems };
}

/** A name and where its value begins; null when the line does not have the form NAME=value. */
function readName(bytes: Buffer, from: number, end: number): { readonly text: string; readonly next: number } | null {
  const exported = bytes.subarray(from, from + 7).toString('latin1') === 'export ';
  const begins = exported ? skipBlanks(bytes, from + 7) : from;
  let stop = begins;
  while (stop < end && isNameByte(bytes[stop]!, stop === begins)) stop++;
  const equals = skipBlanks(bytes, stop);
  if (stop === begins || equals >= end || bytes[equals] !== EQUALS) return null;
  return { text: bytes.toString('latin1', begins, stop), next: equals + 1 };
}

type Found = { readonly from: number; readonly to: number; readonly quote: number | null; readonly lineEnd: number };

/** Where a value begins and ends. */
function readValue(bytes: Buffer, from: number, end: number): Found | { readonly fault: string } {
  const begins = skipBlanks(bytes, from);
  const quote = bytes[begins];
  if (begins >= end || (quote !== DOUBLE_QUOTE && quote !== SINGLE_QUOTE)) {
    return { from: begins, to: plainEnd(bytes, from, end), quote: null, lineEnd: end };
  }
  let stop = begins + 1;
  while (stop < bytes.length && bytes[stop] !== quote) stop += quote === DOUBLE_QUOTE && bytes[stop] === BACKSLASH ? 2 : 1;
  if (stop >= bytes.length) return { fault: 'the quotation mark is not closed' };
  const rest = skipBlanks(bytes, stop + 1);
  const lineEnd = endOfLine(bytes, rest);
  if (rest < lineEnd && bytes[rest] !== HASH) return { fault: 'only a comment may follow the closing quotation mark' };
  return { from: begins + 1, to: stop, quote, lineEnd };
}

/** Where a value without quotation marks ends: before a comment and the white space in front of it. */
function plainEnd(bytes: Buffer, from: number, end: number): number {
  let stop = from;
  while (stop < end && !(bytes[stop] === HASH && isBlank(bytes[stop - 1]))) stop++;
  while (stop > from && isBlank(bytes[stop - 1])) stop--;
  return Math.max(stop, Math.min(skipBlanks(bytes, from), end));
}

function decodedValue(bytes: Buffer, { from, to, quote }: Found): string | null {
  let text: string;
  try {
    text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes.subarray(from, to));
  } catch {
    return null;
  }
  if (text.includes('\0')) return null;
  return quote === DOUBLE_QUOTE ? text.replace(/\\([nrt"\\])/g, (_, letter: string) => ESCAPED[letter] ?? letter) : text;
}

function skipBlanks(bytes: Buffer, from: number): number {
  let at = from;
  while (at < bytes.length && isBlank(bytes[at])) at++;
  return at;
}

function endOfLine(bytes: Buffer, from: number): number {
  const found = bytes.indexOf(NEWLINE, from);
  return found === -1 ? bytes.length : found;
}

function newlines(bytes: Buffer, from: number, to: number): number {
  let count = 0;
  for (let at = from; at < to; at++) if (bytes[at] === NEWLINE) count++;
  return count;
}

const isBlank = (byte: number | undefined): boolean => byte === SPACE || byte === TAB || byte === RETURN;

/** Letters, digits and _, no digit first. */
function isNameByte(byte: number, first: boolean): boolean {
  const isDigit = byte >= 0x30 && byte <= 0x39;
  const isLetter = (byte >= 0x41 && byte <= 0x5a) || (byte >= 0x61 && byte <= 0x7a);
  return isLetter || byte === 0x5f || (isDigit && !first);
}
