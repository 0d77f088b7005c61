// The simulated bank: takes NACHA files, pays their entries by the clock or when it is told to, sends entries back, and asks for changes. What
// it has answered for is a line of its journal, on disk.
import { easternTime, returnsEndMs, settlementDate, settlementMs } from '../../core/ach/banking-days.ts';
import { changeAddenda, type NachaEntry, returnAddenda, writeNachaFile } from '../../core/ach/nacha-file.ts';
import { NachaMalformed, type ReadEntry, readNachaFile } from '../../core/ach/nacha-reader.ts';
import { NO_TROUBLE, type Trouble } from '../trouble.ts';
import { openJournal } from '../utxo/journal.ts';

/** What the simulated bank is called, and what it knows of its only customer. */
export const SANDBOX_BANK = {
  bankRouting: '091000019',
  bankName: 'SANDBOX BANK',
  companyId: '1234567890',
  companyName: 'BURSAR SANDBOX',
} as const;

type TakenFile = {
  readonly name: string;
  readonly sha256: string;
  readonly content: string;
  readonly entries: readonly ReadEntry[];
  readonly settlesOn: string;
  isOver: boolean;
};
type Report = { readonly id: string } & (
  | { readonly kind: 'nacha'; readonly content: string }
  | { readonly kind: 'over'; readonly file: string }
);
type Line =
  | { readonly kind: 'file'; readonly name: string; readonly sha256: string; readonly content: string; readonly atMs: number }
  | { readonly kind: 'refused'; readonly name: string; readonly sha256: string; readonly reason: string }
  | { readonly kind: 'cut_off'; readonly atMs: number }
  | { readonly kind: 'over'; readonly name: string }
  | { readonly kind: 'answer'; readonly trace: string; readonly code: string; readonly isReturn: boolean; readonly atMs: number }
  | { readonly kind: 'trouble'; readonly trouble: Trouble }
  | { readonly kind: 'read'; readonly id: string };

export type FileAnswer =
  | { readonly state: 'accepted' | 'duplicate' | 'never' }
  | { readonly state: 'refused'; readonly reason: string };
export type Arrival = { readonly trace: string; readonly cents: bigint };

export type Bank = ReturnType<typeof openBank>;

/** @param path of its journal. Throws DamagedFile */
export function openBank(path: string, now: () => number) {
  const files = new Map<string, TakenFile>();
  const refused = new Map<string, string>();
  const returned = new Set<string>();
  let reports: Report[] = [];
  let number = 0;
  let cutOffMs: number | null = null;
  let trouble: Trouble = NO_TROUBLE;

  function apply(line: Line): void {
    if (line.kind === 'file') {
      const { entries } = readNachaFile(line.content);
      const settlesOn = settlementDate(easternTime(line.atMs).date);
      files.set(line.sha256, { name: line.name, sha256: line.sha256, content: line.content, entries, settlesOn, isOver: false });
    } else if (line.kind === 'refused') refused.set(line.sha256, line.reason);
    else if (line.kind === 'cut_off') cutOffMs = line.atMs;
    else if (line.kind === 'trouble') trouble = line.trouble;
    else if (line.kind === 'read') reports = reports.filter(({ id }) => id !== line.id);
    else if (line.kind === 'over') {
      for (const file of files.values()) if (file.name === line.name) file.isOver = true;
      report((id) => ({ id, kind: 'over', file: line.name }));
    } else {
      const found = entryOf(line.trace) as ReadEntry;
      if (line.isReturn) returned.add(line.trace);
      report((id, n) => ({ id, kind: 'nacha', content: answerFile(found, line, n) }));
    }
  }
  function report(make: (id: string, n: number) => Report): void {
    number += 1;
    reports.push(make(`report-${number}`, number));
  }
  const entryOf = (trace: string): ReadEntry | null =>
    [...files.values()].flatMap(({ entries }) => entries).find((entry) => entry.trace === trace) ?? null;

  const journal = openJournal(path, (line) => apply(line as Line));
  function write(line: Line): void {
    journal.append(line);
    apply(line);
  }

  return {
    /** Takes a file, whoever knows of it: the same bytes are a duplicate. */
    take(name: string, sha256: string, content: string): FileAnswer {
      const before = this.ask(sha256);
      if (before.state === 'accepted') return { state: 'duplicate' };
      if (before.state === 'refused') return before;
      const reason = trouble.fault === 'reject' ? 'the bank takes no files of this company today' : problemOf(content);
      if (reason === null) write({ kind: 'file', name, sha256, content, atMs: now() });
      else write({ kind: 'refused', name, sha256, reason });
      return this.ask(sha256);
    },
    ask(sha256: string): FileAnswer {
      const reason = refused.get(sha256);
      if (reason !== undefined) return { state: 'refused', reason };
      return { state: files.has(sha256) ? 'accepted' : 'never' };
    },
    files: () => [...files.values()].map(({ name, sha256 }) => ({ name, sha256 })),
    contentOf: (sha256: string): string | null => files.get(sha256)?.content ?? null,
    news: () => ({ cut_off_ms: cutOffMs, reports }),
    acknowledge(id: string): void {
      if (reports.some((one) => one.id === id)) write({ kind: 'read', id });
    },
    /** Asks for what waits, as at the end of a business day. */
    cutOff: () => write({ kind: 'cut_off', atMs: now() }),
    trouble: (): Trouble => trouble,
    setTrouble: (after: Trouble): void => write({ kind: 'trouble', trouble: after }),
    /** Makes the settlement date of every file, and the days of returns after it, over now; returns their names. */
    settle(): readonly string[] {
      const open = [...files.values()].filter(({ isOver }) => !isOver).map(({ name }) => name);
      for (const name of open) write({ kind: 'over', name });
      return open;
    },
    /** Sends an entry back, or asks for a change; false for one that it does not have, or has sent back already. */
    answer(trace: string, code: string): boolean {
      if (entryOf(trace) === null || returned.has(trace)) return false;
      write({ kind: 'answer', trace, code, isReturn: code.startsWith('R'), atMs: now() });
      return true;
    },
    /** What has arrived in an account and was not sent back. */
    received(account: { readonly routing: string; readonly account: string; readonly kind: string }): readonly Arrival[] {
      const code = account.kind === 'savings' ? '32' : '22';
      return [...files.values()]
        .filter(({ isOver, settlesOn }) => isOver || settlementMs(settlesOn) <= now() || returnsEndMs(settlesOn) <= now())
        .flatMap(({ entries }) => entries)
        .filter(
          (entry) => entry.routing === account.routing && entry.account === account.account && entry.transactionCode === code,
        )
        .filter(({ trace }) => !returned.has(trace))
        .map(({ trace, cents }) => ({ trace, cents }));
    },
    close: () => journal.close(),
  };
}

/** Why the bank does not execute a file. */
function problemOf(content: string): string | null {
  try {
    const file = readNachaFile(content);
    if (file.bankRouting !== SANDBOX_BANK.bankRouting) return `it is for bank ${file.bankRouting}`;
    if (file.companyId !== SANDBOX_BANK.companyId) return `company ${file.companyId} is no customer`;
    const wrong = file.entries.find(({ transactionCode }) => transactionCode !== '22' && transactionCode !== '32');
    return wrong === undefined ? null : `entry ${wrong.trace} is no credit`;
  } catch (error) {
    if (error instanceof NachaMalformed) return error.message;
    throw error;
  }
}

/** The file in which the receiver's bank sends an entry back (addenda 99), or asks for other details (addenda 98). */
function answerFile(entry: ReadEntry, line: Extract<Line, { kind: 'answer' }>, number: number): string {
  const { isReturn, code } = line;
  const { date, time } = easternTime(line.atMs);
  const transactionCode: NachaEntry['transactionCode'] = entry.transactionCode === '32' ? 31 : 21;
  return writeNachaFile({
    origin: { ...SANDBOX_BANK, bankRouting: entry.routing },
    date,
    time,
    modifier: 'A',
    entryClass: isReturn ? 'CCD' : 'COR',
    description: 'PAYOUT',
    effective: date,
    entries: [
      {
        transactionCode,
        routing: SANDBOX_BANK.bankRouting,
        account: entry.account,
        cents: isReturn ? entry.cents : 0n,
        id: entry.id,
        name: entry.name,
        trace: `${entry.routing.slice(0, 8)}${String(number % 10_000_000).padStart(7, '0')}`,
        addenda: isReturn ? returnAddenda(code, entryPlace(entry)) : changeAddenda(code, entryPlace(entry), entry.account),
      },
    ],
  });
}

const entryPlace = ({ trace, routing }: ReadEntry): { readonly trace: string; readonly routing: string } => ({ trace, routing });
