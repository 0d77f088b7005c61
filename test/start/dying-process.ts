// A process of a group that is ready at once and does nothing, until somebody ends it. It speaks the protocol of src/main/process-life.ts.
import { runProcess } from '../../src/main/process-life.ts';

await runProcess('dying', async () => {
  const alive = setInterval(() => undefined, 1_000);
  return { note: 'ready', stop: async () => clearInterval(alive) };
});
