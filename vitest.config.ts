// How the tests run: each file in a process of its own against one PostgreSQL that test/support/global-setup.ts starts.
import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    globalSetup: ['test/support/global-setup.ts'],
    pool: 'forks',
    // a developer's .env is not the tests' business
    env: { BURSAR_ENV_FILE: '/dev/null' },
    testTimeout: 30_000,
    hookTimeout: 60_000,
    teardownTimeout: 20_000,
    reporters: ['default'],
  },
});
