// Writes NACHA files: lines of 94 characters, a header, one batch, a control record, padded to blocks of ten lines.
import { sum } from '../money.ts';

/** One line of the batch; amounts in cents. */
export type NachaEntry = {
  /** 22 and 32: a credit to a checking or savings account; 21 and 31: one that comes back, or a notice about it. */
  readonly transactionCode: 21 | 22 | 31 | 32;
  readonly routing: string;
  readonly account: string;
  readonly cents: bigint;
  /** Our reference, at most 15 characters. */
  readonly id: string;
  readonly name: string;
  /** 15 digits, rising in a file. */
  readonly trace: string;
  /** What follows the entry: type and content up to its trace number, 78 characters. */
  readonly addenda?: Addenda;
};
type Addenda = { readonly type: '98' | '99'; readonly content: string };

/** The two banks' and the company's names as the header has them. */
export type AchOrigin = {
  /** The routing number of our bank. */
  readonly bankRouting: string;
  readonly bankName: string;
  /** Ten characters that our bank has given the company. */
  readonly companyId: string;
  readonly companyName: string;
};

export type NachaFile = {
  readonly origin: AchOrigin;
  /** yyyy-mm-dd and HHMM, Eastern Time. */
  readonly date: string;
  readonly time: string;
  /** A to Z, 0 to 9: of one day, each file has another. */
  readonly modifier: string;
  /** CCD: to a company; COR: a notice of change. */
  readonly entryClass: 'CCD' | 'COR';
  readonly description: string;
  /** yyyy-mm-dd: the day on which it is to settle. */
  readonly effective: string;
  readonly entries: readonly NachaEntry[];
};

const LINE = 94;
const BLOCK = 10;
const CREDITS_ONLY = '220';
export const HASH_LIMIT = 10_000_000_000n;
/** What the fields of an entry and of a file's control record can hold. */
export const MOST_CENTS_EACH = 9_999_999_999n;
export const MOST_CENTS_TOGETHER = 999_999_999_999n;

/** Left-justified text: capitals, digits and signs of ASCII; anything else becomes a space. */
function text(value: string, width: number): string {
  const plain = value
    .normalize('NFKD')
    .replace(/[\u0300-\u036f]/g, '')
    .replace(/[^\x20-\x7e]/g, ' ');
  return plain.toUpperCase().slice(0, width).padEnd(width);
}

/** Right-justified number; throws when it has more digits than the field. */
function digits(value: bigint | number | string, width: number): string {
  const written = String(value);
  if (!/^\d+$/.test(written) || written.length > width) throw new RangeError(`a field of ${width} digits cannot hold its value`);
  return written.padStart(width, '0');
}

const day = (date: string): string => date.replaceAll('-', '').slice(2);

/** The text of a file, lines ended by a line feed. Throws RangeError for what does not fit its field. */
export function writeNachaFile(file: NachaFile): string {
  const { origin, entries } = file;
  const odfi = origin.bankRouting.slice(0, 8);
  const company = digits(origin.companyId, 10);
  const records = entries.flatMap(entryLines);
  const hash = digits(sum(entries.map(({ routing }) => BigInt(routing.slice(0, 8)))) % HASH_LIMIT, 10);
  const credit = digits(sum(entries.map(({ cents }) => cents)), 12);
  const debit = digits(0, 12);
  const batch = digits(1, 7);
  const lines = [
    `101 ${digits(origin.bankRouting, 9)}${company}${day(file.date)}${digits(file.time, 4)}${file.modifier}094101${text(origin.bankName, 23)}${text(origin.companyName, 23)}${text('', 8)}`,
    `5${CREDITS_ONLY}${text(origin.companyName, 16)}${text('', 20)}${company}${file.entryClass}${text(file.description, 10)}${day(file.date)}${day(file.effective)}   1${odfi}${batch}`,
    ...records,
    `8${CREDITS_ONLY}${digits(records.length, 6)}${hash}${debit}${credit}${company}${text('', 25)}${odfi}${batch}`,
    `9${digits(1, 6)}${digits(Math.ceil((records.length + 4) / BLOCK), 6)}${digits(records.length, 8)}${hash}${debit}${credit}${text('', 39)}`,
  ];
  while (lines.length % BLOCK !== 0) lines.push('9'.repeat(LINE));
  const wrong = lines.find((line) => line.length !== LINE);
  if (wrong !== undefined) throw new RangeError(`a record of type ${wrong[0]} has ${wrong.length} characters`);
  return `${lines.join('\n')}\n`;
}

function entryLines(entry: NachaEntry): readonly string[] {
  const { transactionCode, routing, account, cents, id, name, trace, addenda } = entry;
  const line = `6${transactionCode}${digits(routing, 9)}${text(account, 17)}${digits(cents, 10)}${text(id, 15)}${text(name, 22)}  ${addenda === undefined ? 0 : 1}${digits(trace, 15)}`;
  return addenda === undefined ? [line] : [line, `7${addenda.type}${text(addenda.content, 76)}${digits(trace, 15)}`];
}

/** What a bank says of an entry: the original trace number, the bank it was for, and a text of at most 44 characters. */
export function returnAddenda(code: string, of: { readonly trace: string; readonly routing: string }): Addenda {
  return { type: '99', content: `${code}${of.trace}${' '.repeat(6)}${of.routing.slice(0, 8)}` };
}

/** @param corrected the details that the bank wants to be used from now on, at most 29 characters */
export function changeAddenda(
  code: string,
  of: { readonly trace: string; readonly routing: string },
  corrected: string,
): Addenda {
  return { type: '98', content: `${code}${of.trace}${' '.repeat(6)}${of.routing.slice(0, 8)}${corrected.slice(0, 29)}` };
}
