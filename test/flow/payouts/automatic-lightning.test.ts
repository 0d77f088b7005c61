// Automatic payouts to a Lightning address: while its server is asked, before the database transaction of the request, the balance may fall.
import { createHash, randomBytes } from 'node:crypto';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Context } from '../../../src/flow/context.ts';
import { requestAutomaticPayouts } from '../../../src/flow/payouts/automatic-payouts.ts';
import { requestPayout } from '../../../src/flow/payouts/bitcoin-request.ts';
import { setPayoutSettings } from '../../../src/flow/payouts/settings.ts';
import { createOutbound } from '../../../src/outside/outbound/outbound.ts';
import { ANYWHERE } from '../../../src/outside/outbound/policy.ts';
import { paymentRequest } from '../../../src/sandbox/lightning/bolt11.ts';
import { fund, OUTSIDE, tellFee } from '../../support/funded.ts';
import { openServiceOnDatabase, type ServiceOnDatabase } from '../../support/service-on-database.ts';

const DAY_MS = 86_400_000;
const BTC = 100_000_000n;
const METADATA = '[["text/plain","shop"]]';
let world: ServiceOnDatabase;
let ctx: Context;
let base = '';
/** What happens while the address is asked for its invoice. */
let meanwhile = async (): Promise<unknown> => undefined;
async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const amount = new URL(request.url ?? '/', base).searchParams.get('amount');
  if (amount === null) {
    const limits = { minSendable: 1_000, maxSendable: 1_000_000_000_000 };
    response.end(JSON.stringify({ tag: 'payRequest', callback: `${base}/invoice`, metadata: METADATA, ...limits }));
    return;
  }
  await meanwhile();
  const descriptionHash = createHash('sha256').update(METADATA).digest('hex');
  const invoice = paymentRequest({
    key: createHash('sha256').update('somebody').digest(),
    amountMsat: BigInt(amount),
    atMs: world.now(),
    paymentHash: randomBytes(32),
    paymentSecret: randomBytes(32),
    description: '',
    descriptionHash,
    expirySeconds: 3_600,
  });
  response.end(JSON.stringify({ pr: invoice, routes: [] }));
}
const server = createServer((request, response) => void answer(request, response));
beforeAll(async () => {
  world = await openServiceOnDatabase();
  await tellFee(world.ctx);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  base = `http://localhost:${(server.address() as AddressInfo).port}`;
  const ports = { ...world.ctx.ports, lightning: {} as never, outbound: createOutbound(ANYWHERE) };
  ctx = { ...world.ctx, network: 'sandbox', ports };
});
afterAll(async () => {
  server.closeAllConnections();
  server.close();
  await world.drop();
});

const pass = () =>
  requestAutomaticPayouts(ctx, { overLightning: true, silent: new Map() }, (_merchant, error) => {
    throw error;
  });
const available = (merchantId: bigint) => world.balance(`merchant:${merchantId}:available:BTC`);

test('what is to be left stays, also where the balance falls while the address is asked', async () => {
  const merchantId = await world.openShop('leaves');
  const nothing = { enabled: null, sourceCurrency: null, paused: null };
  const change = {
    ...nothing,
    method: 'lightning' as const,
    destination: `shop@${base.slice(7)}`,
    threshold: '0.5',
    leave: '0.4',
  };
  await setPayoutSettings(ctx, { merchantId, change });
  await fund(ctx, merchantId, BTC);
  await world.wait(DAY_MS);
  meanwhile = () => requestPayout(ctx, { merchantId, amount: '0.3', destination: OUTSIDE });
  expect(await pass()).toBe(0);
  expect(await available(merchantId)).toBeGreaterThan(69_000_000n);
  meanwhile = async () => undefined;
  expect(await pass()).toBe(1);
  expect(await available(merchantId)).toBeGreaterThanOrEqual(40_000_000n);
  expect(await available(merchantId)).toBeLessThan(40_000_010n);
});
