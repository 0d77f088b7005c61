// The configuration that the table describes, read from the environment and the settings file; all errors are reported at once.
import { accessSync, constants, existsSync, readFileSync, statSync } from 'node:fs';
import { resolve } from 'node:path';
import { isSupervised } from '../process/life.ts';
import { StartRefused } from '../process/start-refused.ts';
import { readSettingsFile } from './dotenv-file.ts';
import { contradictions, unreadSettings, unusedSettings } from './setting-conflicts.ts';
import { type Environment, readSettings, type Settings, settingsFileOf } from './setting-values.ts';
import { type Config, type SignerSecrets, TABLE, VARIABLES, type Variable } from './variables.ts';

/**
 * Reads and checks what is set: the environment, and below it the settings file. An empty variable counts as not set. A secret may be given
 * by `<name>_FILE` instead.
 * Throws StartRefused with one line for each variable that is wrong, that nothing reads yet, or that begins with BURSAR_ and is unknown.
 */
export function readConfig(environment: Environment = process.env): Config {
  return read(environment, false);
}

/**
 * The same for a process that starts the signer too: also reports what is wrong with the signer's secrets, keeps none of them and opens
 * none of their files.
 */
export function readConfigOfAll(environment: Environment = process.env): Config {
  return read(environment, true);
}

function read(environment: Environment, checkOthers: boolean): Config {
  const settings = plainSettings(environment);
  const unread = unreadSettings((name) => settings.names.includes(name), settings.place);
  const problems = [...settings.problems, ...unknownNames(settings), ...unread];
  const values: Record<string, unknown> = {};
  const secrets = checkOthers ? secretSettings(environment) : null;
  for (const [key, row] of Object.entries(VARIABLES)) {
    try {
      if (row.owner === null) values[key] = readVariable(settings, row);
      else if (secrets !== null) checkSecret(secrets, row);
    } catch (error) {
      problems.push((error as Error).message);
    }
  }
  if (problems.length === 0) problems.push(...contradictions(values as Config));
  if (problems.length > 0) throw new StartRefused(problems.join('\n'));
  return values as Config;
}

/** Reads the secrets that only the signer may have: only its process and the commands that open the seed call this. Throws as readConfig. */
export function readSignerSecrets(environment: Environment = process.env): SignerSecrets {
  try {
    const settings = secretSettings(environment);
    if (settings.problems.length > 0) throw new Error(settings.problems.join('\n'));
    const own = Object.entries(VARIABLES).filter(([, row]) => row.owner === 'signer');
    return Object.fromEntries(own.map(([key, row]) => [key, readVariable(settings, row)])) as SignerSecrets;
  } catch (error) {
    throw new StartRefused((error as Error).message);
  }
}

/** Where settings come from besides the environment, and which of them have no effect, one line each. */
export function describeSettings(
  config: Config,
  environment: Environment = process.env,
): { readonly file: string | null; readonly isRead: boolean; readonly unused: readonly string[] } {
  const file = settingsFileOf(environment);
  const { names } = plainSettings(environment);
  return { file, isRead: file !== null && existsSync(file), unused: unusedSettings((name) => names.includes(name), config) };
}

/** The files that hold secrets of these settings: those that are named, and the settings file itself if it contains one. */
export function secretFiles(environment: Environment = process.env): readonly string[] {
  const file = settingsFileOf(environment);
  const isSecret = (name: string): boolean => TABLE.some((row) => row.secret && row.name === name);
  const all = [plainSettings(environment), secretSettings(environment)];
  const named = TABLE.filter(({ secret }) => secret).flatMap(({ name }) => {
    const from = all.find(({ values }) => values.has(`${name}_FILE`));
    return from === undefined ? [] : [resolve(from.folder(`${name}_FILE`), from.values.get(`${name}_FILE`)!)];
  });
  const holds = file !== null && [...(readSettingsFile(file, () => false)?.names.keys() ?? [])].some(isSecret);
  return [...(holds ? [file] : []), ...named];
}

/** The signer's secrets and the variables that name their files. */
const SIGNERS: ReadonlySet<string> = new Set(TABLE.filter(({ owner }) => owner === 'signer').flatMap(namesOf));

/** What every process may read. A process of a group gets from its supervisor what the file contained when the group was started. */
function plainSettings(environment: Environment): Settings {
  if (environment !== process.env) return readSettings(environment, settingsFileOf(environment), (name) => !SIGNERS.has(name));
  own ??= readSettings(environment, isSupervised() ? null : settingsFileOf(environment), (name) => !SIGNERS.has(name));
  return own;
}
let own: Settings | null = null;

/** The signer's secrets, read again each time and not kept. */
function secretSettings(environment: Environment): Settings {
  return readSettings(environment, settingsFileOf(environment), (name) => SIGNERS.has(name));
}

/**
 * The environment for a process of our own: ours and what the settings file adds to it, without the secrets of others, with some variables
 * set or (null) removed. The signer reads its secrets from the file itself.
 */
export function childEnvironment(
  reader: 'signer' | 'other',
  changes: Readonly<Record<string, string | null>>,
): NodeJS.ProcessEnv {
  const environment: NodeJS.ProcessEnv = { ...process.env, ...fromFile() };
  for (const row of TABLE) {
    if (row.owner === null || row.owner === reader) continue;
    for (const name of namesOf(row)) delete environment[name];
  }
  for (const [name, value] of Object.entries(changes)) {
    if (value === null) delete environment[name];
    else environment[name] = value;
  }
  return environment;
}

/** What the file adds; its relative paths start at the file's folder, whatever the working directory. */
function fromFile(): Record<string, string> {
  const { values, folder } = plainSettings(process.env);
  const known = TABLE.flatMap((row) => namesOf(row).map((name) => ({ name, isPath: row.isPath || name !== row.name })));
  return Object.fromEntries(
    known.flatMap(({ name, isPath }) => {
      const value = process.env[name] ? undefined : values.get(name);
      return value === undefined ? [] : [[name, isPath ? resolve(folder(name), value) : value]];
    }),
  );
}

/** A variable's names: its own, and the one for a file with its value. */
function namesOf({ name, secret }: Pick<Variable<unknown>, 'name' | 'secret'>): string[] {
  return secret ? [name, `${name}_FILE`] : [name];
}

type Given = { readonly given: string | undefined; readonly file: string | undefined };

function givenOf({ values, place, folder }: Settings, row: Variable<unknown>): Given {
  const given = values.get(row.name);
  const fileName = `${row.name}_FILE`;
  const file = row.secret ? values.get(fileName) : undefined;
  if (given !== undefined && file !== undefined)
    throw new Error(`${row.name} and ${fileName} are both set: set one of them${place(fileName)}`);
  return { given, file: file === undefined ? undefined : resolve(folder(fileName), file) };
}

function readVariable(settings: Settings, row: Variable<unknown>): unknown {
  const { given, file } = givenOf(settings, row);
  const text = file === undefined ? (given ?? row.fallback) : readSecret(settings, row.name, file);
  if (text === null) return null;
  try {
    return row.read(row.isPath ? resolve(settings.folder(row.name), text) : text);
  } catch (error) {
    const shown = row.secret || text.length > 60 ? 'what is set' : JSON.stringify(text);
    const place = settings.place(file === undefined ? row.name : `${row.name}_FILE`);
    throw new Error(`${row.name}: ${shown} is not accepted; accepted is ${(error as Error).message}${place}`);
  }
}

function readSecret(settings: Settings, name: string, file: string): string {
  try {
    return readFileSync(file, 'utf8').replace(/\r?\n$/, '');
  } catch (error) {
    throw unreadable(settings, name, file, error);
  }
}

function unreadable({ place }: Settings, name: string, file: string, error: unknown): Error {
  const { code } = error as NodeJS.ErrnoException;
  return new Error(`${name}_FILE: ${file} cannot be read (${code})${place(`${name}_FILE`)}`);
}

/** Finds what is wrong with another process's secret without opening its file. */
function checkSecret(settings: Settings, row: Variable<unknown>): void {
  const { given, file } = givenOf(settings, row);
  if (given !== undefined) readVariable(settings, row);
  if (file === undefined) return;
  try {
    accessSync(file, constants.R_OK);
  } catch (error) {
    throw unreadable(settings, row.name, file, error);
  }
  if (!statSync(file).isFile()) throw new Error(`${row.name}_FILE: ${file} is not a file`);
}

function unknownNames({ names, place }: Settings): string[] {
  const known = TABLE.flatMap(namesOf);
  const candidates = known.filter((name) => name.startsWith('BURSAR_'));
  return names
    .filter((name) => name.startsWith('BURSAR_') && !known.includes(name))
    .sort()
    .map((name) => {
      const plain = name.replace(/^BURSAR_/, '');
      const nearest = known.includes(plain)
        ? plain
        : candidates.reduce((best, candidate) => (distance(name, candidate) < distance(name, best) ? candidate : best));
      return `${name} is not a variable of Bursar; the nearest known one is ${nearest}${place(name)}`;
    });
}

/** Levenshtein distance: how many characters to change, insert or remove. */
function distance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, j) => j);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      next.push(Math.min(row[j]! + 1, next[j - 1]! + 1, row[j - 1]! + (a[i - 1] === b[j - 1] ? 0 : 1)));
    }
    row = next;
  }
  return row[b.length]!;
}
