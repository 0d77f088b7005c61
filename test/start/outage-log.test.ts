// A killed database is one line of each process's log, and one more when it is back.
import { setTimeout as delay } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { dataFolderFor, eventually, startService } from '../support/service.ts';

test('a killed database is logged once by each process, without a stack, and that it is back once too', {
  timeout: 120_000,
}, async () => {
  const { folder, remove } = dataFolderFor();
  const service = startService({ dataFolder: folder });
  const base = await service.ready;
  const before = service.output().length;
  const said = () => service.output().slice(before);
  const killed = service.postgres()!;
  process.kill(killed, 'SIGKILL');
  await eventually('another server', () => ![null, killed].includes(service.postgres()));
  for (let calls = 0; calls < 20; calls++) {
    await fetch(`${base}/readyz`).then((answer) => answer.text());
    await delay(50);
  }
  await eventually('both processes telling that it is back', () => said().match(/can be used again/g)?.length === 2, 60_000);
  const lines = said().trim().split('\n');
  expect(lines.filter((line) => line.includes('PostgreSQL died; starting it again'))).toHaveLength(1);
  for (const name of ['worker', 'api']) {
    const own = lines.filter((line) => line.includes(`"name":"${name}"`)).map((line) => JSON.parse(line) as { msg: string });
    expect(own.map(({ msg }) => msg)).toEqual([
      'the database cannot be used: everything that needs it waits and continues by itself',
      'the database can be used again',
    ]);
  }
  expect(said()).not.toMatch(/^\s+at |"stack"/m);
  expect(lines.filter((line) => line.startsWith('signer: ')).length).toBeLessThan(2);
  expect(lines.length, said()).toBeLessThan(7);
  expect(await service.stop()).toBe(0);
  remove();
});
