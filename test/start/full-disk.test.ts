// The real `npm start` on a disk that becomes full: whatever ends because of that is started again, and the whole service is back when there
// is space, without anybody's help.
import { execFileSync } from 'node:child_process';
import { rmSync, statfsSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { dataFolderFor, eventually, type Service, startService } from '../support/service.ts';

const TIMEOUT = 180_000;
const MEBIBYTE = 2 ** 20;
const { folder, remove } = dataFolderFor();
const disk = dirname(folder);
/** A disk of its own needs root, and rights that a container may not have. */
const isMounted = mount();
let service: Service;
let base: string;

function mount(): boolean {
  if (process.getuid?.() !== 0 || process.platform !== 'linux') return false;
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=320m,mode=711', 'tmpfs', disk], { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
}

beforeAll(async () => {
  if (!isMounted) return;
  service = startService({ dataFolder: folder });
  base = await service.ready;
}, TIMEOUT);
afterAll(async () => {
  rmSync(join(disk, 'fill'), { force: true });
  if (isMounted) {
    await service.stop();
    execFileSync('umount', ['-l', disk]);
  }
  remove();
}, TIMEOUT);

async function post(path: string, body: object): Promise<{ status: number; json: Record<string, unknown> }> {
  const answer = await fetch(base + path, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
  return { status: answer.status, json: (await answer.json()) as Record<string, unknown> };
}
const create = async (): Promise<string | null> => {
  const signed = await post('/auth', { username: 'demo', password: 'demo-demo-demo' });
  const { access_token } = signed.json;
  const { status, json } = await post('/create_transaction', { access_token, amount: '25.00', crypto_selected: 'BTC' });
  return status === 200 ? (json.transaction_id as string) : null;
};

function fill(): void {
  for (const size of [MEBIBYTE, 4096]) {
    try {
      for (;;) writeFileSync(join(disk, 'fill'), Buffer.alloc(size), { flag: 'a' });
    } catch (error) {
      expect((error as NodeJS.ErrnoException).code).toBe('ENOSPC');
    }
  }
}

test.skipIf(!isMounted)(
  'processes and database that die on a full disk are back when there is space, and nothing that was answered is gone',
  async () => {
    const made = await create();
    expect(made).not.toBeNull();
    const supervisor = service.supervisor();
    const isToldWhileFull = (what: RegExp, times: number) => () => {
      fill(); // whatever ends leaves a little space
      return service.output().split(what).length > times;
    };
    fill();
    process.kill(service.processOf('worker') as number, 'SIGKILL');
    await eventually('it is told', isToldWhileFull(/cannot be written down/, 1));
    await eventually('and why', isToldWhileFull(/problem: the disk of .* is full/, 1));
    for (const name of ['api', 'signer']) process.kill(service.processOf(name) as number, 'SIGKILL');
    process.kill(service.postgres() as number, 'SIGKILL');
    await eventually('the database was tried again', isToldWhileFull(/PostgreSQL died; starting it again/, 3), 60_000);
    expect(statfsSync(disk).bavail).toBeLessThan(2560);
    rmSync(join(disk, 'fill'));
    await eventually('a payment can be created again', () => create().catch(() => null), 100_000);
    expect(service.supervisor()).toBe(supervisor);
    expect(service.output().split('cannot be written down').length, 'told once').toBe(2);
    const signed = await post('/auth', { username: 'demo', password: 'demo-demo-demo' });
    const check = await post('/check_transaction', { access_token: signed.json.access_token, transaction_id: made });
    expect([check.status, check.json.status]).toEqual([200, 'started']);
  },
  TIMEOUT,
);
