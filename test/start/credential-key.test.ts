// The key that seals sign-ins and prices: a fresh folder makes one; one that has sealed and lost it does not go on with another.
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { Network } from '../../src/core/currency.ts';
import { addMerchant } from '../../src/flow/merchants/merchants.ts';
import { prepareSeals, rowSeals } from '../../src/main/wiring/credential-key.ts';
import { openServiceOnDatabase, type ServiceOnDatabase } from '../support/service-on-database.ts';

let service: ServiceOnDatabase;
let dataFolder: string;
beforeEach(async () => {
  service = await openServiceOnDatabase();
  // as before the first start
  await service.admin.query('truncate users, merchants, seal_versions cascade');
  dataFolder = mkdtempSync(join(tmpdir(), 'bursar-key-'));
});
afterEach(async () => {
  rmSync(dataFolder, { recursive: true });
  await service.drop();
});

/** As a process does when it starts. */
async function start(network: Network, credentialKey: Uint8Array | null = null) {
  const config = { credentialKey, dataFolder, network };
  const ctx = { ...service.ctx, ports: { ...service.ctx.ports, seals: rowSeals(config) } };
  await prepareSeals(config, ctx);
  return ctx;
}

test('a fresh folder makes the key before it says that its rows are sealed', async () => {
  await start('mainnet');
  expect(readdirSync(dataFolder).sort()).toEqual(['credential-key', 'credentials-sealed']);
  await start('mainnet');
});

test('processes that share a folder and start together make one key', async () => {
  const seals = (await Promise.all([start('mainnet'), start('mainnet'), start('mainnet')])).map((ctx) => ctx.ports.seals);
  const made = seals[0]!.seal(['rate', 'BTC']);
  for (const one of seals) expect(one.fits(['rate', 'BTC'], made)).toBe(true);
});

test('without the key that has sealed users nothing starts outside the sandbox, and the message says what helps', async () => {
  const ctx = await start('mainnet');
  await addMerchant(ctx, { username: 'new', password: 'correct horse battery', email: 'new@example.com', businessName: 'New' });
  rmSync(join(dataFolder, 'credential-key'));
  await expect(start('mainnet')).rejects.toThrow(
    /credential-key is gone, which has sealed users, settings and prices: put it back/,
  );
  expect(readdirSync(dataFolder)).toEqual(['credentials-sealed']);
  await start('sandbox');
  await start('mainnet', Buffer.alloc(32, 1));
});
