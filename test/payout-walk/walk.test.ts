// Random walks of money that leaves, in the real `npm start` with two workers: many merchants at once are paid, ask for payouts by every
// method and give payments back, while processes are killed with -9, nodes lose answers and blocks are replaced. In the end each payee has
// exactly what is due, each balance is what a model written from the contract says, and the audit is green. `npm run simulate -- --seeds N` walks more of them.
import { type ChildProcess, spawn } from 'node:child_process';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { SHELL } from '../cli/run.ts';
import { dataFolderFor, startService } from '../support/service.ts';
import { openWalk, type Walk, walk } from './walk.ts';

const SEEDS = Number(process.env.SIMULATION_SEEDS ?? 150);
const FIRST = Number(process.env.SIMULATION_FIRST ?? 1);
const AT_ONCE = 150;
const TIMEOUT = 900_000;

type Opened = Walk & { close(): Promise<void> };
let opened: Opened | null = null;

async function open(): Promise<Opened> {
  const { folder, remove } = dataFolderFor();
  const service = startService({ dataFolder: folder, environment: { BURSAR_SANDBOX_BLOCK_SECONDS: '0' } });
  let second: ChildProcess | null = null;
  const startSecond = (): void => {
    const child = spawn(process.execPath, [join(import.meta.dirname, '../../src/main/cli.ts'), 'worker'], {
      env: { ...SHELL, BURSAR_DATA_DIR: folder },
      stdio: 'ignore',
    });
    second = child;
    child.once('exit', () => {
      // at once: what is started while it ends would outlive it
      if (second === child) startSecond();
    });
  };
  async function end(): Promise<void> {
    const last = second;
    second = null;
    last?.kill('SIGTERM');
    await service.stop();
    remove();
  }
  try {
    const url = await service.ready;
    startSecond();
    const scene = await openWalk(() => url, AT_ONCE);
    return { service, folder, scene, second: () => second?.pid ?? null, close: end };
  } catch (error) {
    await end();
    throw error;
  }
}
async function close(): Promise<void> {
  const last = opened;
  opened = null;
  await last?.close();
}
afterAll(close, TIMEOUT);

test.each(Array.from({ length: Math.ceil(SEEDS / AT_ONCE) }, (_, round) => FIRST + round * AT_ONCE))(
  `seeds from %i: ${AT_ONCE} merchants get what is due, once`,
  async (first) => {
    opened ??= await open();
    const { wrong, log } = await walk(opened, first).catch((error: unknown) => ({ wrong: [String(error)], log: [] }));
    if (wrong.length === 0) return;
    const problems = await (await fetch(`${opened.scene.base()}/readyz`)).text().catch(String);
    const output = `${problems}\n${opened.service.output()}`;
    await close();
    expect.fail(`${wrong.join('\n')}\n\nwhat happened:\n${log.join('\n')}\n\n${output.slice(-8_000)}`);
  },
  TIMEOUT,
);
