// The rules of the house, checked on every source file: who may import whom, where SQL, the environment, clocks and arithmetic on amounts
// may stand, how long a room may be.
import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { describe, expect, test } from 'vitest';

const ROOT = resolve(import.meta.dirname, '..');
const SRC = join(ROOT, 'src');

/** What each floor may import besides itself; npm packages are looked at apart. */
const MAY_IMPORT: Readonly<Record<string, readonly string[]>> = {
  core: [],
  contract: ['core'],
  store: ['core'],
  flow: ['store', 'core'],
  http: ['contract', 'flow', 'core'],
  worker: ['flow', 'store', 'core'],
  signer: ['store', 'core'],
  sandbox: ['core'],
  outside: ['core'],
  main: ['http', 'worker', 'signer', 'sandbox', 'outside', 'flow', 'store', 'contract', 'core'],
};

type Room = {
  readonly path: string;
  readonly floor: string;
  readonly text: string;
  readonly code: string;
  readonly imports: readonly string[];
};

const rooms: readonly Room[] = readdirSync(SRC, { recursive: true, encoding: 'utf8' })
  .filter((name) => name.endsWith('.ts'))
  .map((name) => {
    const text = readFileSync(join(SRC, name), 'utf8');
    return {
      path: `src/${name}`,
      floor: name.split('/')[0] ?? '',
      text,
      code: withoutComments(text),
      imports: importsOf(withoutComments(text)),
    };
  });

/** What a text imports: with names, for its effect only, again as an export, or when it runs; `(unknown)` where no literal says what. */
function importsOf(code: string): string[] {
  const named = code.matchAll(/^\s*(?:import|export)\b[^;'"]*?\bfrom\s*['"]([^'"]+)['"]/gm);
  const bare = code.matchAll(/^\s*import\s*['"]([^'"]+)['"]/gm);
  const running = code.matchAll(/(?<![.\w])(?:import|require)\s*\(\s*(?:['"`]([^'"`$]+)['"`])?/g);
  return [...named, ...bare, ...running].map((match) => match[1] ?? '(unknown)');
}

/** The text without comments, so that a word in prose is no finding. */
function withoutComments(text: string): string {
  return text.replace(/\/\*[\s\S]*?\*\//g, '').replace(/(^|[^:'"`])\/\/.*$/gm, '$1');
}

function offenders(rule: (room: Room) => boolean): string[] {
  return rooms.filter(rule).map((room) => room.path);
}

function targetFloor(room: Room, specifier: string): string | null {
  if (specifier === '(unknown)') return specifier;
  if (!specifier.startsWith('.')) return null;
  const path = relative(SRC, resolve(ROOT, dirname(room.path), specifier));
  return path.startsWith('..') ? '(outside src)' : (path.split('/')[0] ?? null);
}

/** The system's clock, chance, timers and network, also by way of the global object. */
const OUTSIDE =
  /\bDate\.now\b|\bnew Date\(\)|\bMath\.random\b|\bset(?:Timeout|Interval)\s*\(|(^|[^.\w])fetch\s*\(|\b(?:globalThis|global)\s*(?:\?\.|\.|\[\s*['"`])\s*(?:fetch|set(?:Timeout|Interval)|Date|Math|crypto|performance)\b/m;

describe('the eyes of this test', () => {
  test('see every form of an import', () => {
    const code = `import '../a.ts';\nimport type { B } from '../b.ts';\nimport {\n  c,\n} from "../c.ts";\nexport { d } from '../d.ts';
      const e = await import('../e.ts');\nconst f = () => import(\n  '../f.ts');\nimport(name);\nrequire('g');\nconst h = import.meta.url;`;
    const seen = ['../b.ts', '../c.ts', '../d.ts', '../a.ts', '../e.ts', '../f.ts', '(unknown)', 'g'];
    expect(importsOf(code)).toEqual(seen);
  });

  test.each([
    'fetch(url)',
    'await globalThis.fetch(url)',
    `globalThis['fetch'](url)`,
    'global.setTimeout(go, 1)',
    'globalThis.Date.now()',
    'const now = Date.now;',
  ])('see %s', (code) => {
    expect(OUTSIDE.test(code)).toBe(true);
  });

  test.each(['watch.fetch(url)', 'fetchNext()', 'new Date(atMs)'])('do not take %s for the network or a clock', (code) => {
    expect(OUTSIDE.test(code)).toBe(false);
  });
});

describe('the house', () => {
  test('has rooms on every floor', () => {
    expect([...new Set(rooms.map((room) => room.floor))].sort()).toEqual(Object.keys(MAY_IMPORT).sort());
  });

  test('arrows only go down', () => {
    const upward = rooms.flatMap((room) =>
      room.imports
        .map((specifier) => targetFloor(room, specifier))
        .filter((floor): floor is string => floor !== null && floor !== room.floor && !MAY_IMPORT[room.floor]?.includes(floor))
        .map((floor) => `${room.path} imports ${floor}`),
    );
    expect(upward).toEqual([]);
  });

  test('has no circles between files', () => {
    const byPath = new Map(rooms.map((room) => [room.path, room]));
    const done = new Set<string>();
    const circles: string[] = [];
    const visit = (path: string, trail: readonly string[]): void => {
      if (trail.includes(path)) {
        circles.push([...trail.slice(trail.indexOf(path)), path].join(' > '));
        return;
      }
      if (done.has(path)) return;
      for (const specifier of byPath.get(path)?.imports ?? []) {
        if (specifier.startsWith('.')) visit(relative(ROOT, resolve(ROOT, dirname(path), specifier)), [...trail, path]);
      }
      done.add(path);
    };
    for (const room of rooms) visit(room.path, []);
    expect(circles).toEqual([]);
  });

  test('core imports no package, waits for nothing and looks at no clock', () => {
    const core = rooms.filter((room) => room.floor === 'core');
    expect(core.filter((room) => room.imports.some((one) => !one.startsWith('.'))).map((room) => room.path)).toEqual([]);
    expect(core.filter((room) => /\bawait\b|\basync\b/.test(room.code)).map((room) => room.path)).toEqual([]);
  });

  test('SQL stands in store only', () => {
    const sql = /\b(select\s+[\w.*('"]+[\s\S]{0,400}?\bfrom\s+\w|insert\s+into\s+\w|update\s+\w+\s+set\s|delete\s+from\s+\w)/;
    const strings = (room: Room) => room.code.match(/`[^`]*`|'[^'\n]*'/g) ?? [];
    expect(offenders((room) => room.floor !== 'store' && strings(room).some((text) => sql.test(text)))).toEqual([]);
    expect(offenders((room) => room.imports.includes('pg') && !['store'].includes(room.floor))).toEqual([]);
  });

  test('only the configuration reads the environment', () => {
    expect(offenders((room) => /process\.env\b/.test(room.code) && !room.path.startsWith('src/main/config'))).toEqual([]);
  });

  test('clocks, chance, timers and the network belong to the outside and to the loop', () => {
    const allowed = (room: Room) =>
      ['outside', 'main', 'sandbox'].includes(room.floor) ||
      room.path === 'src/worker/loop.ts' ||
      [
        'src/http/connections.ts',
        'src/store/postgres/listen.ts',
        'src/store/postgres/overdue.ts',
        'src/store/postgres/session-locks.ts',
      ].includes(room.path);
    expect(offenders((room) => OUTSIDE.test(room.code) && !allowed(room))).toEqual([]);
  });

  test('arithmetic on amounts is done in money and rate only', () => {
    // an amount is a value whose name says minor, amount, need, balance …; what is added, taken or multiplied there goes through core/money
    const arithmetic =
      /\b\w*(?:[mM]inor|[aA]mount|\bneed|[bB]alance|inSuspense|inAvailable|credited|owed)\s*(?:\*\*?|\/|%|\+(?!\+)|-(?!-|>))\s*[\w(]/;
    const sums = ['src/core/money.ts', 'src/core/rate.ts'];
    const found = rooms
      .filter((room) => ['core', 'flow', 'http', 'worker', 'contract'].includes(room.floor) && !sums.includes(room.path))
      .flatMap((room) =>
        room.code
          .replace(/`[^`]*`|'[^'\n]*'|\/(?:[^/\n\\]|\\.)+\/[a-z]*/g, '""')
          .split('\n')
          .filter((line) => arithmetic.test(line))
          .map((line) => `${room.path}: ${line.trim()}`),
      );
    expect(found).toEqual([]);
  });

  test('one statement writes the status of a transaction, one function posts to the ledger', () => {
    const writesStatus = rooms
      .filter((room) => /update\s+transactions\s+set[^`]*\bstatus\s*=\s*(?:\$|u\.)/.test(room.code))
      .map((room) => room.path);
    expect(writesStatus).toEqual(['src/store/transactions/verdicts.ts']);
    const posts = rooms.filter((room) => /ledger\.post(_all)?\(/.test(room.code)).map((room) => room.path);
    expect(posts).toEqual(['src/store/ledger/ledger.ts']);
    expect(offenders((room) => /insert\s+into\s+ledger\.|update\s+ledger\./.test(room.code))).toEqual([]);
  });

  test('a database transaction never asks the outside', () => {
    // flow reaches the outside through ctx.ports only: inside the closure of db.transaction no port but the clock and chance may be named
    const closures = (room: Room) =>
      [...room.code.matchAll(/\.transaction\(async[^{]*\{/g)].map((match) =>
        block(room.code, (match.index ?? 0) + match[0].length - 1),
      );
    const asks = /ports\.(?!clock\b|rng\b|tokens\b)\w+/;
    expect(offenders((room) => closures(room).some((body) => asks.test(body)))).toEqual([]);
  });

  test('rooms are at most 300 lines and open with what they are for', () => {
    expect(offenders((room) => room.text.split('\n').length > 301)).toEqual([]);
    expect(offenders((room) => !/^(#!.*\n)?(\/\/|\/\*)/.test(room.text))).toEqual([]);
  });

  test('names are kebab-case nouns of the field, without barrels and classes that are no errors', () => {
    expect(offenders((room) => !/^src(\/[a-z0-9]+(-[a-z0-9]+)*)+\.ts$/.test(room.path))).toEqual([]);
    expect(offenders((room) => /(^|[/-])(service|manager|helper|util|impl|base)s?\.ts$/.test(room.path))).toEqual([]);
    expect(offenders((room) => room.path.endsWith('/index.ts') || /^export \* from/m.test(room.code))).toEqual([]);
    expect(
      offenders((room) =>
        /\bclass \w+(?! extends \w*(Error|Refusal|Refused|Trouble|Problem|Malformed)\b)\s/.test(
          room.code.replace(/class \w+ extends \w*(Error|Trouble|Problem|Refusal|Refused|Malformed)\b/g, ''),
        ),
      ),
    ).toEqual([]);
  });
});

/** The text of the block that opens at `start`. */
function block(text: string, start: number): string {
  let depth = 0;
  for (let i = start; i < text.length; i++) {
    if (text[i] === '{') depth++;
    else if (text[i] === '}' && --depth === 0) return text.slice(start, i + 1);
  }
  return text.slice(start);
}
