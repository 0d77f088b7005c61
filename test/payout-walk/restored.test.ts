// Random walks of money that leaves, in the real `npm start` with two workers, of which the database, or database and signer, are put back to an earlier copy in the
// middle. The operator does what the audit says; in the end nobody was paid twice, and the audit is green.
import { openSecondWorker, type SecondWorker } from '../support/second-worker.ts';
import { dataFolderFor, type Service, startService } from '../support/service.ts';
import { type Restorable, walkRestored } from './restored.ts';
import { type Opened, testRounds } from './rounds.ts';
import { openWalk } from './walk.ts';

const AT_ONCE = 24;

async function open(): Promise<Restorable & Opened> {
  const { folder, remove } = dataFolderFor();
  const start = () => startService({ dataFolder: folder, environment: { BURSAR_SANDBOX_BLOCK_SECONDS: '0' } });
  let service: Service = start();
  let second: SecondWorker | null = null;
  let url = '';
  async function end(): Promise<void> {
    await second?.stop();
    await service.stop();
    remove();
  }
  try {
    url = await service.ready;
    second = openSecondWorker(folder);
    const scene = await openWalk(() => url, AT_ONCE);
    return {
      folder,
      scene,
      service: () => service,
      second: () => second?.pid() ?? null,
      async restarted(meanwhile) {
        // whoever uses the embedded database keeps it running
        await second?.stop();
        await service.stop();
        meanwhile();
        service = start();
        url = await service.ready;
        second = openSecondWorker(folder);
      },
      close: end,
    };
  } catch (error) {
    await end();
    throw error;
  }
}

testRounds(`of ${AT_ONCE} merchants none is paid twice after a copy was put back`, {
  open,
  walk: walkRestored,
  seeds: AT_ONCE,
  atOnce: AT_ONCE,
});
