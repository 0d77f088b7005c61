// A prepared statement's name stands for one text: on a session that has prepared another one under it, PostgreSQL's client refuses the second.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseSync } from 'oxc-parser';
import { describe, expect, test } from 'vitest';

const SRC = join(import.meta.dirname, '../../src');

/** A query as it stands in the source: where, its name and its text. */
type Statement = { readonly at: string; readonly name: string; readonly text: string };
type Node = { readonly type: string; readonly start: number; readonly end: number; readonly [key: string]: unknown };

/** Every object with a `name` and a `text`: that is a query that the server keeps under its name. */
function statementsIn(path: string, source: string): Statement[] {
  const found: Statement[] = [];
  const loops: Node[] = [];
  visit(parseSync(path, source).program as unknown as Node, (node) => {
    if (node.type === 'ForOfStatement') loops.push({ ...node, head: source.slice(node.start, (node.body as Node).start) });
    if (node.type !== 'ObjectExpression') return;
    const properties = node.properties as readonly { key?: { name?: string }; value?: Node }[];
    const partOf = (key: string) => properties.find((one) => one.key?.name === key)?.value;
    const [name, text] = [partOf('name'), partOf('text')];
    // one that was put together elsewhere is seen there
    if (name === undefined || text === undefined || text.type === 'Identifier') return;
    const at = `${path}:${source.slice(0, name.start).split('\n').length}`;
    for (const form of namesOf(name, source, loops)) found.push({ at, name: form, text: source.slice(text.start, text.end) });
  });
  return found;
}

function visit(node: unknown, see: (node: Node) => void): void {
  if (node === null || typeof node !== 'object') return;
  if (Array.isArray(node)) for (const one of node) visit(one, see);
  else {
    if (typeof (node as Node).type === 'string') see(node as Node);
    for (const value of Object.values(node)) visit(value, see);
  }
}

/** The names that an expression can be, `*` for what is put in at run time. */
function namesOf(node: Node, source: string, loops: readonly Node[]): string[] {
  const written = source.slice(node.start, node.end);
  if (node.type === 'Literal') return [String(node.value)];
  if (node.type === 'ConditionalExpression')
    return [node.consequent, node.alternate].flatMap((one) => namesOf(one as Node, source, loops));
  if (node.type === 'TemplateLiteral')
    return [(node.quasis as readonly { value: { cooked: string } }[]).map(({ value }) => value.cooked).join('*')];
  if (node.type === 'Identifier') return namesOfLoop(node, loops);
  // ['list', ...given].join('_')
  const [, first] = /^\['(\w+)',/.exec(written) ?? [];
  return [first === undefined ? `(unknown: ${written})` : `${first}_*`];
}

/** `name` of `for (const [name, ...] of [['a', ...], ['b', ...]])`. */
function namesOfLoop(node: Node, loops: readonly Node[]): string[] {
  const around = loops.find((loop) => loop.start < node.start && node.end < loop.end);
  const rows = /\bof (\[[\s\S]*?\]) as const\)/.exec(around === undefined ? '' : (around.head as string))?.[1];
  const names = [...(rows ?? '').matchAll(/\[\s*'(\w+)',/g)].map((match) => match[1] as string);
  return names.length === 0 ? [`(unknown: ${String(node.name)})`] : names;
}

/** Pairs of statements with two texts, or in two places, of which one name can be the other's. */
function collisions(statements: readonly Statement[]): string[] {
  return statements.flatMap((one, index) =>
    statements
      .slice(index + 1)
      .filter(
        (other) => canBe(one.name, other.name) && one.at !== other.at && (one.text !== other.text || one.text.includes(`\${`)),
      )
      .map((other) => `${one.name} (${one.at}) and ${other.name} (${other.at})`),
  );
}

function canBe(one: string, other: string): boolean {
  const matches = (pattern: string, name: string): boolean =>
    new RegExp(`^${pattern.replace(/[.+?^${}()|[\]\\]/g, '\\$&').replaceAll('*', '\\w*')}$`).test(name.replaceAll('*', 'x'));
  return matches(one, other) || matches(other, one);
}

describe('the pattern of this test', () => {
  const query = (name: string, text: string): string => `sql.query({ name: ${name}, text: ${text}, values: [] });`;
  test.each([
    [query(`'a'`, `'select 1'`), query(`'a'`, `'select 2'`)],
    [query(`'a_b'`, `'select 1'`), query(`\`a_\${b}\``, `'select 2'`)],
    [query(`c ? 'a' : 'b'`, `'select 1'`), query(`'b'`, `'select 2'`)],
    [query(`['a', ...given].join('_')`, `'select 1'`), query(`'a_x'`, `'select 2'`)],
    [query(`'a'`, `\`select \${one}\``), query(`'a'`, `\`select \${one}\``)],
  ])('finds %s and %s', (one, other) => {
    expect(collisions([...statementsIn('one.ts', one), ...statementsIn('other.ts', other)])).toHaveLength(1);
  });

  test('leaves two names, one text under one name, and rows with a name alone', () => {
    const texts = [
      query(`'a'`, `'select 1'`),
      query(`'b'`, `'select 2'`),
      query(`'a'`, `'select 1'`),
      `({ name: 'a', size: 1 });`,
    ];
    expect(collisions(texts.flatMap((text, index) => statementsIn(`${index}.ts`, text)))).toEqual([]);
  });
});

test('no name of a prepared statement stands for two texts', () => {
  const statements = readdirSync(SRC, { recursive: true, encoding: 'utf8' })
    .filter((path) => path.endsWith('.ts'))
    .flatMap((path) => statementsIn(`src/${path}`, readFileSync(join(SRC, path), 'utf8')));
  expect(statements.length).toBeGreaterThan(300);
  expect(statements.filter(({ name }) => name.startsWith('(unknown'))).toEqual([]);
  expect(collisions(statements)).toEqual([]);
});
