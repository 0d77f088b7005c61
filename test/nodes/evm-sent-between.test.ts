// An operator has used the words elsewhere: ether leaves the address that USDT is paid from, or one of our addresses pays another one in a way that this
// server never does. What is at an address of ours is no loss, and what is gone is booked in each currency.
import { afterAll, beforeAll, expect, test } from 'vitest';
import { openBreakers } from '../../src/store/ledger/breakers.ts';
import { recoverSent } from '../../src/worker/payouts/evm/passed-nonces.ts';
import { FINAL } from './evm-lied-to.ts';
import { type EvmService, openEvmService } from './evm-service.ts';
import { type Call, GAS_PRICE, ledgerIsChain, sent, transfer, works } from './evm-steps.ts';

const TIMEOUT = 300_000;
const UNITS = 300_000_000n;
const TENTH = 10n ** 17n;
const GAS = 21_000n * GAS_PRICE;
const NOBODY = `0x${'e7'.repeat(20)}`;
const AN_HOUR_MS = 3_600_000;
let service: EvmService;
const ours = new Set<string>();
const lost = (currency: string) => service.balance(`expense:unknown_outflow:${currency}`);
const recovers = (txid: string, acceptsLoss = true) => recoverSent(service.ctx, txid, { by: 'operator test', acceptsLoss });

beforeAll(async () => {
  service = await openEvmService();
  for (const currency of ['ETH', 'USDT'] as const) ours.add(await service.hot(currency));
}, TIMEOUT);
afterAll(() => service?.close(), TIMEOUT);

/** A transaction of one currency, at whose address so much of one lies. */
async function paid(currency: 'ETH' | 'USDT', of: 'ETH' | 'USDT' = currency): Promise<string> {
  const { address } = await service.owe(currency, 300_00n);
  await service.pay(of, address, of === 'ETH' ? TENTH : UNITS);
  await service.mine(FINAL);
  ours.add(address);
  return address;
}
/** It leaves by the words, and is final. */
async function left(from: string, to: string, call: Call): Promise<string> {
  const txid = await sent(service, from, to, call);
  await service.mine(FINAL);
  service.restart();
  await works(service, 1);
  return txid;
}
/** What comes afterwards is moved and paid as ever, and nothing is red. */
async function goesOn(): Promise<void> {
  await ledgerIsChain(service, ours);
  await service.goOn();
  // what a worker has found red it looks at again after a while
  service.restart();
  await service.work(AN_HOUR_MS);
  await works(service, 2);
  expect(await openBreakers(service.db)).toEqual([]);
  await ledgerIsChain(service, ours);
}

test('ether of the address that USDT is paid from, to nobody known', { timeout: TIMEOUT }, async () => {
  const txid = await left(await service.hot('USDT'), NOBODY, { value: TENTH });
  expect((await service.findings()).join()).toContain('EVM-1');
  await expect(recovers(txid, false)).rejects.toThrow('0.10000000 ETH to nobody that this database knows (--accept-loss');
  // by three at once
  const all = await Promise.allSettled([recovers(txid), recovers(txid), recovers(txid)]);
  const booked = { currency: 'USDT', lost: 0n, besides: [{ currency: 'ETH', lost: TENTH }] };
  expect(all.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []))).toMatchObject([booked]);
  const refused = all.flatMap((one) => (one.status === 'rejected' ? [String(one.reason)] : []));
  expect(refused).toEqual(Array.from({ length: 2 }, () => expect.stringContaining('is known')));
  expect(await lost('ETH')).toBe(TENTH);
  await goesOn();
});

test('the same to the address that ether is paid from', { timeout: TIMEOUT }, async () => {
  const txid = await left(await service.hot('USDT'), await service.hot('ETH'), { value: TENTH });
  expect(await recovers(txid, false)).toMatchObject({ currency: 'USDT', lost: 0n, besides: [] });
  expect(await lost('ETH')).toBe(TENTH);
  await goesOn();
});

test('a payment in ether to the address that USDT is paid from', { timeout: TIMEOUT }, async () => {
  const txid = await left(await paid('ETH'), await service.hot('USDT'), { value: TENTH - GAS });
  expect(await recovers(txid, false)).toMatchObject({ currency: 'ETH', lost: 0n });
  expect(await lost('ETH')).toBe(TENTH);
  await goesOn();
});

test('ether that is paid out from to the address of a transaction', { timeout: TIMEOUT }, async () => {
  const address = await paid('ETH');
  const txid = await left(await service.hot('ETH'), address, { value: TENTH });
  expect(await recovers(txid, false)).toMatchObject({ currency: 'ETH', lost: 0n });
  expect(await lost('ETH')).toBe(TENTH);
  await goesOn();
  // both are moved together
  await works(service, 3);
  expect(await service.ether(address)).toBe(0n);
});

test('USDT of a transaction to the address of another one', { timeout: TIMEOUT }, async () => {
  const [from, to] = [await paid('USDT'), await paid('USDT')];
  await sent(service, await service.hot('ETH'), from, { value: 10n ** 16n });
  await service.mine();
  const txid = await left(from, service.anvil.token, { data: transfer(to, UNITS) });
  expect(await recovers(txid, false)).toMatchObject({ currency: 'USDT', lost: 0n });
  expect(await lost('USDT')).toBe(0n);
  await goesOn();
});

test('USDT at an address for ether to where USDT is paid from', { timeout: TIMEOUT }, async () => {
  const from = await paid('ETH', 'USDT');
  await service.pay('ETH', from, TENTH);
  await service.mine(FINAL);
  const txid = await left(from, service.anvil.token, { data: transfer(await service.hot('USDT'), UNITS) });
  expect(await recovers(txid, false)).toMatchObject({ currency: 'ETH', lost: 0n, besides: [] });
  expect(await lost('USDT')).toBe(0n);
  await goesOn();
});

test('ether that is left at the address of a USDT payment', { timeout: TIMEOUT }, async () => {
  const from = await paid('USDT');
  await sent(service, await service.hot('ETH'), from, { value: TENTH });
  await service.mine(FINAL);
  const before = await lost('ETH');
  const txid = await left(from, NOBODY, { value: TENTH / 2n });
  expect(await recovers(txid)).toMatchObject({ currency: 'USDT', lost: 0n, besides: [{ currency: 'ETH', lost: TENTH / 2n }] });
  expect(await lost('ETH')).toBe(before + TENTH / 2n);
  await service.work(7 * AN_HOUR_MS);
  await works(service, 3);
  await goesOn();
  expect(await service.units(from)).toBe(0n);
});
