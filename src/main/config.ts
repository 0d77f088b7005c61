// The only place that reads the environment. Every process entry of src/main calls readConfig once; what is wrong is told all at once.
import { accessSync, constants, readFileSync, statSync } from 'node:fs';
import { TABLE, VARIABLES, type Variable } from './config-table.ts';
import { StartRefused } from './start-refused.ts';

type Value<V> = V extends { readonly fallback: string; read(text: string): infer T }
  ? T
  : V extends { read(text: string): infer T }
    ? T | null
    : never;

type Variables = typeof VARIABLES;
type Values<Owner> = {
  readonly [K in keyof Variables as Variables[K]['owner'] extends Owner ? K : never]: Value<Variables[K]>;
};

/** The configuration: each variable's value by its name in the code, null where it is not set and has no default. */
export type Config = Values<null>;

/** What only the signer and the commands that open its seed may know. */
export type SignerSecrets = Values<'signer'>;

export type Environment = Readonly<Record<string, string | undefined>>;

/**
 * Reads and checks the environment. An empty variable counts as not set. A secret may be given by `<name>_FILE` instead.
 * Throws StartRefused with one line for each variable that is wrong, and for each unknown one that begins with BURSAR_.
 */
export function readConfig(environment: Environment = process.env): Config {
  return read(environment, () => undefined);
}

/** The same for who starts the signer too: also tells what is wrong with its secrets, keeps nothing of them and opens no file of theirs. */
export function readConfigOfAll(environment: Environment = process.env): Config {
  return read(environment, checkSecret);
}

function read(environment: Environment, checkForeign: typeof checkSecret): Config {
  const problems: string[] = unknownNames(environment);
  const values: Record<string, unknown> = {};
  for (const [key, row] of Object.entries(VARIABLES)) {
    try {
      if (row.owner === null) values[key] = readVariable(environment, row);
      else checkForeign(environment, row);
    } catch (error) {
      problems.push((error as Error).message);
    }
  }
  if (problems.length > 0) throw new StartRefused(problems.join('\n'));
  return values as Config;
}

/** Reads the secrets that are the signer's alone: only its process and the commands that open the seed call this. Throws as readConfig. */
export function readSignerSecrets(environment: Environment = process.env): SignerSecrets {
  try {
    const own = Object.entries(VARIABLES).filter(([, row]) => row.owner === 'signer');
    return Object.fromEntries(own.map(([key, row]) => [key, readVariable(environment, row)])) as SignerSecrets;
  } catch (error) {
    throw new StartRefused((error as Error).message);
  }
}

/** The environment for a process of our own: ours, without the secrets of others, with some variables set or (null) taken out. */
export function childEnvironment(
  reader: 'signer' | 'other',
  changes: Readonly<Record<string, string | null>>,
): NodeJS.ProcessEnv {
  const environment = { ...process.env };
  for (const { name, owner } of TABLE) {
    if (owner === null || owner === reader) continue;
    delete environment[name];
    delete environment[`${name}_FILE`];
  }
  for (const [name, value] of Object.entries(changes)) {
    if (value === null) delete environment[name];
    else environment[name] = value;
  }
  return environment;
}

type Given = { readonly given: string | undefined; readonly file: string | undefined };

function givenOf(environment: Environment, row: Variable<unknown>): Given {
  const given = environment[row.name] || undefined;
  const file = row.secret ? environment[`${row.name}_FILE`] || undefined : undefined;
  if (given !== undefined && file !== undefined)
    throw new Error(`${row.name} and ${row.name}_FILE are both set: set one of them`);
  return { given, file };
}

function readVariable(environment: Environment, row: Variable<unknown>): unknown {
  const { given, file } = givenOf(environment, row);
  const text = file === undefined ? (given ?? row.fallback) : readSecret(row.name, file);
  if (text === null) return null;
  try {
    return row.read(text);
  } catch (error) {
    const shown = row.secret || text.length > 60 ? 'what is set' : JSON.stringify(text);
    throw new Error(`${row.name}: ${shown} is not accepted; accepted is ${(error as Error).message}`);
  }
}

function readSecret(name: string, file: string): string {
  try {
    return readFileSync(file, 'utf8').replace(/\r?\n$/, '');
  } catch (error) {
    throw unreadable(name, file, error);
  }
}

const unreadable = (name: string, file: string, error: unknown): Error =>
  new Error(`${name}_FILE: ${file} cannot be read (${(error as NodeJS.ErrnoException).code})`);

/** Finds what is wrong with a secret of another process without opening its file. */
function checkSecret(environment: Environment, row: Variable<unknown>): void {
  const { given, file } = givenOf(environment, row);
  if (given !== undefined) readVariable(environment, row);
  if (file === undefined) return;
  try {
    accessSync(file, constants.R_OK);
  } catch (error) {
    throw unreadable(row.name, file, error);
  }
  if (!statSync(file).isFile()) throw new Error(`${row.name}_FILE: ${file} is not a file`);
}

function unknownNames(environment: Environment): string[] {
  const known = TABLE.flatMap(({ name, secret }) => (secret ? [name, `${name}_FILE`] : [name]));
  const candidates = known.filter((name) => name.startsWith('BURSAR_'));
  return Object.keys(environment)
    .filter((name) => name.startsWith('BURSAR_') && !known.includes(name))
    .sort()
    .map((name) => {
      const plain = name.replace(/^BURSAR_/, '');
      const nearest = known.includes(plain)
        ? plain
        : candidates.reduce((best, candidate) => (distance(name, candidate) < distance(name, best) ? candidate : best));
      return `${name} is not a variable of Bursar; the nearest known one is ${nearest}`;
    });
}

/** Levenshtein distance: how many characters to change, put in or take out. */
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
