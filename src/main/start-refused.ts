// A refusal to start: one clear line for the operator, exit code 1, no stack. Thrown for everything that a person has to change.
import { DamagedFile } from '../core/damaged-file.ts';
import { MigrationRefused } from '../store/postgres/migrate.ts';

export class StartRefused extends Error {
  override readonly name = 'StartRefused';
}

/** What the operator gets to see of an error: a refusal as it is, errors of the system or the database in one line; any other with its stack. */
export function lineOf(what: string, error: unknown): string {
  if (error instanceof StartRefused || error instanceof MigrationRefused || error instanceof DamagedFile) return error.message;
  const { message, stack, syscall, severity } = error as Error & { syscall?: string; severity?: string };
  const isExpected = syscall !== undefined || severity !== undefined;
  return `${what}: ${isExpected ? message : (stack ?? String(error))}`;
}
