// The settings: the environment, and below it the file `.env` beside package.json. An empty variable counts as not set in both.
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { readSettingsFile } from './dotenv-file.ts';

export type Environment = Readonly<Record<string, string | undefined>>;

export type Settings = {
  readonly values: ReadonlyMap<string, string>;
  /** Every name that is set somewhere, including those whose values were not read. */
  readonly names: readonly string[];
  /** Where a variable was set, as the end of a message: empty for the environment. */
  place(name: string): string;
  /** The folder to which a relative path in this variable refers. */
  folder(name: string): string;
  /** What is wrong with the file itself. */
  readonly problems: readonly string[];
};

/** The folder of package.json. */
const ROOT = dirname(dirname(dirname(dirname(fileURLToPath(import.meta.url)))));

/** Names another file instead of `.env` beside package.json (/dev/null: none). */
const FILE_VARIABLE = 'BURSAR_ENV_FILE';

/** The file that belongs to an environment, whether it exists or not. A test's own environment has a file only where it names one. */
export function settingsFileOf(environment: Environment): string | null {
  const named = environment[FILE_VARIABLE];
  if (named) return resolve(named);
  return environment === process.env ? join(ROOT, '.env') : null;
}

/**
 * @param file null = the environment alone
 * @param wants which variables to read from the file
 */
export function readSettings(environment: Environment, file: string | null, wants: (name: string) => boolean): Settings {
  const isGiven = (name: string): boolean => (environment[name] ?? '') !== '';
  const read = file === null ? null : readSettingsFile(file, wants);
  // a secret and the file that holds it are one setting: if the environment has either, the file's are ignored
  const added = [...(read?.settings ?? [])].filter(
    ([name, { value }]) => value !== '' && ![name, `${name}_FILE`, name.replace(/_FILE$/, '')].some(isGiven),
  );
  const lines = new Map(added.map(([name, { line }]) => [name, line]));
  const given = Object.keys(environment).filter(isGiven);
  return {
    values: new Map([
      ...given.map((name) => [name, environment[name]!] as const),
      ...added.map(([name, { value }]) => [name, value] as const),
    ]),
    names: [...new Set([...given, ...(read?.names.keys() ?? [])])],
    place(name) {
      const line = lines.get(name) ?? (isGiven(name) ? undefined : read?.names.get(name));
      return line === undefined ? '' : ` (${file}, line ${line})`;
    },
    folder: (name) => (isGiven(name) ? process.cwd() : file !== null && lines.has(name) ? dirname(file) : ROOT),
    problems: [...(read?.problems ?? []), ...ofItself(isGiven, file, read)],
  };
}

function ofItself(isGiven: (name: string) => boolean, file: string | null, read: ReturnType<typeof readSettingsFile>): string[] {
  if (file !== null && read === null && isGiven(FILE_VARIABLE)) return [`${FILE_VARIABLE}: ${file} cannot be read (ENOENT)`];
  const line = read?.names.get(FILE_VARIABLE);
  return line === undefined ? [] : [`${FILE_VARIABLE} can be set in the environment only (${file}, line ${line})`];
}
