// A sandbox in a process of its own, for tests that kill it: `sandbox-child.ts <folder> <block seconds>` prints its endpoint as one line.
import { join } from 'node:path';
import { openMovableClock } from '../../../src/outside/clock.ts';
import { createSandbox } from '../../../src/sandbox/sandbox.ts';
import { tableService } from './table-service.ts';

const [folder = '', blockSeconds = '0'] = process.argv.slice(2);
const sandbox = await createSandbox({
  folder,
  blockSeconds: Number(blockSeconds),
  clock: openMovableClock(join(folder, 'clock-offset')),
  service: tableService().service,
  onEnd: (reason) => {
    console.error(reason);
    process.exit(1);
  },
});
console.log(JSON.stringify({ url: sandbox.url, secret: sandbox.secret }));
