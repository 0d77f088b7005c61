// One text that holds all mutants of a file: each function stands there once for each of its mutants, and a number chooses at run time which of
// them is called. So a file and its tests are loaded once for all its mutants.
import { parseSync } from 'oxc-parser';

/** The number of the mutant that counts now, of a thread; 0 = none. */
export const CHOSEN = '__mutant';

/** Where a function begins and ends whose name can be given to several: a declaration, or what an arrow or an object of functions is named. */
function functionsOf(program) {
  return program.body.flatMap((statement) => {
    const exported = statement.type === 'ExportNamedDeclaration';
    const declared = exported ? statement.declaration : statement;
    const place = { start: statement.start, end: statement.end, prefix: exported ? 'export ' : '' };
    if (declared?.type === 'FunctionDeclaration' && declared.body !== null)
      return [
        { ...place, kind: 'function', name: declared.id, from: declared.start, inner: [...declared.params, declared.body] },
      ];
    if (declared?.type !== 'VariableDeclaration' || declared.declarations.length !== 1) return [];
    const [{ id, init }] = declared.declarations;
    if (id.type !== 'Identifier') return [];
    if (init?.type === 'ArrowFunctionExpression')
      return [{ ...place, kind: 'arrow', name: id, from: declared.start, inner: [init.body] }];
    if (init?.type !== 'ObjectExpression') return [];
    const inner = init.properties.map(({ value }) => value).filter((value) => value?.type === 'ArrowFunctionExpression');
    return [{ ...place, kind: 'object', name: id, from: declared.start, inner }];
  });
}

/** A declaration under another name: an identifier of oxc ends after its type, so the name's own length counts. */
function renamed(text, { from, end, name }, to, mutant) {
  const at = name.start;
  const behind = at + name.name.length;
  if (mutant === undefined) return text.slice(from, at) + to + text.slice(behind, end);
  return text.slice(from, at) + to + text.slice(behind, mutant.start) + mutant.to + text.slice(mutant.end, end);
}

function dispatcher({ kind, name: { name } }, numbers) {
  const chosen = `({${numbers.map((n) => `${n}: ${name}$${n}`).join(', ')}}[globalThis.${CHOSEN}] ?? ${name}$0)`;
  if (kind === 'function') return `function ${name}(...all: any[]): any { return (${chosen} as any)(...all); }`;
  if (kind === 'arrow') return `const ${name}: any = (...all: any[]): any => (${chosen} as any)(...all);`;
  return `const ${name}: any = new Proxy({}, { get: (_: any, key: any) => (${chosen} as any)[key] });`;
}

/**
 * @param mutants of the file, by their numbers from 1 on
 * @returns the text, and the numbers of the mutants in it; the others change what is worked out when the file is loaded
 */
export function switchedText(path, text, mutants) {
  const { program } = parseSync(path, text);
  const numbers = new Set();
  let [result, at] = ['', 0];
  for (const one of functionsOf(program)) {
    const own = [...mutants.entries()]
      .filter(([, { start, end }]) => one.inner.some((part) => part.start <= start && end <= part.end))
      .map(([index, mutant]) => [index + 1, mutant]);
    if (own.length === 0) continue;
    const { name } = one.name;
    const copies = own.map(([number, mutant]) => renamed(text, one, `${name}$${number}`, mutant));
    const all = [
      renamed(text, one, `${name}$0`),
      ...copies,
      one.prefix +
        dispatcher(
          one,
          own.map(([number]) => number),
        ),
    ];
    result += `${text.slice(at, one.start)}${all.join('\n')}`;
    at = one.end;
    for (const [number] of own) numbers.add(number);
  }
  return { text: result + text.slice(at), numbers };
}
