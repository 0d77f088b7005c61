// Automatic payouts to Lightning addresses whose servers are silent: nobody else's wait for them.
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Context } from '../../../src/flow/context.ts';
import { requestAutomaticPayouts } from '../../../src/flow/payouts/automatic-payouts.ts';
import { setPayoutSettings } from '../../../src/flow/payouts/settings.ts';
import { runAutomaticPayouts } from '../../../src/main/wiring/automatic-payouts.ts';
import { createOutbound } from '../../../src/outside/outbound/outbound.ts';
import { ANYWHERE } from '../../../src/outside/outbound/policy.ts';
import { announceDue } from '../../../src/store/payouts/settings.ts';
import { fund, OUTSIDE, tellFee } from '../../support/funded.ts';
import { eventually } from '../../support/service.ts';
import { openServiceOnDatabase, type ServiceOnDatabase } from '../../support/service-on-database.ts';

const DAY_MS = 86_400_000;
const SILENT = 8;
let world: ServiceOnDatabase;
let ctx: Context;
let asked = 0;
let answers = false;
const server = createServer((_request, response) => {
  asked += 1;
  if (answers) response.end('no JSON');
});
beforeAll(async () => {
  world = await openServiceOnDatabase();
  await tellFee(world.ctx);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const ports = { ...world.ctx.ports, lightning: {} as never, outbound: createOutbound(ANYWHERE) };
  ctx = { ...world.ctx, network: 'sandbox', ports };
});
afterAll(async () => {
  server.closeAllConnections();
  server.close();
  await world.drop();
});

async function shop(name: string, method: 'bitcoin' | 'lightning', destination: string): Promise<bigint> {
  const merchantId = await world.openShop(name);
  const nothing = { enabled: null, leave: null, sourceCurrency: null, paused: null };
  await setPayoutSettings(ctx, { merchantId, change: { ...nothing, method, destination, threshold: '0.5' } });
  await fund(ctx, merchantId, 100_000_000n);
  return merchantId;
}
const payouts = async (merchantId: bigint): Promise<number> =>
  (await world.admin.query('select id from payouts where merchant_id = $1', [merchantId])).rows.length;

test('an address that is silent keeps no other payout waiting', async () => {
  const { port } = server.address() as AddressInfo;
  for (let n = 0; n < SILENT; n++) await shop(`silent${n}`, 'lightning', `shop${n}@localhost:${port}`);
  const honest = await shop('honest', 'bitcoin', OUTSIDE);
  await world.wait(DAY_MS + 1);
  const stop = await runAutomaticPayouts(ctx, () => undefined);
  await announceDue(ctx.db, world.now());
  await eventually('the payout of the other', async () => (await payouts(honest)) === 1, 8_000);
  await eventually('all are asked', () => asked === SILENT, 15_000);
  await stop();
}, 60_000);

test('one that was silent is asked again after ten minutes, and not with every credit', async () => {
  const which = { overLightning: true, silent: new Map<bigint, number>() };
  const run = () => requestAutomaticPayouts(ctx, which, () => undefined);
  await run();
  const before = asked;
  await run();
  expect(asked).toBe(before);
  answers = true;
  await world.wait(600_000);
  await run();
  expect(asked).toBe(before + SILENT);
}, 60_000);
