// What the architecture's test asks of the functions in a source file: how long each is without those inside it, and which exported ones have no
// doc comment. Read from the syntax tree, so that no form of writing one escapes.
import { type Comment, type ExportNamedDeclaration, parseSync, type Statement, Visitor } from 'oxc-parser';

type Named = { readonly name: string; readonly line: number };
/** `own`: its lines less those of the functions inside it that have at least four. */
export type SourceFunction = Named & { readonly own: number };

const LEAST_LINES = 4;

const lineIn =
  (text: string) =>
  (at: number): number =>
    text.slice(0, at).split('\n').length;

/** Every function of a source text, also those inside others. */
export function functionsOf(text: string): readonly SourceFunction[] {
  const line = lineIn(text);
  const found: SourceFunction[] = [];
  const open: { inner: number }[] = [];
  const enter = (): void => void open.push({ inner: 0 });
  const leave = (node: { start: number; end: number; id?: { name: string } | null }): void => {
    const first = line(node.start);
    const lines = line(node.end) - first + 1;
    const { inner } = open.pop() as { inner: number };
    const around = open.at(-1);
    if (around !== undefined && lines >= LEAST_LINES) around.inner += lines - 1;
    found.push({ name: node.id?.name ?? '(no name)', line: first, own: lines - inner });
  };
  new Visitor({
    FunctionDeclaration: enter,
    FunctionExpression: enter,
    ArrowFunctionExpression: enter,
    'FunctionDeclaration:exit': leave,
    'FunctionExpression:exit': leave,
    'ArrowFunctionExpression:exit': leave,
  }).visit(parseSync('source.ts', text).program);
  return found;
}

/** The exported functions, classes and public methods of a source text that no doc comment stands before. */
export function undocumented(text: string): readonly Named[] {
  const { program, comments } = parseSync('source.ts', text);
  const line = lineIn(text);
  const exported = namesInLists(program.body as readonly Statement[]);
  const has = (start: number): boolean =>
    comments.some((comment) => isDoc(comment) && comment.end <= start && text.slice(comment.end, start).trim() === '');
  return (program.body as readonly Statement[])
    .flatMap((statement) => declaredIn(statement, exported))
    .filter(({ start }) => !has(start))
    .map(({ name, start }) => ({ name, line: line(start) }));
}

const isDoc = ({ type, value }: Comment): boolean => type === 'Block' && value.startsWith('*') && /[a-z]/i.test(value);

/** What `export { a, b }` exports. */
function namesInLists(body: readonly Statement[]): ReadonlySet<string> {
  return new Set(
    body.flatMap((statement) =>
      statement.type === 'ExportNamedDeclaration' && statement.source === null
        ? statement.specifiers.map(({ local }) => ('name' in local ? local.name : local.value))
        : [],
    ),
  );
}

type Declared = { readonly name: string; readonly start: number };

/** The functions, classes and public methods that a statement exports. */
function declaredIn(statement: Statement, exported: ReadonlySet<string>): readonly Declared[] {
  const isExport = statement.type === 'ExportNamedDeclaration' || statement.type === 'ExportDefaultDeclaration';
  const declaration = (isExport ? (statement as ExportNamedDeclaration).declaration : statement) as Statement | null;
  if (declaration === null) return [];
  const { start } = statement;
  const isOut = (name: string | undefined): boolean => isExport || (name !== undefined && exported.has(name));
  if (declaration.type === 'FunctionDeclaration') {
    const name = declaration.id?.name;
    return isOut(name) ? [{ name: name ?? 'default', start }] : [];
  }
  if (declaration.type === 'VariableDeclaration') {
    return declaration.declarations.flatMap(({ id, init }) => {
      const name = id.type === 'Identifier' ? id.name : '';
      const isFunction = init?.type === 'ArrowFunctionExpression' || init?.type === 'FunctionExpression';
      return isFunction && isOut(name) ? [{ name, start }] : [];
    });
  }
  if (declaration.type !== 'ClassDeclaration' || !isOut(declaration.id?.name)) return [];
  const name = declaration.id?.name ?? 'default';
  const methods = declaration.body.body.flatMap((member) =>
    member.type === 'MethodDefinition' &&
    member.kind !== 'constructor' &&
    member.accessibility !== 'private' &&
    member.key.type === 'Identifier'
      ? [{ name: `${name}.${member.key.name}`, start: member.start }]
      : [],
  );
  return [{ name, start }, ...methods];
}
