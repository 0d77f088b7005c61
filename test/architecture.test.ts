// The rules of the architecture, checked on every source file: which layer may import which, where SQL, the environment, clocks, currencies and
// arithmetic on amounts may stand, how long a file may be.
import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { describe, expect, test } from 'vitest';
import { CURRENCY_CODES } from '../src/core/currency.ts';
import { decisionsOf, listedDecisions, oneSidedChanges } from './support/decisions.ts';
import { lostInComments, lostInFolders, lostPlaces } from './support/named-places.ts';
import { functionsOf, undocumented } from './support/source-functions.ts';

const ROOT = resolve(import.meta.dirname, '..');
const SRC = join(ROOT, 'src');

/** What each layer may import besides itself; npm packages are checked separately. */
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

type SourceFile = {
  readonly path: string;
  readonly layer: string;
  readonly text: string;
  readonly code: string;
  readonly imports: readonly string[];
};

const files: readonly SourceFile[] = readdirSync(SRC, { recursive: true, encoding: 'utf8' })
  .filter((name) => name.endsWith('.ts'))
  .map((name) => {
    const text = readFileSync(join(SRC, name), 'utf8');
    return {
      path: `src/${name}`,
      layer: name.split('/')[0] ?? '',
      text,
      code: withoutComments(text),
      imports: importsOf(withoutComments(text)),
    };
  });

/** What a text imports: with names, only for its effect, as a re-export, or at run time; `(unknown)` where it is not a literal. */
function importsOf(code: string): string[] {
  const named = code.matchAll(/^\s*(?:import|export)\b[^;'"]*?\bfrom\s*['"]([^'"]+)['"]/gm);
  const bare = code.matchAll(/^\s*import\s*['"]([^'"]+)['"]/gm);
  const running = code.matchAll(/(?<![.\w])(?:import|require)\s*\(\s*(?:['"`]([^'"`$]+)['"`])?/g);
  return [...named, ...bare, ...running].map((match) => match[1] ?? '(unknown)');
}

/** The text without comments, so that prose causes no findings. */
function withoutComments(text: string): string {
  return text.replace(/\/\*[\s\S]*?\*\//g, '').replace(/(^|[^:'"`])\/\/.*$/gm, '$1');
}

function offenders(rule: (file: SourceFile) => boolean): string[] {
  return files.filter(rule).map((file) => file.path);
}

function targetLayer(file: SourceFile, specifier: string): string | null {
  if (specifier === '(unknown)') return specifier;
  if (!specifier.startsWith('.')) return null;
  const path = relative(SRC, resolve(ROOT, dirname(file.path), specifier));
  return path.startsWith('..') ? '(outside src)' : (path.split('/')[0] ?? null);
}

/** The system's clock, randomness, timers and network, also through the global object. */
const OUTSIDE =
  /\bDate\.now\b|\bnew Date\(\)|\bMath\.random\b|\bset(?:Timeout|Interval)\s*\(|(^|[^.\w])fetch\s*\(|\b(?:globalThis|global)\s*(?:\?\.|\.|\[\s*['"`])\s*(?:fetch|set(?:Timeout|Interval)|Date|Math|crypto|performance)\b/m;

describe('the patterns of this test', () => {
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

describe('the source', () => {
  test('has the layers that are named here', () => {
    expect([...new Set(files.map((file) => file.layer))].sort()).toEqual(Object.keys(MAY_IMPORT).sort());
  });

  test('imports go to lower layers only', () => {
    const upward = files.flatMap((file) =>
      file.imports
        .map((specifier) => targetLayer(file, specifier))
        .filter((layer): layer is string => layer !== null && layer !== file.layer && !MAY_IMPORT[file.layer]?.includes(layer))
        .map((layer) => `${file.path} imports ${layer}`),
    );
    expect(upward).toEqual([]);
  });

  test('has no import cycles', () => {
    const byPath = new Map(files.map((file) => [file.path, file]));
    const done = new Set<string>();
    const cycles: string[] = [];
    const visit = (path: string, trail: readonly string[]): void => {
      if (trail.includes(path)) {
        cycles.push([...trail.slice(trail.indexOf(path)), path].join(' > '));
        return;
      }
      if (done.has(path)) return;
      for (const specifier of byPath.get(path)?.imports ?? []) {
        if (specifier.startsWith('.')) visit(relative(ROOT, resolve(ROOT, dirname(path), specifier)), [...trail, path]);
      }
      done.add(path);
    };
    for (const file of files) visit(file.path, []);
    expect(cycles).toEqual([]);
  });

  test('core imports no package, waits for nothing and looks at no clock', () => {
    const core = files.filter((file) => file.layer === 'core');
    expect(core.filter((file) => file.imports.some((one) => !one.startsWith('.'))).map((file) => file.path)).toEqual([]);
    expect(core.filter((file) => /\bawait\b|\basync\b/.test(file.code)).map((file) => file.path)).toEqual([]);
  });

  test('SQL stands in store only', () => {
    const sql = /\b(select\s+[\w.*('"]+[\s\S]{0,400}?\bfrom\s+\w|insert\s+into\s+\w|update\s+\w+\s+set\s|delete\s+from\s+\w)/;
    const strings = (file: SourceFile) => file.code.match(/`[^`]*`|'[^'\n]*'/g) ?? [];
    expect(offenders((file) => file.layer !== 'store' && strings(file).some((text) => sql.test(text)))).toEqual([]);
    expect(offenders((file) => file.imports.includes('pg') && !['store'].includes(file.layer))).toEqual([]);
  });

  test('only the configuration reads the environment', () => {
    expect(offenders((file) => /process\.env\b/.test(file.code) && !file.path.startsWith('src/main/config'))).toEqual([]);
  });

  test('clocks, chance, timers and the network belong to the outside and to the loop', () => {
    const allowed = (file: SourceFile) =>
      ['outside', 'main', 'sandbox'].includes(file.layer) ||
      file.path === 'src/worker/loop.ts' ||
      [
        'src/http/connections.ts',
        'src/http/event-streams.ts',
        'src/http/checkout/streams.ts',
        'src/store/postgres/listen.ts',
        'src/store/postgres/session-timeouts.ts',
        'src/store/postgres/session-locks.ts',
      ].includes(file.path);
    expect(offenders((file) => OUTSIDE.test(file.code) && !allowed(file))).toEqual([]);
  });

  test('arithmetic on amounts is done in money and rate only', () => {
    // an amount is a value whose name contains minor, amount, amountDue, balance …; arithmetic on it must go through core/money
    const arithmetic =
      /\b\w*(?:[mM]inor|[aA]mount(?:Due)?|[bB]alance|inSuspense|inAvailable|credited|owed)\s*(?:\*\*?|\/|%|\+(?!\+)|-(?!-|>))\s*[\w(]/;
    const sums = ['src/core/money.ts', 'src/core/rate.ts'];
    const found = files
      .filter((file) => ['core', 'flow', 'http', 'worker', 'contract'].includes(file.layer) && !sums.includes(file.path))
      .flatMap((file) =>
        file.code
          .replace(/`[^`]*`|'[^'\n]*'|\/(?:[^/\n\\]|\\.)+\/[a-z]*/g, '""')
          .split('\n')
          .filter((line) => arithmetic.test(line))
          .map((line) => `${file.path}: ${line.trim()}`),
      );
    expect(found).toEqual([]);
  });

  test('one statement writes the status of a transaction, one function posts to the ledger', () => {
    const writesStatus = files
      .filter((file) => /update\s+transactions\s+set[^`]*\bstatus\s*=\s*(?:\$|u\.)/.test(file.code))
      .map((file) => file.path);
    expect(writesStatus).toEqual(['src/store/transactions/verdicts.ts']);
    const posts = files.filter((file) => /ledger\.post(_all)?\(/.test(file.code)).map((file) => file.path);
    expect(posts).toEqual(['src/store/ledger/ledger.ts']);
    expect(offenders((file) => /insert\s+into\s+ledger\.|update\s+ledger\./.test(file.code))).toEqual([]);
  });

  test('a database transaction never asks the outside', () => {
    // flow reaches the outside only through ctx.ports: the closure of db.transaction may use no port but the clock, randomness and those that only compute
    const closures = (file: SourceFile) =>
      [...file.code.matchAll(/\.transaction\(async[^{]*\{/g)].map((match) =>
        block(file.code, (match.index ?? 0) + match[0].length - 1),
      );
    const asks =
      /ports\.(?!clock\b|rng\b|tokens\b|intentKey\b|sealing\b|webhookSealing\b|seals\b|destinations\b|addresses\.(?:of|ownOf)\b)\w+/;
    expect(offenders((file) => closures(file).some((body) => asks.test(body)))).toEqual([]);
  });

  test('files begin with what they are for', () => {
    expect(offenders((file) => !/^(#!.*\n)?(\/\/|\/\*)/.test(file.text))).toEqual([]);
  });

  test('what is exported has a doc comment: what goes in, what comes out, what is refused, which standard', () => {
    const seen = undocumented('export const a = () => 1;\n/** b */\nexport class B { c() {} }\nfunction d() {}\nexport { d };');
    expect(seen.map(({ name }) => name)).toEqual(['a', 'B.c', 'd']);
    expect(files.flatMap(({ path, text }) => undocumented(text).map(({ name, line }) => `${path}:${line} ${name}`))).toEqual([]);
  });

  test('functions have at most 70 lines besides those of the functions inside them', () => {
    expect(functionsOf('function a() {\n  const b = () => {\n    1;\n    2;\n  };\n}').map(({ own }) => own)).toEqual([4, 3]);
    const long = files.flatMap(({ path, text }) => functionsOf(text).map((one) => ({ path, ...one })));
    expect(long.filter(({ own }) => own > 70).map(({ path, name, own }) => `${path} ${name}: ${own}`)).toEqual([]);
  });

  test('files have at most 300 lines, also those of tests and measurements', () => {
    const long = ['src', 'test', 'bench'].flatMap((folder) =>
      readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' })
        .map((name) => `${folder}/${name}`)
        .filter((path) => path.endsWith('.ts') && readFileSync(join(ROOT, path), 'utf8').split('\n').length > 301),
    );
    expect(long).toEqual([]);
  });

  test('a folder has at most 25 files', () => {
    const count = new Map<string, number>();
    for (const { path } of files) count.set(dirname(path), (count.get(dirname(path)) ?? 0) + 1);
    expect([...count].filter(([, many]) => many > 25)).toEqual([]);
  });

  test('a currency is named in its own file, the list and the sandbox only', () => {
    const mayName = /^src\/(core\/currencies|sandbox)\/|^src\/core\/currency\.ts$|^src\/contract\/sandbox-api\.ts$/;
    const word = new RegExp(`(?:\\b|_)(?:${CURRENCY_CODES.join('|')})(?:\\b|_)`);
    const naming = files
      .filter((file) => !mayName.test(file.path))
      .flatMap((file) => file.code.split('\n').map((line) => ({ path: file.path, line: line.trim() })))
      .filter(({ line }) => word.test(line))
      .map(({ path, line }) => `${path}: ${line}`);
    expect(naming).toEqual([]);
  });

  test('a currency, an output and a payment are called so, and never a coin', () => {
    // words of the field, and BIP44's path
    const allowed = /coin.?selection|coin.?type|selectCoins|\/coin'\//gi;
    const coin = /(?:^|[^A-Za-z])[Cc]oins?(?![a-z])|[a-z]Coins?(?![a-z])/;
    expect(coin.test('own coins') && coin.test('ownCoins') && coin.test('own_coin')).toBe(true);
    expect(coin.test('bitcoind') || coin.test('coinbase') || coin.test('Dogecoin')).toBe(false);
    const lines = files.flatMap(({ path, text }) => text.split('\n').map((line, n) => `${path}:${n + 1} ${line.trim()}`));
    expect(lines.filter((line) => coin.test(line.replaceAll(allowed, '')))).toEqual([]);
  });

  test('names are kebab-case nouns of the field, without barrels and classes that are no errors', () => {
    expect(offenders((file) => !/^src(\/[a-z0-9]+(-[a-z0-9]+)*)+\.ts$/.test(file.path))).toEqual([]);
    expect(offenders((file) => /(^|[/-])(service|manager|helper|util|impl|base)s?\.ts$/.test(file.path))).toEqual([]);
    expect(offenders((file) => file.path.endsWith('/index.ts') || /^export \* from/m.test(file.code))).toEqual([]);
    expect(
      offenders((file) =>
        /\bclass \w+(?! extends \w*(Error|Refusal|Refused|Failed|Trouble|Problem|Malformed)\b)\s/.test(
          file.code.replace(/class \w+ extends \w*(Error|Trouble|Problem|Refusal|Refused|Failed|Malformed)\b/g, ''),
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

test('documents and comments name files that exist', () => {
  const documents = ['README.md', 'ARCHITECTURE.md', 'CONTRIBUTING.md', 'SECURITY.md', 'docs/behaviour.md'];
  expect(documents.flatMap((name) => lostPlaces(ROOT, readFileSync(join(ROOT, name), 'utf8')))).toEqual([]);
  expect(files.flatMap(({ path, text }) => lostInComments(SRC, text).map((lost) => `${path}: ${lost}`))).toEqual([]);
  expect(lostPlaces(ROOT, '`src/core/none.ts`, `src/core/money.ts` (`sum`, `nowhere`)')).toHaveLength(2);
  const folders = [...new Set(files.map(({ path }) => dirname(path).slice('src/'.length)))];
  expect(lostInFolders(SRC, folders, readFileSync(join(ROOT, 'ARCHITECTURE.md'), 'utf8'))).toEqual([]);
});

test('DECISIONS lists each of its paragraphs once, by subject, and marks what has changed in both', () => {
  const text = readFileSync(join(ROOT, 'DECISIONS.md'), 'utf8');
  const decisions = decisionsOf(text);
  expect([...listedDecisions(text)].sort((a, b) => a - b)).toEqual(decisions.map(({ number }) => number));
  expect(oneSidedChanges(decisionsOf('**1. A (changed by 2).** B\n\n**2. C.** D (extends 1).'))).toHaveLength(2);
  expect(oneSidedChanges(decisions)).toEqual([]);
});
