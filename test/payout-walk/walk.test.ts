// Random walks of money that leaves, in the real `npm start` with two workers: many merchants at once are paid, ask for payouts by every
// method and give payments back, while processes are killed with -9, nodes lose answers and blocks are replaced. In the end each payee has
// exactly what is due, each balance is what a model written from the contract says, and the audit is green. `npm run simulate -- --seeds N` walks more of them.
import { openSecondWorker, type SecondWorker } from '../support/second-worker.ts';
import { dataFolderFor, startService } from '../support/service.ts';
import { type Opened, testRounds } from './rounds.ts';
import { openWalk, type Walk, walk } from './walk.ts';

const AT_ONCE = 150;

async function open(): Promise<Walk & Opened> {
  const { folder, remove } = dataFolderFor();
  const service = startService({ dataFolder: folder, environment: { BURSAR_SANDBOX_BLOCK_SECONDS: '0' } });
  let second: SecondWorker | null = null;
  async function end(): Promise<void> {
    await second?.stop();
    await service.stop();
    remove();
  }
  try {
    const url = await service.ready;
    second = openSecondWorker(folder);
    const { pid } = second;
    const scene = await openWalk(() => url, AT_ONCE);
    return { service: () => service, folder, scene, second: pid, close: end };
  } catch (error) {
    await end();
    throw error;
  }
}

testRounds(`${AT_ONCE} merchants get what is due, once`, { open, walk: walk, seeds: AT_ONCE, atOnce: AT_ONCE });
