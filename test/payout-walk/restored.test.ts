// Random walks of money that leaves, in the real `npm start`, of which the database, or database and signer, are put back to an earlier copy in the
// middle. The operator does what the audit says; in the end nobody was paid twice, and the audit is green.
import { afterAll, expect, test } from 'vitest';
import { dataFolderFor, type Service, startService } from '../support/service.ts';
import { type Restorable, walkRestored } from './restored.ts';
import { openWalk } from './walk.ts';

const SEEDS = Number(process.env.SIMULATION_SEEDS ?? 24);
const FIRST = Number(process.env.SIMULATION_FIRST ?? 1);
const AT_ONCE = 24;
const TIMEOUT = 900_000;

type Opened = Restorable & { close(): Promise<void> };
let opened: Opened | null = null;

async function open(): Promise<Opened> {
  const { folder, remove } = dataFolderFor();
  const start = () => startService({ dataFolder: folder, environment: { BURSAR_SANDBOX_BLOCK_SECONDS: '0' } });
  let service: Service = start();
  let url = '';
  async function end(): Promise<void> {
    await service.stop();
    remove();
  }
  try {
    url = await service.ready;
    const scene = await openWalk(() => url, AT_ONCE);
    return {
      folder,
      scene,
      service: () => service,
      async restarted(meanwhile) {
        await service.stop();
        meanwhile();
        service = start();
        url = await service.ready;
      },
      close: end,
    };
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
  `seeds from %i: of ${AT_ONCE} merchants none is paid twice after a copy was put back`,
  async (first) => {
    opened ??= await open();
    const { wrong, log } = await walkRestored(opened, first).catch((error: unknown) => ({ wrong: [String(error)], log: [] }));
    if (wrong.length === 0) return;
    const problems = await (await fetch(`${opened.scene.base()}/readyz`)).text().catch(String);
    const output = `${problems}\n${opened.service().output()}`;
    await close();
    expect.fail(`${wrong.join('\n')}\n\nwhat happened:\n${log.join('\n')}\n\n${output.slice(-8_000)}`);
  },
  TIMEOUT,
);
