// Who may run beside whom, and whose turn it is, where calls hold a database connection for long.
import { expect, test } from 'vitest';
import { createConcurrencyLimit } from '../../src/flow/concurrency-limit.ts';

const LIMIT = { atOnce: 3, ofOne: 2, waiting: 20 };

/** Work that runs until it is told to end. */
function limitedWork() {
  const limit = createConcurrencyLimit(LIMIT);
  const running: { name: string; end: (failure?: Error) => void }[] = [];
  const names = () => running.map(({ name }) => name);
  return {
    names,
    begin: (caller: bigint, name: string) =>
      limit(
        caller,
        () =>
          new Promise<string>((resolve, reject) => {
            running.push({ name, end: (failure) => (failure === undefined ? resolve(name) : reject(failure)) });
          }),
      ),
    async end(name: string, failure?: Error): Promise<void> {
      running.splice(names().indexOf(name), 1)[0]?.end(failure);
      for (let n = 0; n < 10; n++) await Promise.resolve();
    },
  };
}

test('one caller never holds all places, and the one that is left is another’s at once', async () => {
  const { begin, names, end } = limitedWork();
  const all = Array.from({ length: 5 }, (_, n) => begin(1n, `a${n}`));
  expect(names()).toEqual(['a0', 'a1']);
  all.push(begin(2n, 'b0'));
  expect(names()).toEqual(['a0', 'a1', 'b0']);
  for (const name of ['a0', 'a1', 'b0', 'a2', 'a3', 'a4']) {
    expect(names()).toContain(name);
    await end(name);
  }
  expect(await Promise.all(all)).toEqual(['a0', 'a1', 'a2', 'a3', 'a4', 'b0']);
});

test('callers that wait take turns, however many calls one of them has in line', async () => {
  const { begin, names, end } = limitedWork();
  const all = ['a0', 'a1', 'a2', 'a3', 'a4', 'a5'].map((name) => begin(1n, name));
  all.push(begin(2n, 'b0'), begin(2n, 'b1'), begin(3n, 'c0'));
  const order: string[] = [];
  while (names().length > 0) {
    const [first] = names() as [string];
    order.push(first);
    await end(first);
  }
  expect((await Promise.all(all)).length).toBe(9);
  expect(order.indexOf('b1')).toBeLessThan(order.indexOf('a4'));
  expect(order.indexOf('c0')).toBeLessThan(order.indexOf('a4'));
});

test('a call that fails makes room, and who fills the line is refused while others are not', async () => {
  const { begin, names, end } = limitedWork();
  const failing = begin(1n, 'a0');
  const all = [begin(1n, 'a1'), ...Array.from({ length: 10 }, (_, n) => begin(1n, `w${n}`))];
  await expect(begin(1n, 'one too many')).rejects.toMatchObject({ code: 'overloaded' });
  all.push(begin(2n, 'b0'));
  expect(names()).toContain('b0');
  failing.catch(() => undefined);
  await end('a0', new Error('broken'));
  await expect(failing).rejects.toThrow('broken');
  expect(names()).toContain('w0');
  while (names().length > 0) await end(names()[0] as string);
  expect((await Promise.all(all)).length).toBe(12);
});
