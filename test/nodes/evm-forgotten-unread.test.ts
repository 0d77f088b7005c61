// Database and signer were put back together, and the blocks since then are not read yet, or the node that is read is behind: an address that was emptied
// meanwhile is not emptied a second time, for which nothing could ever be mined and everything that pays would stop.
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { openBreakers } from '../../src/store/ledger/breakers.ts';
import { FINAL, LATER_MS } from './evm-lied-to.ts';
import { GAS_PRICE, works } from './evm-steps.ts';
import { openOnTwoNodes, type TwoNodes } from './two-nodes.ts';

const TIMEOUT = 300_000;
const TENTH = 10n ** 17n;
let nodes: TwoNodes;
let service: TwoNodes['service'];
let sweeps: readonly string[];

beforeAll(async () => {
  nodes = await openOnTwoNodes();
  ({ service } = nodes);
}, TIMEOUT);
afterAll(() => nodes?.close(), TIMEOUT);
beforeEach(async () => {
  sweeps = await ended();
  service.told.length = 0;
});

const hex = (amount: bigint): string => `0x${amount.toString(16)}`;
const ended = async () => (await service.batches('sweep')).map(({ state }) => state);

/** A payment in ether that is final, at the address of its transaction. */
async function paid(): Promise<string> {
  const { address } = await service.owe('ETH', 300_00n);
  await service.pay('ETH', address, TENTH);
  await service.mine(FINAL);
  return address;
}
/** As this server did before it was put back. */
async function moved(from: string): Promise<string> {
  await service.anvil.rpc('anvil_impersonateAccount', from);
  const value = hex(TENTH - 21_000n * GAS_PRICE);
  const transaction = { from, to: await service.hot('ETH'), value, gas: hex(21_000n), gasPrice: hex(GAS_PRICE) };
  return service.anvil.rpc<string>('eth_sendTransaction', transaction);
}

test('what blocks that are not read yet have moved is not moved again', { timeout: TIMEOUT }, async () => {
  const signed = service.journal.count();
  await moved(await paid());
  await service.anvil.mine(FINAL);
  service.restart();
  await service.work(LATER_MS);
  expect([service.journal.count(), await ended()]).toEqual([signed, sweeps]);
  expect(service.told.join()).toMatch(
    /stay at their addresses: a node knows of 1 transactions that 0x\w+ has sent, and 0 of them/,
  );
  await service.settle();
  await works(service, 2);
  expect([service.journal.count(), await ended()]).toEqual([signed, [...sweeps, 'final']]);
  expect(await openBreakers(service.db)).toEqual([]);
  expect(await service.findings()).toEqual([]);
});

test('what only another node shows to have been moved waits for it', { timeout: TIMEOUT }, async () => {
  const address = await paid();
  nodes.other.alter({
    instead: ({ method, params: [of] }) =>
      method === 'eth_getTransactionCount' && String(of).toLowerCase() === address ? { result: '0x1' } : null,
  });
  service.restart();
  await works(service, 1);
  expect(await ended()).toEqual(sweeps);
  nodes.other.alter({});
  await works(service, 2);
  expect(await ended()).toEqual([...sweeps, 'final']);
  expect(await openBreakers(service.db)).toEqual([]);
});

test('what came to an address after it was emptied waits until that is booked', { timeout: TIMEOUT }, async () => {
  const address = await paid();
  await service.pay('ETH', address, TENTH);
  await service.mine(FINAL);
  const signed = service.journal.count();
  await moved(address);
  await service.mine();
  service.restart();
  await service.work(LATER_MS);
  expect([service.journal.count(), await ended()]).toEqual([signed, sweeps]);
  expect(service.told.join()).toMatch(/stay at their addresses: 0x\w+ has left 0x\w+ for another address of ours/);
  await service.mine(FINAL);
  await works(service, 3);
  expect(await ended()).toEqual([...sweeps, 'final', 'final']);
  expect(await service.ether(address)).toBe(0n);
  expect(await openBreakers(service.db)).toEqual([]);
  expect(await service.findings()).toEqual([]);
});
