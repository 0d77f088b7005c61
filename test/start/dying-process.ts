// A process of a group that is ready at once and does nothing, until somebody ends it; while the file that DATABASE_GONE names exists, it
// starts on a database that nobody can reach. It speaks the protocol of src/main/process/life.ts.
import { existsSync } from 'node:fs';
import { openDatabase } from '../../src/main/postgres/embedded.ts';
import { runProcess } from '../../src/main/process/life.ts';

await runProcess('dying', async () => {
  if (existsSync(process.env.DATABASE_GONE ?? ''))
    await openDatabase({ databaseUrl: 'postgres://nobody@127.0.0.1:1/none', dataFolder: '' });
  const alive = setInterval(() => undefined, 1_000);
  return { note: 'ready', stop: async () => clearInterval(alive) };
});
