// USDT's owner switches its fee on while something of ours is on its way to the address that payouts leave from: less arrives than was sent. The
// books follow by themselves, since two nodes show the same events, and nothing stops.
import { afterAll, beforeAll, expect, test } from 'vitest';
import { openBreakers } from '../../src/store/ledger/breakers.ts';
import { receipts } from '../support/nodes/altered-node.ts';
import { FINAL, LATER_MS } from './evm-lied-to.ts';
import { asOwnerFirst, ledgerIsChain, ownerCall, sent, sweepIsSigned, transfer, works } from './evm-steps.ts';
import { openOnTwoNodes, type TwoNodes } from './two-nodes.ts';

const TIMEOUT = 300_000;
const UNITS = 300_000_000n;
const FEE = 3_000_000n;
let nodes: TwoNodes;
let service: TwoNodes['service'];
const ours = new Set<string>();
const fee = (points: bigint): string => ownerCall('setFee(uint256)', points);
const lost = () => service.balance('expense:token_fee:USDT');
const last = async () => (await service.batches('sweep')).at(-1);

beforeAll(async () => {
  nodes = await openOnTwoNodes();
  ({ service } = nodes);
  for (const currency of ['ETH', 'USDT'] as const) ours.add(await service.hot(currency));
}, TIMEOUT);
afterAll(() => nodes?.close(), TIMEOUT);

async function paid(): Promise<string> {
  const { address } = await service.owe('USDT', 300_00n);
  await service.pay('USDT', address, UNITS);
  await service.mine(FINAL);
  ours.add(address);
  return address;
}

/** What moves a payment is signed, and no block has it yet. */
async function swept(): Promise<string> {
  const address = await paid();
  await sweepIsSigned(service, 'USDT');
  return address;
}

test('a sweep that is out', { timeout: TIMEOUT }, async () => {
  const address = await swept();
  await asOwnerFirst(service, fee(100n));
  await service.mine();
  await asOwnerFirst(service, fee(0n));
  await service.mine();
  await service.work(LATER_MS);
  // before its block is final nothing is booked, and nothing stops
  expect(await openBreakers(service.db)).toEqual([]);
  expect(await lost()).toBe(0n);
  expect(await last()).toMatchObject({ state: 'mined' });
  await works(service, 3);
  expect(await openBreakers(service.db)).toEqual([]);
  expect(await last()).toMatchObject({ state: 'final' });
  expect(await lost()).toBe(FEE);
  expect(await service.units(address)).toBe(0n);
  await ledgerIsChain(service, ours);
  // what is paid there later is moved whole
  await service.pay('USDT', address, UNITS);
  await service.mine(FINAL);
  await works(service, 4);
  expect(await last()).toMatchObject({ state: 'final', nonce: 1 });
  expect(await service.units(address)).toBe(0n);
  expect(await lost()).toBe(FEE);
  await ledgerIsChain(service, ours);
});

test('a sweep that is out, with one node that shows another fee', { timeout: TIMEOUT }, async () => {
  const before = await lost();
  await swept();
  await asOwnerFirst(service, fee(100n));
  await service.mine();
  await asOwnerFirst(service, fee(0n));
  await service.mine();
  // it hides the fee
  nodes.other.alter(receipts((one) => (one.logs.length < 2 ? one : { ...one, logs: one.logs.slice(1) })));
  await works(service, 2);
  expect(await last()).toMatchObject({ state: expect.stringMatching(/signed|mined/) });
  expect(await lost()).toBe(before);
  nodes.other.alter({});
  await works(service, 3);
  await service.goOn();
  expect(await last()).toMatchObject({ state: 'final' });
  expect(await lost()).toBe(before + FEE);
  await ledgerIsChain(service, ours);
});

test('a sweep whose block is replaced by one without a fee', { timeout: TIMEOUT }, async () => {
  const before = await lost();
  const address = await swept();
  const kept = await service.anvil.rpc<string>('evm_snapshot');
  await asOwnerFirst(service, fee(100n));
  await service.mine(2);
  await service.work(LATER_MS);
  expect(await last()).toMatchObject({ state: 'mined' });
  await service.anvil.rpc('evm_revert', kept);
  await service.mine(3);
  await works(service, 3);
  expect(await openBreakers(service.db)).toEqual([]);
  expect(await last()).toMatchObject({ state: 'final' });
  expect(await service.units(address)).toBe(0n);
  expect(await lost()).toBe(before);
  await ledgerIsChain(service, ours);
});

test('a sweep that database and signer have forgotten', { timeout: TIMEOUT }, async () => {
  const before = await lost();
  const address = await paid();
  await sent(service, await service.hot('ETH'), address, { value: 10n ** 16n });
  await service.mine();
  await asOwnerFirst(service, fee(100n));
  await service.mine();
  await sent(service, address, service.anvil.token, { data: transfer(await service.hot('USDT'), UNITS) });
  await service.mine();
  await asOwnerFirst(service, fee(0n));
  await service.mine(FINAL);
  service.restart();
  await works(service, 4);
  expect(await openBreakers(service.db)).toEqual([]);
  expect(await last()).toMatchObject({ state: 'final', nonce: 0 });
  expect(await lost()).toBe(before + FEE);
  await ledgerIsChain(service, ours);
});
