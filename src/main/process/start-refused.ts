// A refusal to start: one clear line for the operator, exit code 1, no stack. Thrown for everything that a person has to change.
import { DamagedFile } from '../../core/damaged-file.ts';
import { MigrationRefused } from '../../store/postgres/migrate.ts';

/** Thrown where a process cannot start; its message is the one line that the operator reads. */
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

/** Why the API cannot listen on HOST and PORT (or another setting's port): the refusal for what `listen` failed with. */
export function listenRefused(host: string, port: number, error: unknown, setting = 'PORT'): StartRefused {
  const { code } = error as NodeJS.ErrnoException;
  if (code === 'ENOTFOUND' || code === 'EAI_AGAIN') {
    return new StartRefused(`HOST: "${host}" cannot be resolved (${code}); accepted is an address or a name of this machine`);
  }
  const why = code === 'EADDRINUSE' ? 'is taken by another program' : `cannot be listened on (${code})`;
  return new StartRefused(`${host}:${port} ${why}: set ${setting} or HOST to another`);
}
