// How commands answer: lines for people or one JSON value for programs, and every failure as one clear line.
import { styleText } from 'node:util';
import { type Command, CommanderError } from 'commander';
import { AccountKeyProblem } from '../../core/account-key.ts';
import { CURRENCY_CODES, type CurrencyCode } from '../../core/currency.ts';
import { DamagedFile } from '../../core/damaged-file.ts';
import { Refusal } from '../../core/refusal.ts';
import { SignerTrouble } from '../../outside/signer-client.ts';
import { SeedTrouble } from '../../signer/seed-file.ts';
import { MigrationRefused } from '../../store/postgres/migrate.ts';
import { outageOf } from '../process/outage-log.ts';
import { StartRefused } from '../process/start-refused.ts';

/** Exit codes; `running` = a process of the service goes on in this one. */
export const EXIT = { done: 0, failed: 1, usage: 2, running: -1 } as const;

/** A command cannot do what was asked: one clear line, exit code 1. */
export class CommandFailed extends Error {
  override readonly name = 'CommandFailed';
  /** For programs. */
  readonly code: string;
  constructor(line: string, code = 'failed') {
    super(line);
    this.code = code;
  }
}

/** Ends a command that was called with arguments of an impossible form: one clear line, exit code 2. */
export function calledWrongly(line: string): CommanderError {
  return new CommanderError(EXIT.usage, 'usage', line);
}

const LONGEST_EVIDENCE = 500;
/** What an operator gives as evidence, trimmed. @throws when it is empty or too long */
export function evidenceOf(text: string): string {
  const evidence = text.trim();
  if (evidence === '' || evidence.length > LONGEST_EVIDENCE)
    throw calledWrongly(`--evidence takes a text of 1 to ${LONGEST_EVIDENCE} characters`);
  return evidence;
}

/** A watched currency, in any case. */
export function watchedCode(text: string): CurrencyCode {
  const code = CURRENCY_CODES.find((one) => one === text.toUpperCase());
  if (code === undefined) throw calledWrongly(`--currency: ${text} is not one of ${CURRENCY_CODES.join(', ')}`);
  return code;
}

/** Adds a command that takes --json. The action gets its arguments, then its options, then the command (as commander has it). */
export function leaf(parent: Command, nameAndArguments: string, description: string): Command {
  const command = parent.command(nameAndArguments).description(description).option('--json', 'answer in JSON');
  return command.configureOutput(parent.configureOutput()).exitOverride();
}

/** Adds a command that only groups others. */
export function group(parent: Command, name: string, description: string): Command {
  return parent.command(name).description(description).helpCommand(false);
}

/** Writes one answer: the value as JSON, or the lines. Amounts and times are texts in both. */
export function print(json: boolean | undefined, value: unknown, lines: readonly string[]): void {
  process.stdout.write(json === true ? jsonLine(value) : lines.map((line) => `${line}\n`).join(''));
}

/** Writes a text to standard output; resolves when the system has accepted all of it. @throws CommandFailed where nobody reads it any more */
export function writeOut(text: string): Promise<void> {
  return new Promise((resolve, reject) => {
    const failed = ({ message }: Error) => new CommandFailed(`nobody reads what it writes (${message})`, 'output_closed');
    process.stdout.write(text, (error) => (error ? reject(failed(error)) : resolve()));
  });
}

/** A word for whether something is well: coloured on a terminal, unless NO_COLOR is set. */
export function verdict(good: boolean, word: string): string {
  return styleText(good ? 'green' : 'red', word, { stream: process.stdout });
}

/** Lines of a table, columns aligned. */
export function table(head: readonly string[], rows: readonly (readonly string[])[]): string[] {
  const widths = head.map((title, column) => Math.max(title.length, ...rows.map((row) => (row[column] ?? '').length)));
  return [head, ...rows].map((row) =>
    row
      .map((cell, column) => cell.padEnd(widths[column] ?? 0))
      .join('  ')
      .trimEnd(),
  );
}

/** Options whose names differ from the fields that refusals name. */
const ARGUMENT_OF_FIELD: Readonly<Record<string, string>> = {
  affiliate_id: 'affiliate_id',
  transaction_id: 'transaction_id',
  payout_id: 'payout_id',
  address: 'address',
};

function explain(error: unknown): { readonly code: string; readonly line: string; readonly exit: number } {
  if (error instanceof CommanderError) return { code: 'usage', line: error.message, exit: EXIT.usage };
  if (error instanceof Refusal) {
    const argument = error.param === null ? '' : `${ARGUMENT_OF_FIELD[error.param] ?? `--${error.param.replaceAll('_', '-')}`}: `;
    return { code: error.code, line: argument + error.message, exit: EXIT.failed };
  }
  if (error instanceof AccountKeyProblem)
    return { code: `key_${error.fault.replaceAll('-', '_')}`, line: `--${error.message}`, exit: EXIT.failed };
  if (error instanceof SeedTrouble)
    return { code: `seed_${error.fault.replaceAll('-', '_')}`, line: error.message, exit: EXIT.failed };
  if (error instanceof SignerTrouble) return { code: 'signer', line: error.message, exit: EXIT.failed };
  if (error instanceof CommandFailed) return { code: error.code, line: error.message, exit: EXIT.failed };
  if ([StartRefused, MigrationRefused, DamagedFile].some((known) => error instanceof known)) {
    return { code: 'failed', line: (error as Error).message, exit: EXIT.failed };
  }
  const outage = outageOf(error);
  if (outage !== null) return { code: 'overloaded', line: `the database cannot be used: ${outage}`, exit: EXIT.failed };
  return { code: 'bug', line: error instanceof Error ? (error.stack ?? error.message) : String(error), exit: EXIT.failed };
}

/** Prints a failure on standard error; returns the exit code. */
export function reportFailure(error: unknown, json: boolean): number {
  const { code, line, exit } = explain(error);
  const param = error instanceof Refusal && error.param !== null ? { param: error.param } : {};
  process.stderr.write(json ? jsonLine({ error: code, message: line, ...param }) : `bursar: ${line}\n`);
  return exit;
}

/** One line of JSON for a program, also for one that takes U+2028 and U+2029, which JSON may hold as they are, for the end of a line. */
export function jsonLine(value: unknown): string {
  return `${JSON.stringify(value).replace(/[\u2028\u2029]/g, (end) => `\\u${end.charCodeAt(0).toString(16)}`)}\n`;
}
