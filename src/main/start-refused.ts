// The start's way to say no: one clear line for the operator, exit code 1, no stack. Thrown by everything in src/main that finds
// something a person has to change; told by src/main/start.ts and src/main/process-life.ts.
import { DamagedFile } from '../core/damaged-file.ts';
import { MigrationRefused } from '../store/postgres/migrate.ts';

export class StartRefused extends Error {
  override readonly name = 'StartRefused';
}

/** What the operator is told of an error: a refusal as it stands, what the system or the database said in one line; else with its stack. */
export function lineOf(what: string, error: unknown): string {
  if (error instanceof StartRefused || error instanceof MigrationRefused || error instanceof DamagedFile) return error.message;
  const { message, stack, syscall, severity } = error as Error & { syscall?: string; severity?: string };
  const isExpected = syscall !== undefined || severity !== undefined;
  return `${what}: ${isExpected ? message : (stack ?? String(error))}`;
}
