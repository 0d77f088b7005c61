// Reads NACHA files: ours, as a bank does, and the returns and notices of change that a bank sends. Nothing is believed: every count, total,
// hash and check digit is calculated again.
import { sum } from '../money.ts';
import { isRouting } from './bank-account.ts';
import { HASH_LIMIT } from './nacha-file.ts';

export type ReadEntry = {
  readonly transactionCode: string;
  readonly routing: string;
  readonly account: string;
  readonly cents: bigint;
  readonly id: string;
  readonly name: string;
  readonly trace: string;
  /** A bank sends the entry back: why, and the trace number that we had given it. */
  readonly returned: { readonly code: string; readonly trace: string } | null;
  /** A bank wants other details to be used; no money moves. */
  readonly change: { readonly code: string; readonly trace: string } | null;
};
export type ReadFile = {
  readonly bankRouting: string;
  readonly companyId: string;
  /** yymmdd */
  readonly date: string;
  readonly modifier: string;
  readonly entries: readonly (ReadEntry & { /** yymmdd */ readonly effective: string })[];
};

/** A file that is not what NACHA's rules say: which record, and why. */
export class NachaMalformed extends Error {
  override readonly name = 'NachaMalformed';
}

/** How every NACHA file begins, after what tools for text may put before it. */
const NACHA_BEGINS = '101';
/** What each says in its first record: how long records are, how many make a block, and the format. It tells one whose beginning is damaged. */
const NACHA_FORMAT = '094101';
/** As much of a file as shows that. */
export const NACHA_START = 1_024;
/** The mark by which some tools for text say that a file is UTF-8, read as one character a byte. */
const MARK = '\u00ef\u00bb\u00bf';
const LINE = 94;
/** Blanks at the end of a record, which some tools for text cut off, are put back; all that counts of the first one stands before, and of others more. */
const LEAST = 40;
const BLOCK = 10;
const MOST_LINES = 100_000;
const RETURN_CODE = /^R\d\d$/;
/** The bank that sent a payment does not take its return (R61 to R70), or is answered by the other one (R71 to R77). */
const DISPUTE_CODE = /^R(6[1-9]|7[0-7])$/;
const CHANGE_CODE = /^C\d\d$/;
/** An addenda that says what became of an entry: a notice of change, or a return. */
const ANSWER = /^79[89]/;
/** Transaction codes of what comes back, or asks for other details: an addenda must say which, or a return with one wrong digit would be none. */
const ANSWERING = /^[2-5][16]$/;
/** Lines that fill the last block. */
const FILL = /^9+ *$/;
/** Transaction codes that move money out of the receiver's account. */
const DEBITS = new Set(['26', '27', '28', '36', '37', '38']);

type Totals = { count: number; hash: bigint; debit: bigint; credit: bigint };
const none = (): Totals => ({ count: 0, hash: 0n, debit: 0n, credit: 0n });

/** Whether a code of a return says that two banks are at odds about an earlier one, and not that the payment comes back. */
export function isDispute(code: string): boolean {
  return DISPUTE_CODE.test(code);
}

/** Whether a file may be one of NACHA's, by its first {@link NACHA_START} bytes as one character each. */
export function beginsAsNacha(start: string): boolean {
  // some tools for text write two bytes a character
  if (start.slice(0, NACHA_START).replaceAll('\0', '').includes(NACHA_FORMAT)) return true;
  const text = start.startsWith(MARK) ? start.slice(MARK.length) : start;
  return text.trimStart().startsWith(NACHA_BEGINS);
}

/**
 * Throws NachaMalformed. Line ends may be LF, CR, both or missing, and so may the lines that fill the last block; blanks at the ends of lines, and lines
 * of nothing else, say nothing: what is sent as a fixed block by one bank goes through tools for text at another.
 */
export function readNachaFile(content: string): ReadFile {
  const all = recordsOf(content);
  const end = all.findLastIndex((record) => !FILL.test(record));
  const records = all.slice(0, end + 1);
  for (const [at, record] of records.entries())
    if (!/^[\x20-\x7e]*$/.test(record) || record.length !== LINE)
      throw new NachaMalformed(`record ${at + 1} has not ${LINE} characters of ASCII`);
  const [header = '', ...body] = records.slice(0, end);
  if (!header.startsWith(NACHA_BEGINS) || header.slice(34, 40) !== NACHA_FORMAT)
    throw new NachaMalformed('record 1 is no file header');
  const batches = readBatches(body);
  checkFileControl(records[end] ?? '', batches, { least: blocks(records), most: blocks(all) });
  return {
    bankRouting: header.slice(4, 13),
    companyId: header.slice(13, 23).trim(),
    date: header.slice(23, 29),
    modifier: header.slice(33, 34),
    entries: batches.flatMap(({ entries }) => entries),
  };
}

/** How many blocks records make; they may be filled by more than is needed. */
const blocks = (records: readonly string[]): number => Math.ceil(records.length / BLOCK);

/** Each has as many characters as a line at most, as moov-io/ach cuts them: what a line has more begins another record. */
function recordsOf(content: string): readonly string[] {
  // a line end of three characters leaves an empty line
  const lines = content.split(/\r\n?|\n/, 2 * MOST_LINES + 1);
  const records: string[] = [];
  for (const line of lines)
    for (let at = 0; at < line.length; at += LINE) {
      const record = line.slice(at, at + LINE);
      if (record.trimEnd() !== '') records.push(record.length >= LEAST ? record.padEnd(LINE) : record);
    }
  if (lines.length > 2 * MOST_LINES || records.length > MOST_LINES)
    throw new NachaMalformed(`the file has more than ${MOST_LINES} lines`);
  return records;
}

type Batch = { readonly entries: readonly ReadFile['entries'][number][]; readonly totals: Totals };

function readBatches(body: readonly string[]): readonly Batch[] {
  const batches: Batch[] = [];
  for (let at = 0; at < body.length; ) {
    const start = body[at] as string;
    let end = at + 1;
    while (end < body.length && !body[end]?.startsWith('8')) end++;
    if (!start.startsWith('5') || end >= body.length) throw new NachaMalformed(`record ${at + 2} begins no batch that ends`);
    batches.push(readBatch(start, body.slice(at + 1, end), body[end] as string));
    at = end + 1;
  }
  return batches;
}

function readBatch(header: string, records: readonly string[], control: string): Batch {
  const totals = none();
  const entries: ReadFile['entries'][number][] = [];
  for (let at = 0; at < records.length; at++) {
    const line = records[at] as string;
    if (!line.startsWith('6')) throw new NachaMalformed(`a record of type ${line[0]} stands where an entry belongs`);
    const addenda: string[] = [];
    while (line[78] === '1' && records[at + 1]?.startsWith('7')) addenda.push(records[++at] as string);
    const entry = readEntry(line, addenda);
    totals.count += 1 + addenda.length;
    totals.hash += BigInt(entry.routing.slice(0, 8));
    if (DEBITS.has(entry.transactionCode)) totals.debit += entry.cents;
    else totals.credit += entry.cents;
    const last = entries.at(-1);
    if (last !== undefined && last.trace >= entry.trace) throw new NachaMalformed(`trace number ${entry.trace} does not rise`);
    entries.push({ ...entry, effective: header.slice(69, 75) });
  }
  checkTotals(
    totals,
    { count: control.slice(4, 10), hash: control.slice(10, 20), debit: control.slice(20, 32), credit: control.slice(32, 44) },
    'a batch',
  );
  if (header.slice(1, 4) !== control.slice(1, 4) || header.slice(79, 94) !== control.slice(79, 94))
    throw new NachaMalformed('the control record of a batch is of another batch');
  return { entries, totals };
}

function readEntry(line: string, addenda: readonly string[]): ReadEntry {
  const routing = number(line, 3, 12);
  if (!isRouting(routing)) throw new NachaMalformed(`the check digit of ${routing} is wrong`);
  const trace = number(line, 79, 94);
  const transactionCode = number(line, 1, 3);
  const answers = addenda.filter((one) => ANSWER.test(one));
  // what else may follow (remittance) ends with the last seven digits of its entry
  const isOfEntry = (one: string): boolean =>
    answers.includes(one) ? one.slice(79) === trace : /^7\d\d/.test(one) && one.slice(87) === trace.slice(8);
  if ((line[78] === '1' && addenda.length === 0) || answers.length > 1 || !addenda.every(isOfEntry))
    throw new NachaMalformed(`what follows entry ${trace} is no addenda of it`);
  const [answer] = answers;
  if (answer === undefined && ANSWERING.test(transactionCode))
    throw new NachaMalformed(`entry ${trace} comes back, and nothing says why`);
  const said = answer === undefined ? null : { code: answer.slice(3, 6), trace: number(answer, 6, 21) };
  const isReturn = answer?.startsWith('799') === true;
  const isChange = answer?.startsWith('798') === true;
  if (said !== null && !(isReturn ? RETURN_CODE : CHANGE_CODE).test(said.code))
    throw new NachaMalformed(`entry ${trace} has a code that is none`);
  return {
    transactionCode,
    routing,
    account: line.slice(12, 29).trim(),
    cents: BigInt(number(line, 29, 39)),
    id: line.slice(39, 54).trim(),
    name: line.slice(54, 76).trim(),
    trace,
    returned: isReturn ? said : null,
    change: isChange ? said : null,
  };
}

function number(line: string, from: number, to: number): string {
  const found = line.slice(from, to);
  if (!/^\d+$/.test(found)) throw new NachaMalformed(`columns ${from + 1} to ${to} of a record of type ${line[0]} are no number`);
  return found;
}

function checkTotals(totals: Totals, said: Readonly<Record<keyof Totals, string>>, what: string): void {
  const found: Readonly<Record<keyof Totals, bigint>> = {
    ...totals,
    count: BigInt(totals.count),
    hash: totals.hash % HASH_LIMIT,
  };
  for (const name of ['count', 'hash', 'debit', 'credit'] as const) {
    if (!/^\d+$/.test(said[name]) || BigInt(said[name]) !== found[name])
      throw new NachaMalformed(`the ${name} of ${what} is ${found[name]}, its control record says ${said[name]}`);
  }
}

function checkFileControl(
  control: string,
  batches: readonly Batch[],
  made: { readonly least: number; readonly most: number },
): void {
  if (!control.startsWith('9')) throw new NachaMalformed('the file has no control record');
  const totals: Totals = {
    count: batches.reduce((count, batch) => count + batch.totals.count, 0),
    hash: sum(batches.map((batch) => batch.totals.hash)),
    debit: sum(batches.map((batch) => batch.totals.debit)),
    credit: sum(batches.map((batch) => batch.totals.credit)),
  };
  const said = {
    count: control.slice(13, 21),
    hash: control.slice(21, 31),
    debit: control.slice(31, 43),
    credit: control.slice(43, 55),
  };
  checkTotals(totals, said, 'the file');
  const saidBlocks = Number(control.slice(7, 13));
  if (Number(control.slice(1, 7)) !== batches.length || !(saidBlocks >= made.least && saidBlocks <= made.most))
    throw new NachaMalformed('the file says another number of batches or blocks');
}
