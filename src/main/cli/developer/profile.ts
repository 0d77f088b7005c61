// Where a developer's commands keep a sign-in, and what `listen` needs to go on: files of their own user, mode 600, written as a whole.
import { createHash, randomBytes } from 'node:crypto';
import { chmodSync, linkSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { SECRET_BYTES } from '../../../core/webhooks.ts';
import { userFolder } from '../../config/process-environment.ts';
import { CommandFailed, calledWrongly } from '../output.ts';

export type Profile = {
  readonly url: string;
  readonly username: string;
  readonly access_token: string;
  readonly refresh_token: string;
};

/** Only its user may read what lies there. */
const PRIVATE_FILE = 0o600;
const PRIVATE_FOLDER = 0o700;

function fileOf(name: string, what = ''): string {
  if (!/^[\w-]{1,64}$/.test(name)) throw calledWrongly(`--profile: ${name} is no name; accepted are letters, digits, - and _`);
  return join(userFolder(), `${name}${what}.json`);
}

/** The path of a profile's file. */
export const profilePath = (name: string): string => fileOf(name);

/** A file beside the one that it replaces: a crash leaves the old one or the new one. */
function written(file: string, value: object): string {
  mkdirSync(userFolder(), { recursive: true, mode: PRIVATE_FOLDER });
  const draft = `${file}.${randomBytes(6).toString('hex')}`;
  writeFileSync(draft, `${JSON.stringify(value, null, 2)}\n`, { mode: PRIVATE_FILE, flag: 'wx' });
  // the mask of the user's files may have taken more away
  chmodSync(draft, PRIVATE_FILE);
  return draft;
}

function read<T>(file: string): T | null {
  let text: string;
  try {
    text = readFileSync(file, 'utf8');
  } catch (error) {
    if ((error as { code?: string }).code === 'ENOENT') return null;
    throw new CommandFailed(`${file} cannot be read: ${(error as Error).message}`);
  }
  try {
    return JSON.parse(text) as T;
  } catch {
    throw new CommandFailed(`${file} is damaged: delete it, and run "bursar login"`);
  }
}

/** Writes a profile's file whole or not at all, readable by its user only. */
export function saveProfile(name: string, profile: Profile): void {
  const file = fileOf(name);
  renameSync(written(file, profile), file);
}

/** @throws CommandFailed where nobody has signed in under this name */
export function readProfile(name: string): Profile {
  const found = read<Profile>(fileOf(name));
  if (found !== null) return found;
  const option = name === 'default' ? '' : ` --profile ${name}`;
  throw new CommandFailed(`not signed in: run "bursar login${option}" first`, 'not_signed_in');
}

/** What signs the events that `listen` forwards: made once for a profile, the same ever after. */
export function listenSecret(name: string): string {
  const file = fileOf(name, '.listen');
  const known = read<{ secret: string }>(file);
  if (known !== null) return known.secret;
  const secret = `whsec_${randomBytes(SECRET_BYTES).toString('base64')}`;
  const draft = written(file, { secret });
  try {
    // where two begin at once, the first one's counts
    linkSync(draft, file);
  } catch (error) {
    if ((error as { code?: string }).code !== 'EEXIST') throw error;
  } finally {
    rmSync(draft);
  }
  return read<{ secret: string }>(file)?.secret ?? secret;
}

/** Where a listener is. */
export type Place = {
  readonly cursor: string;
  /** When the last event that was dealt with was written; before the first, one that was written when the place was first told. */
  readonly at?: string;
  /** When the event of the cursor was written; absent where that is not known. */
  readonly written?: string;
};
export type Cursor = {
  /** Null before the first. */
  last(): Place | null;
  /** @param times `written`: when the event of the cursor was; absent: no event was dealt with. `at`: instead of that, see {@link Place} */
  save(cursor: string, times?: { readonly written?: string | undefined; readonly at?: string | undefined }): void;
};

/** How far a listener is. @param of what it listens to: another server, user or filter has a place of its own */
export function openCursor(name: string, of: readonly string[]): Cursor {
  const file = fileOf(name, `.listen-${createHash('sha256').update(JSON.stringify(of)).digest('hex').slice(0, 16)}`);
  let last = read<Place>(file);
  return {
    last: () => last,
    save(cursor, { written: of, at: since = of } = {}) {
      const at = since ?? last?.at;
      if (cursor === last?.cursor && at === last.at) return;
      last = { cursor, ...(at === undefined ? {} : { at }), ...(of === undefined ? {} : { written: of }) };
      renameSync(written(file, last), file);
    },
  };
}
