// Random walks of money that leaves, in the real `npm start`, of which the database, or database and signer, are put back to an earlier copy in the
// middle. The operator does what the audit says; in the end nobody was paid twice, and the audit is green.
import { dataFolderFor, type Service, startService } from '../support/service.ts';
import { type Restorable, walkRestored } from './restored.ts';
import { type Opened, testRounds } from './rounds.ts';
import { openWalk } from './walk.ts';

const AT_ONCE = 24;

async function open(): Promise<Restorable & Opened> {
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

testRounds(`of ${AT_ONCE} merchants none is paid twice after a copy was put back`, {
  open,
  walk: walkRestored,
  seeds: AT_ONCE,
  atOnce: AT_ONCE,
});
