// Long lists in slices: where values take long to write down, those of the next slice are prepared while a statement runs.
import { expect, test } from 'vitest';
import { inPreparedParts } from '../../src/store/postgres/in-parts.ts';

test('the next slice is prepared while one runs, and no two run at once', async () => {
  const steps: string[] = [];
  await inPreparedParts([1, 2, 3, 4, 5], 2, {
    prepare(part) {
      steps.push(`prepare ${part.join()}`);
      return part.join();
    },
    async run(values) {
      steps.push(`run ${values}`);
      await new Promise((resolve) => setImmediate(resolve));
      steps.push(`ran ${values}`);
    },
  });
  const [one, two, three] = ['1,2', '3,4', '5'];
  expect(steps).toEqual([
    ...[`prepare ${one}`, `run ${one}`, `prepare ${two}`, `ran ${one}`],
    ...[`run ${two}`, `prepare ${three}`, `ran ${two}`, `run ${three}`, `ran ${three}`],
  ]);
});

test('after a slice that fails none runs, and the failure is told, also that of the last', async () => {
  for (const wrong of [1, 3, 5]) {
    const ran: number[] = [];
    const work = inPreparedParts([1, 2, 3, 4, 5], 1, {
      prepare: ([value]) => value as number,
      async run(value) {
        ran.push(value);
        if (value === wrong) throw new Error(`no ${value}`);
      },
    });
    await expect(work).rejects.toThrow(`no ${wrong}`);
    expect(ran).toEqual([1, 2, 3, 4, 5].slice(0, wrong));
  }
});
