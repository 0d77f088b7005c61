// Stands in for vitest's `test` and `describe` in a copy of the repository: keeps the tests instead of running them, so that they can be run for
// one mutant after the other (test-loop.mjs).
import { expect as its } from 'vitest';

export const expect = its;
/** Every test of the files that were imported, with its file. */
export const collected = [];
let file = null;
const names = [];

/** What is registered from now on stands in this file. */
export function inFile(path) {
  file = path;
}

function add(name, options, body) {
  const run = typeof options === 'function' ? options : body;
  collected.push({ file, name: [...names, name].join(' > '), run });
}

export const test = Object.assign(add, {
  each: (rows) => (name, options, body) => {
    const run = typeof options === 'function' ? options : body;
    for (const [at, row] of rows.entries()) add(`${name} [${at}]`, () => run(...(Array.isArray(row) ? row : [row])));
  },
});
export const it = Object.assign((...all) => test(...all), { each: test.each });

function group(name, options, body) {
  names.push(name);
  (typeof options === 'function' ? options : body)();
  names.pop();
}
export const describe = Object.assign(group, {
  each: (rows) => (name, options, body) => {
    const run = typeof options === 'function' ? options : body;
    for (const row of rows) group(name, () => run(...(Array.isArray(row) ? row : [row])));
  },
});
