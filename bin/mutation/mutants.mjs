// What `npm run mutate` changes of a file: one comparison, operator, number or statement at a time.
import { parseSync, Visitor } from 'oxc-parser';

const SWAPS = {
  '<': '<=',
  '<=': '<',
  '>': '>=',
  '>=': '>',
  '===': '!==',
  '!==': '===',
  '&&': '||',
  '||': '&&',
  '??': '&&',
  '+': '-',
  '-': '+',
};
const CALLS = { plus: 'minus', minus: 'plus', least: 'greatest', greatest: 'least', some: 'every', every: 'some' };
/** SQL stands in templates: what decides there is swapped by its words. */
const SQL = [
  [/ <> /, ' = '],
  [/ <= /, ' < '],
  [/ >= /, ' > '],
  [/ and not exists /, ' and exists '],
  [/ for (?:no key )?update\b/, ' '],
  [/ order by id\b/, ' '],
  [/ is not null\b/, ' is null'],
];

/** Every mutant of a text: where it begins and ends, and what stands there instead. */
export function mutantsOf(path, text) {
  const found = [];
  const put = (start, end, to) => found.push({ start, end, to });
  const { program } = parseSync(path, text);
  const swap = ({ left, right, operator }) => {
    const at = text.indexOf(operator, left.end);
    if (SWAPS[operator] !== undefined && at >= 0 && at < right.start) put(at, at + operator.length, SWAPS[operator]);
  };
  const types = [];
  new Visitor({
    TSLiteralType: (type) => void types.push(type),
    BinaryExpression: swap,
    LogicalExpression: swap,
    UnaryExpression: ({ operator, start, argument }) => operator === '!' && put(start, argument.start, ''),
    IfStatement: ({ test }) => put(test.start, test.end, 'false'),
    ConditionalExpression: ({ test }) => put(test.start, test.end, 'true'),
    CallExpression: ({ callee }) => {
      const name = callee.type === 'MemberExpression' ? callee.property : callee;
      if (Object.hasOwn(CALLS, name.name ?? '')) put(name.start, name.end, CALLS[name.name]);
    },
    ExpressionStatement: ({ start, end, expression }) =>
      ['CallExpression', 'AssignmentExpression', 'AwaitExpression'].includes(expression.type) && put(start, end, ';'),
    Literal: ({ start, end, value, raw }) => {
      if (typeof value === 'boolean') put(start, end, String(!value));
      else if (typeof value === 'bigint') put(start, end, value === 0n ? '1n' : '0n');
      else if (typeof value === 'number' && !raw.startsWith('0x')) put(start, end, String(value + 1));
    },
    TemplateElement: ({ start, end }) => {
      for (const [words, to] of SQL) {
        for (const match of text.slice(start, end).matchAll(new RegExp(words, 'g')))
          put(start + match.index, start + match.index + match[0].length, to);
      }
    },
  }).visit(program);
  // what is a type changes nothing at run time
  const isType = ({ start, end }) => types.some((type) => type.start <= start && end <= type.end);
  return found.filter((one) => !isType(one)).sort((a, b) => a.start - b.start);
}

/** What a mutant is called, in the output and in test/mutants.json: its line as it stands, and as it would stand. */
export function nameOf(text, { start, end, to }) {
  const from = text.lastIndexOf('\n', start - 1) + 1;
  const until = text.indexOf('\n', end);
  const trim = (line) => line.trim().replace(/\s+/g, ' ');
  return `${trim(text.slice(from, until))}  =>  ${trim(text.slice(from, start) + to + text.slice(end, until))}`;
}
