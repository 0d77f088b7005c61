// How tests run beside mutants: each file in a process of its own, because what a process has loaded is of one mutant.
import { defineConfig } from 'vitest/config';
import { eachFile, FILES_AT_A_TIME } from '../../vitest.config.ts';

export default defineConfig({
  test: {
    ...eachFile,
    include: ['test/**/*.test.ts'],
    globalSetup: ['test/support/global-setup.ts'],
    maxWorkers: FILES_AT_A_TIME,
  },
});
