// docs/behaviour.md is the one contract that code and tests cite: every citation exists there, and its rules, operations, refusals and
// depths are those of the code's own tables.
import { readdirSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { describe, expect, test } from 'vitest';
import { MERCHANT_API } from '../src/contract/merchant-api.ts';
import { requiredDepth } from '../src/core/confirmations.ts';
import { CURRENCIES, WATCHED_CODES } from '../src/core/currency.ts';
import { REFUSALS } from '../src/core/refusal.ts';
import { TRANSACTION_STATUSES, TRANSITIONS } from '../src/core/transaction-states.ts';

const ROOT = resolve(import.meta.dirname, '..');
const CONTRACT = readFileSync(join(ROOT, 'docs/behaviour.md'), 'utf8');
const SELF = 'test/behaviour.test.ts';
const FILES = ['src', 'test', 'bench', 'bin', 'db', 'scripts', 'docs']
  .flatMap((folder) => readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' }).map((name) => `${folder}/${name}`))
  .concat(readdirSync(ROOT).filter((name) => name.endsWith('.md')))
  .filter((path) => /\.(ts|mjs|sql|sh|md)$/.test(path) && path !== SELF)
  .map((path) => ({ path, text: readFileSync(join(ROOT, path), 'utf8') }));

const SECTIONS = new Set([...CONTRACT.matchAll(/^## (\d+)\. /gm)].map((match) => Number(match[1])));
/** The rows of the table of rules: number, from, to. */
const RULES = [...CONTRACT.matchAll(/^\| (\d+) \| ([^|]*) \| [^|]* \| ([^|]*) \|/gm)].map((match) => ({
  rule: Number(match[1]),
  from: (match[2] ?? '').trim(),
  to: (match[3] ?? '').trim(),
}));
const WITHOUT_ROW = [21, 23];

function citing(pattern: RegExp, isWrong: (cited: number) => boolean): string[] {
  return FILES.flatMap(({ path, text }) =>
    [...text.matchAll(pattern)].filter((match) => isWrong(Number(match[1]))).map((match) => `${path}: ${match[0]}`),
  );
}

describe('citations', () => {
  test('name a section of the contract that exists', () => {
    expect(SECTIONS.size).toBe(9);
    expect(citing(/behaviour(?:\.md)? §\s?(\d+)/g, (section) => !SECTIONS.has(section))).toEqual([]);
  });

  test('name a rule that exists', () => {
    expect(RULES.map(({ rule }) => rule)).toEqual(Array.from({ length: 24 }, (_, index) => index + 1));
    expect(citing(/\b[Rr]ules? (\d+)/g, (rule) => rule < 1 || rule > RULES.length)).toEqual([]);
  });

  test('name no document that is not in the repository', () => {
    expect(citing(/interface\.md|\(issue[: ]/g, () => true)).toEqual([]);
  });
});

describe('the contract and the tables of the code say the same:', () => {
  test('each rule has its row in the table of transitions, or a sentence why not', () => {
    const rows = new Set(TRANSITIONS.map(({ rule }) => rule));
    expect(RULES.map(({ rule }) => rule).filter((rule) => !rows.has(rule))).toEqual(WITHOUT_ROW);
    expect(CONTRACT).toMatch(/Rules 21 and 23 have no row there, because/);
  });

  test('every arrow of the table leads where its rule says', () => {
    for (const { rule, from, to } of TRANSITIONS) {
      // described in words beside the table: the last sentence of rule 18, and the way back of rule 17
      if ((rule === 2 || rule === 17) && from === 'review') continue;
      const row = RULES.find((one) => one.rule === rule);
      const said = row?.to === 'unchanged' ? row.from : row?.to;
      expect(said, `rule ${rule}`).toContain(to);
      if (from !== null) expect(row?.from, `rule ${rule}`).toContain(from);
    }
  });

  test('every status is explained', () => {
    for (const status of TRANSACTION_STATUSES) expect(CONTRACT).toContain(`| \`${status}\` |`);
  });

  test('every operation and every refusal is named', () => {
    for (const { path } of Object.values(MERCHANT_API)) expect(CONTRACT, path).toContain(`\`${path}\``);
    for (const [code, [status]] of Object.entries(REFUSALS)) {
      const row = CONTRACT.split('\n').find((line) => line.startsWith('|') && line.includes(`\`${code}\``));
      expect(row, code).toBeDefined();
      expect(row, code).toContain(String(status));
    }
  });

  test.each(WATCHED_CODES.filter((code) => code !== 'DASH'))('%s needs the depths of the table', (code) => {
    const row = CONTRACT.split('\n').find((line) => line.startsWith(`| ${CURRENCIES[code].code} | `) && !line.includes('USD'));
    const depths = (row ?? '')
      .split('|')
      .slice(2, 6)
      .map((cell) => Number(cell.trim()));
    expect([50_00n, 500_00n, 5_000_00n, 50_000_00n].map((usd) => requiredDepth(code, usd).depth)).toEqual(depths);
  });
});
