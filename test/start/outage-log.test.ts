// A killed database is one line of each process's log, and one more when it is back.
import { readdirSync, readFileSync } from 'node:fs';
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

/** The server and every process of its own. */
function processesOf(server: number): readonly number[] {
  const all = readdirSync('/proc').filter((name) => /^\d+$/.test(name));
  const children = all.filter((pid) => {
    try {
      return readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ').at(-1)?.split(' ')[1] === String(server);
    } catch {
      return false; // it has just ended
    }
  });
  return [server, ...children.map(Number)];
}

test.skipIf(process.platform !== 'linux')(
  'controls that meet a frozen database, and a sandbox that was killed, cost a line each and no stack',
  { timeout: 120_000 },
  async () => {
    const { folder, remove } = dataFolderFor();
    const service = startService({ dataFolder: folder });
    const base = await service.ready;
    const control = async (name: string, body: object) => {
      const headers = { 'content-type': 'application/json' };
      const answer = await fetch(`${base}/sandbox/${name}`, { method: 'POST', headers, body: JSON.stringify(body) });
      await answer.text();
      return answer.status;
    };
    let before = service.output().length;
    const said = () => service.output().slice(before);
    const frozen = processesOf(service.postgres()!);
    for (const pid of frozen) process.kill(pid, 'SIGSTOP');
    try {
      expect(await control('pay', { transaction_id: 'txn_0351dYxk0d1Jt8vTgkN1AM' })).toBe(503);
      await control('clock', { advance_seconds: 1 });
    } finally {
      for (const pid of frozen) process.kill(pid, 'SIGCONT');
    }
    const own = () =>
      said()
        .split('\n')
        .filter((line) => line.startsWith('sandbox: '));
    await eventually('told that it is back', () => own().some((line) => line.includes('can be used again')), 60_000);
    expect(own()[0]).toMatch(/^sandbox: the database cannot be used: .*: (?!undefined)/);
    expect(own().length, said()).toBe(2);
    expect(said()).not.toMatch(/^\s+at |"stack"/m);

    before = service.output().length;
    process.kill(service.processOf('sandbox-process')!, 'SIGKILL');
    await eventually('the worker telling it', () => said().includes('ECONNREFUSED'), 20_000).catch(() => undefined);
    await eventually('a control is answered', async () => (await control('address', { currency: 'BTC' })) === 200, 30_000);
    expect(said()).toContain('sandbox died (SIGKILL); starting it again');
    expect(said()).not.toMatch(/^\s+at |"stack"/m);
    expect(await service.stop()).toBe(0);
    remove();
  },
);
