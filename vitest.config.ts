// How the tests run: each file in a process of its own against one PostgreSQL that test/support/global-setup.ts starts.
import { availableParallelism } from 'node:os';
import { defineConfig } from 'vitest/config';

/** Three files at a time on two cores: half of a test's time is waiting. More than four, and they wait for PostgreSQL's disk. */
const FILES_AT_A_TIME = Math.min(4, Math.max(3, availableParallelism() - 1));

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    globalSetup: ['test/support/global-setup.ts'],
    pool: 'forks',
    maxWorkers: FILES_AT_A_TIME,
    // a developer's .env is not the tests' business
    env: { BURSAR_ENV_FILE: '/dev/null' },
    testTimeout: 30_000,
    hookTimeout: 60_000,
    teardownTimeout: 20_000,
    reporters: ['default'],
  },
});
