// Outputs at a script that our key does not control on their chain are never payments. Should one be booked all the same, the audit is red.
import { afterEach, beforeEach, expect, test } from 'vitest';
import { resolveTransaction } from '../../src/flow/transactions/create-cancel-resolve.ts';
import { openServiceOnDatabase, type ServiceOnDatabase } from '../support/service-on-database.ts';

let service: ServiceOnDatabase;
beforeEach(async () => {
  service = await openServiceOnDatabase({ also: 'DOGE' });
});
afterEach(() => service.drop());

test('the audit names each payment and each deposit at a witness program on a chain without segwit', async () => {
  const [credited, waiting, unbooked] = [await service.create(), await service.create(), await service.create()];
  for (const made of [credited, waiting]) await service.pay(made.transactionId, 500_000_000n, { currency: 'DOGE' });
  await service.mine(70, 'DOGE');
  await service.judge();
  await resolveTransaction(service.ctx, {
    merchantId: service.merchantId,
    transactionId: credited.transactionId,
    action: 'accept',
    part: null,
  });
  await service.pay(unbooked.transactionId, 700_000_000n, { currency: 'DOGE' });
  await service.judge();
  expect(await service.available('DOGE')).toBe(500_000_000n);

  const findings = await service.findings();
  expect(findings.every((one) => one.startsWith('CHAIN-3: DOGE '))).toBe(true);
  for (const [made, place] of [
    [credited, 'a payment'],
    [credited, 'the deposit dep:doge:'],
    [waiting, 'a payment'],
    [waiting, 'the deposit dep:doge:'],
    [unbooked, 'a payment'],
  ] as const)
    expect(findings.filter((one) => one.includes(` is ${place}`) && one.includes(made.transactionId))).toHaveLength(1);
  expect(findings).toHaveLength(5);
});
