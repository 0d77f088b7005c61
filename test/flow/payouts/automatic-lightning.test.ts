// Automatic payouts to a Lightning address: while its server is asked, before the database transaction of the request, the balance may fall.
import { createHash, randomBytes } from 'node:crypto';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { mostPayable } from '../../../src/core/lightning/payout-fees.ts';
import { formatMinor } from '../../../src/core/money.ts';
import type { Context } from '../../../src/flow/context.ts';
import { invoiceOfDestination, requestLightningPayout } from '../../../src/flow/lightning/payout-request.ts';
import { requestAutomaticPayouts } from '../../../src/flow/payouts/automatic-payouts.ts';
import { requestPayout } from '../../../src/flow/payouts/bitcoin-request.ts';
import { getPayoutSettings, setPayoutSettings } from '../../../src/flow/payouts/settings.ts';
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
/** Answered with instead of a new invoice; null = nothing is. */
let again: string | null = null;
let given = '';
let expirySeconds = 3_600;
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
    expirySeconds,
  });
  given = again ?? invoice;
  response.end(JSON.stringify({ pr: given, routes: [] }));
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

const nothing = { enabled: null, sourceCurrency: null, paused: null };
/** It is paid out to by hand only. */
async function rests(merchantId: bigint): Promise<void> {
  const change = { ...nothing, method: null, destination: null, threshold: null, leave: null, paused: true };
  await setPayoutSettings(ctx, { merchantId, change });
}
/** A shop with 2 BTC, of which half is paid out by itself. */
async function shop(name: string): Promise<bigint> {
  const merchantId = await world.openShop(name);
  const change = { ...nothing, method: 'lightning' as const, destination: `shop@${base.slice(7)}`, threshold: '0.5', leave: '1' };
  await setPayoutSettings(ctx, { merchantId, change });
  await fund(ctx, merchantId, 2n * BTC);
  await world.wait(DAY_MS);
  return merchantId;
}
const HALF = mostPayable(BTC);
const byHand = async (merchantId: bigint): Promise<string> => {
  const destination = `shop@${base.slice(7)}`;
  const of = { merchantId, destination, amount: formatMinor(HALF, 8) };
  const paymentRequest = (await invoiceOfDestination(ctx, of)) as string;
  return (await requestLightningPayout(ctx, { ...of, paymentRequest })).id;
};
async function paused(merchantId: bigint): Promise<string | null> {
  for (let n = 0; n < 3; n++) {
    expect((await getPayoutSettings(ctx, { merchantId })).paused).toBe(false);
    expect(await pass()).toBe(0);
    await world.wait(600_000);
  }
  return (await getPayoutSettings(ctx, { merchantId })).pausedReason;
}

describe('an address pauses them with its third answer in a row that cannot be paid', () => {
  afterEach(() => {
    [again, expirySeconds] = [null, 3_600];
  });

  test('an invoice that the merchant has paid, or is paying', async () => {
    const merchantId = await shop('repeated');
    await byHand(merchantId);
    await fund(ctx, merchantId, 2n * BTC - (await available(merchantId)));
    again = given;
    expect(await paused(merchantId)).toMatch(/^3 requests in a row were refused: .* an invoice that was asked for before/);
  });

  test('an invoice that another merchant is paying', async () => {
    const other = await shop('first');
    await rests(other);
    await byHand(other);
    const merchantId = await shop('second');
    again = given;
    expect(await paused(merchantId)).toMatch(/^3 requests in a row were refused: .* an invoice that was asked for before/);
  });

  test('an invoice that expires before it can be paid', async () => {
    const merchantId = await shop('expiring');
    expirySeconds = 30;
    expect(await paused(merchantId)).toMatch(/^3 requests in a row were refused: The invoice expires at/);
  });
});

test('an address that gives an invoice again is no other payout: the one that waits is given, and once it is paid the address is refused', async () => {
  const merchantId = await shop('hand');
  await rests(merchantId);
  const id = await byHand(merchantId);
  again = given;
  await fund(ctx, merchantId, 2n * BTC);
  expect(await byHand(merchantId)).toBe(id);
  await world.admin.query(
    `update payouts set status = 'completed', step = 'ended', fee = 0, completed_at = now() where id = $1`,
    [id],
  );
  // whose call may have been made twice learns that it is paid
  await expect(byHand(merchantId)).rejects.toMatchObject({ code: 'invalid_destination', message: expect.stringContaining(id) });
  again = null;
  expect(await byHand(merchantId)).not.toBe(id);
});

test('what is to be left stays, also where the balance falls while the address is asked', async () => {
  const merchantId = await world.openShop('leaves');
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
