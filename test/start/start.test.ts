// The real `npm start`: it gets ready, does what it prints, stops in order, and survives the death of any of its processes. Nothing that was
// acknowledged is gone after any of them, or all of them, were killed.
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { askCli } from '../cli/run.ts';
import { dataFolderFor, eventually, livingProcesses, type Service, startService } from '../support/service.ts';

const TIMEOUT = 60_000;
const DEMO = { username: 'demo', password: 'demo-demo-demo' };

async function call(base: string, path: string, body: object): Promise<{ status: number; json: Record<string, unknown> }> {
  const answer = await fetch(base + path, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
  return { status: answer.status, json: (await answer.json()) as Record<string, unknown> };
}

async function signIn(base: string): Promise<string> {
  const { status, json } = await call(base, '/auth', DEMO);
  if (status !== 200) throw new Error(`/auth answered ${status} ${JSON.stringify(json)}`);
  return json.access_token as string;
}

async function createPayment(base: string): Promise<string> {
  const answer = await call(base, '/create_transaction', {
    access_token: await signIn(base),
    amount: '25.00',
    crypto_selected: 'BTC',
  });
  if (answer.status !== 200) throw new Error(`/create_transaction answered ${answer.status} ${JSON.stringify(answer.json)}`);
  return (
    (answer.json.transaction as { transaction_id: string } | undefined)?.transaction_id ?? (answer.json.transaction_id as string)
  );
}

/** A payment, as soon as one can be created: the node may just have been away. */
const paymentOf = (base: string): Promise<string> =>
  eventually('a payment can be created', () => createPayment(base).catch(() => null));

/** The processes that a process has started. */
const childrenOf = (pid: number): { pid: number; command: string }[] =>
  execFileSync('ps', ['--ppid', String(pid), '-o', 'pid=,args='], { encoding: 'utf8' })
    .trim()
    .split('\n')
    .map((line) => ({ pid: Number.parseInt(line, 10), command: line }));

const isUp = (base: string) => async () => {
  const answer = await fetch(`${base}/readyz`).catch(() => null);
  return answer?.status === 200 && (await createPayment(base).catch(() => null)) !== null;
};

describe('one group on one data folder', { timeout: TIMEOUT }, () => {
  const { folder, remove } = dataFolderFor();
  let service: Service;
  let base: string;
  const start = async () => {
    service = startService({ dataFolder: folder });
    base = await service.ready;
  };
  beforeAll(start, TIMEOUT);
  afterAll(async () => {
    await service.stop();
    remove();
  }, TIMEOUT);

  test('it prints the address, the credentials and a command that works as it stands', () => {
    expect(service.output()).toContain('demo merchant: username demo, password demo-demo-demo');
    const command = /^try: (.*)$/m.exec(service.output())?.[1] ?? '';
    expect(JSON.parse(execFileSync('bash', ['-c', command], { encoding: 'utf8' }))).toMatchObject({ token_type: 'bearer' });
  });

  test('the first call after ready can create a payment', async () => {
    expect(await createPayment(base)).toMatch(/^txn_/);
  });

  test('a second start on the same folder is refused in one line', async () => {
    const second = startService({ dataFolder: folder });
    expect(await second.ended).toBe(1);
    expect(second.output().trim().split('\n')).toHaveLength(1);
    expect(second.output()).toMatch(/is in use by the start with process number \d+/);
  });

  test.each(['api', 'worker', 'signer', 'sandbox-process'])('after a kill of %s it comes back by itself', async (entry) => {
    const pid = await eventually(entry, () => service.processOf(entry));
    process.kill(pid, 'SIGKILL');
    await eventually(`another ${entry}`, () => {
      const now = service.processOf(entry);
      return now !== null && now !== pid;
    });
    await eventually('the service answers', isUp(base));
    // a node that was down is usable again once the worker has looked
    await paymentOf(base);
  });

  test('after a kill of PostgreSQL it comes back by itself, and nothing is gone', async () => {
    const id = await paymentOf(base);
    const pid = service.postgres()!;
    process.kill(pid, 'SIGKILL');
    await eventually('another server', () => {
      const now = service.postgres();
      return now !== null && now !== pid;
    });
    await eventually('the service answers', isUp(base));
    const check = await call(base, '/check_transaction', { access_token: await signIn(base), transaction_id: id });
    expect(check.status).toBe(200);
  });

  test('a signer that is killed while PostgreSQL recovers waits for it, and ends nothing', async () => {
    await eventually('the service answers', isUp(base));
    for (let n = 0; n < 2; n++) {
      const pid = await eventually('the signer', () => service.processOf('signer'));
      process.kill(pid, 'SIGKILL');
      await eventually('another signer', () => ![null, pid].includes(service.processOf('signer')));
    }
    await eventually('the service answers', isUp(base));
    const sessions = childrenOf(service.postgres()!);
    const session = sessions.find(({ command }) => command.includes('bursar_service'))!;
    // PostgreSQL waits 5 seconds for one that does not end
    process.kill(sessions.find(({ command }) => command.includes('checkpointer'))!.pid, 'SIGSTOP');
    process.kill(session.pid, 'SIGKILL');
    await eventually('it recovers', async () => (await fetch(`${base}/readyz`)).status !== 200);
    process.kill(service.processOf('signer')!, 'SIGKILL');
    await eventually('it waits', () => /signer waits for the database .*in recovery mode/.test(service.output()));
    await eventually('the signer answers', async () => {
      const verified = await askCli(['keys', 'verify'], { BURSAR_DATA_DIR: folder }).catch(() => null);
      return verified !== null;
    });
    await eventually('the service answers', isUp(base));
    expect(service.output()).not.toContain('the whole service stops');
  });

  test('after a kill of the supervisor no process of it stays, and the next start works on the same data at once', async () => {
    const id = await paymentOf(base);
    process.kill(service.supervisor()!, 'SIGKILL');
    await start();
    const check = await call(base, '/check_transaction', { access_token: await signIn(base), transaction_id: id });
    expect(check.status).toBe(200);
  });

  test('after a kill of npm everything stops by itself', async () => {
    await service.stop();
    service = startService({ dataFolder: folder, by: 'npm' });
    await service.ready;
    service.launcher.kill('SIGKILL');
    await eventually('no process is left', () => livingProcesses(folder).length === 0);
    await start();
  });

  test('between npm and the service there is no process', async () => {
    await service.stop();
    service = startService({ dataFolder: folder, by: 'npm' });
    base = await service.ready;
    const status = readFileSync(`/proc/${service.supervisor()}/status`, 'utf8');
    expect(Number(/^PPid:\s+(\d+)$/m.exec(status)?.[1])).toBe(service.launcher.pid);
    expect(await service.stop()).toBe(0);
    await start();
  });

  test('after a kill of all at once, PostgreSQL too, the next start finds everything', async () => {
    const id = await paymentOf(base);
    const all = [service.launcher.pid!, ...livingProcesses(folder).map((line) => Number.parseInt(line, 10))];
    for (const pid of all) process.kill(pid, 'SIGKILL');
    await service.ended;
    await start();
    const check = await call(base, '/check_transaction', { access_token: await signIn(base), transaction_id: id });
    expect(check.status).toBe(200);
  });

  test.each(['SIGTERM', 'SIGINT'] as const)(
    '%s to all, as from a terminal, stops everything in order within 10 s',
    async (signal) => {
      const began = performance.now();
      process.kill(-service.launcher.pid!, signal);
      expect(await service.ended).toBe(0);
      expect(performance.now() - began).toBeLessThan(10_000);
      expect(livingProcesses(folder)).toEqual([]);
      expect(service.output()).not.toContain('died');
      const again = performance.now();
      await start();
      expect(performance.now() - again).toBeLessThan(20_000);
    },
  );
});

describe('what is refused', { timeout: TIMEOUT }, () => {
  const { folder, remove } = dataFolderFor();
  afterEach(() => expect(livingProcesses(folder)).toEqual([]));
  afterAll(remove);

  async function refusal(environment: Record<string, string>): Promise<string> {
    const service = startService({ dataFolder: folder, environment });
    const began = performance.now();
    expect(await service.ended).toBe(1);
    expect(performance.now() - began).toBeLessThan(15_000);
    return service.output().trim();
  }

  test('a port that is taken, in one line', async () => {
    const { createServer } = await import('node:net');
    const other = createServer();
    await new Promise<void>((resolve) => other.listen(0, '127.0.0.1', resolve));
    const { port } = other.address() as { port: number };
    expect(await refusal({ PORT: String(port) })).toBe(
      `127.0.0.1:${port} is taken by another program: set PORT or HOST to another`,
    );
    await new Promise((resolve) => other.close(resolve));
  });

  test('an unknown variable, in one line', async () => {
    expect(await refusal({ BURSAR_NETWROK: 'sandbox' })).toBe(
      'BURSAR_NETWROK is not a variable of Bursar; the nearest known one is BURSAR_NETWORK',
    );
  });

  test('a database that cannot be reached, with its reason and without its password', async () => {
    const said = await refusal({ DATABASE_URL: 'postgresql://user:hunter2@127.0.0.1:1/none' });
    expect(said.split('\n').at(-1)).toBe(
      'DATABASE_URL: the database at 127.0.0.1:1/none cannot be reached: connect ECONNREFUSED 127.0.0.1:1',
    );
    expect(said).not.toContain('hunter2');
  });

  test('a data folder that cannot be made', async () => {
    expect(await refusal({ BURSAR_DATA_DIR: '/dev/null/data' })).toMatch(
      /^BURSAR_DATA_DIR: \/dev\/null\/data cannot be made or written \(ENOTDIR\)/,
    );
    expect(await refusal({ BURSAR_DATA_DIR: '/proc/bursar/data' })).toMatch(
      /^BURSAR_DATA_DIR: \/proc\/bursar\/data cannot be made or written \(\w+\)[^\n]*$/,
    );
  });
});

test('a process that dies again and again takes the group down with a clear last line', { timeout: TIMEOUT }, async () => {
  const { folder, remove } = dataFolderFor();
  const service = startService({ dataFolder: folder });
  await service.ready;
  let last = 0;
  const killer = setInterval(() => {
    const pid = service.processOf('signer');
    if (pid === null || pid === last) return;
    last = pid;
    process.kill(pid, 'SIGKILL');
  }, 20);
  expect(await service.ended).toBe(1);
  clearInterval(killer);
  expect(service.lastProblem()).toMatch(/^the whole service stops: signer (died 6 times within a minute|ended before)/);
  expect(livingProcesses(folder)).toEqual([]);
  remove();
});

test('PostgreSQL may be killed while it recovers: only the sixth death within a minute ends the group', {
  timeout: TIMEOUT,
}, async () => {
  const { folder, remove } = dataFolderFor();
  const service = startService({ dataFolder: folder });
  await service.ready;
  let last = 0;
  let kills = 0;
  const killer = setInterval(() => {
    const pid = service.postgres();
    if (pid === null || pid === last) return;
    last = pid;
    kills += 1;
    process.kill(pid, 'SIGKILL');
  }, 5);
  expect(await service.ended).toBe(1);
  clearInterval(killer);
  expect(kills).toBeGreaterThanOrEqual(6);
  expect(service.lastProblem()).toBe('the whole service stops: PostgreSQL died too often within a minute');
  expect(livingProcesses(folder)).toEqual([]);
  remove();
});

test('what does not end in time is killed, PostgreSQL too', { timeout: TIMEOUT }, async () => {
  const { folder, remove } = dataFolderFor();
  const service = startService({ dataFolder: folder });
  await service.ready;
  for (const pid of [service.processOf('worker'), service.postgres()]) process.kill(pid!, 'SIGSTOP');
  process.kill(service.supervisor()!, 'SIGTERM');
  expect(await service.ended).toBe(1);
  expect(service.output()).toContain('\nstop: not everything ended in time; killing what is left\n');
  await eventually('no process is left', () => livingProcesses(folder).length === 0);
  remove();
});
