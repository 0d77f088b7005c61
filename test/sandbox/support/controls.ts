// A sandbox whose controls are called over HTTP, with a service that is a table.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect } from 'vitest';
import { openMovableClock } from '../../../src/outside/clock.ts';
import { createSandbox } from '../../../src/sandbox/sandbox.ts';
import type { Sandbox } from '../../../src/sandbox/service-side.ts';
import { post, tableService } from './table-service.ts';

export let folder: string;
export let clock: ReturnType<typeof openMovableClock>;
export let { service, calls } = tableService();
export let sandbox: Sandbox;

/** Registers the hooks: one sandbox for a file's tests, and nothing of it for those of the next file, which has this module too. */
export function withSandbox(): void {
  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), 'bursar-controls-'));
    clock = openMovableClock(join(folder, 'clock-offset'));
    ({ service, calls } = tableService());
    const onEnd = (reason: string) => {
      throw new Error(reason);
    };
    sandbox = await createSandbox({ folder, blockSeconds: 0, clock, service, onEnd });
  });
  afterAll(async () => {
    await sandbox.close();
    clock.close();
    rmSync(folder, { recursive: true });
  });
}

/** The answer of a control; throws when it refuses. */
export const ask = async (name: string, body: unknown): Promise<Record<string, unknown>> => {
  const { status, json } = await post(sandbox.url, name, body);
  if (status !== 200) throw new Error(`${name}: ${status} ${JSON.stringify(json)}`);
  return json;
};
/** Status, code and field of a control's refusal. */
export const refused = async (name: string, body: unknown): Promise<[number, unknown, unknown]> => {
  const { status, json } = await post(sandbox.url, name, body);
  expect(typeof json.message).toBe('string');
  return [status, json.error, json.param];
};
