// The demo merchant over several starts: a password that the operator changed stays as it is, with the sign-ins made by it, unless
// BURSAR_DEMO_PASSWORD names another.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { setUser } from '../../src/flow/merchants/merchants.ts';
import { refresh } from '../../src/flow/sign-in/refresh-tokens.ts';
import { signIn } from '../../src/flow/sign-in/sign-in.ts';
import { readConfig } from '../../src/main/config/read-config.ts';
import { printDemo } from '../../src/main/sandbox/demo-login.ts';
import { prepareDemo } from '../../src/main/sandbox/demo-merchant.ts';
import { wireSignIn } from '../../src/main/wiring/wire.ts';
import { freshDatabase } from '../support/postgres.ts';

const folder = mkdtempSync(join(tmpdir(), 'bursar-demo-'));
const configOf = (environment: Record<string, string> = {}) => readConfig({ BURSAR_DATA_DIR: folder, ...environment });
let database: Awaited<ReturnType<typeof freshDatabase>>;
let operator: ReturnType<typeof wireSignIn>;

beforeAll(async () => {
  database = await freshDatabase();
  operator = wireSignIn({ ...configOf(), databaseUrl: database.url }, { applicationName: 'test', maxConnections: 2 });
});
afterAll(async () => {
  await operator.close();
  await database.drop();
  rmSync(folder, { recursive: true, force: true });
});

async function said(environment: Record<string, string> = {}): Promise<string> {
  const log = vi.spyOn(console, 'log').mockImplementation(() => undefined);
  try {
    printDemo('http://127.0.0.1:8080', await prepareDemo(configOf(environment), operator.ctx));
    return log.mock.calls.flat().join('\n');
  } finally {
    log.mockRestore();
  }
}

const enters = (password: string) => signIn(operator.ctx, { username: 'demo', password });

test('a changed password is kept by the next start, and so are its sign-ins', async () => {
  expect(await said()).toContain('username demo, password demo-demo-demo');
  await setUser(operator.ctx, { username: 'demo', password: 'changed by hand' });
  const pair = await enters('changed by hand');
  const line = await said();
  expect(line).toContain('username demo, password changed since by the operator');
  expect(line).not.toContain('demo-demo-demo');
  await refresh(operator.ctx, pair);
  await expect(enters('demo-demo-demo')).rejects.toThrow();
});

test('a password that BURSAR_DEMO_PASSWORD gives is set, and set once', async () => {
  await setUser(operator.ctx, { username: 'demo', password: 'changed by hand' });
  const given = { BURSAR_DEMO_PASSWORD: 'given by setting' };
  expect(await said(given)).toContain('password given by setting');
  const pair = await enters('given by setting');
  await said(given);
  await refresh(operator.ctx, pair);
});
