// How the tests run: against one PostgreSQL that test/support/global-setup.ts starts, several files at once.
import { defineConfig } from 'vitest/config';

/** Four files at a time on two cores: half of a test's time is waiting. With more they wait for PostgreSQL's disk. */
export const FILES_AT_A_TIME = 4;

/** Files that measure their own process, or change what all of it shares: each has a process of its own. */
const ALONE = [
  'test/bench/**/*.test.ts',
  'test/start/**/*.test.ts',
  'test/core/judge/cost.test.ts',
  'test/flow/transactions/judge-dust.test.ts',
  'test/flow/transactions/judge-much.test.ts',
  'test/http/rate-limit.test.ts',
  'test/http/read-body.test.ts',
  'test/outside/folder-bank*.test.ts',
  'test/signer/crowded-socket.test.ts',
  'test/signer/signature-journal.test.ts',
  'test/store/script-owners.test.ts',
  'test/worker/rescan/block-collector.test.ts',
];

/** What holds for every file. */
export const eachFile = {
  pool: 'forks',
  // a developer's .env is not the tests' business
  env: { BURSAR_ENV_FILE: '/dev/null' },
  testTimeout: 30_000,
  hookTimeout: 60_000,
  teardownTimeout: 20_000,
} as const;

export default defineConfig({
  test: {
    globalSetup: ['test/support/global-setup.ts'],
    maxWorkers: FILES_AT_A_TIME,
    reporters: ['default'],
    projects: [
      { test: { ...eachFile, name: 'alone', include: ALONE } },
      // one process after the other takes these files, and loads what they share once: a third of a second less for each
      { test: { ...eachFile, name: 'together', include: ['test/**/*.test.ts'], exclude: ALONE, isolate: false } },
    ],
  },
});
