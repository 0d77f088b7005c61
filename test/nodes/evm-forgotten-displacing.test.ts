// Database and signer were put back together, and all nodes were behind: what moves a payment was signed for a nonce that a forgotten move had used. Once
// a block shows that, the forgotten one is booked, and nothing stops.
import { afterAll, beforeAll, expect, test } from 'vitest';
import { openBreakers } from '../../src/store/ledger/breakers.ts';
import { callData } from '../support/evm/anvil.ts';
import { QUIRKY_TOKEN } from '../support/evm/compiled.ts';
import { FINAL, LATER_MS } from './evm-lied-to.ts';
import { openOnTwoNodes, type TwoNodes } from './two-nodes.ts';

const TIMEOUT = 300_000;
const UNITS = 300_000_000n;
const GAS_PRICE = 20n * 10n ** 9n;
const TENTH = 10n ** 17n;
let nodes: TwoNodes;
let service: TwoNodes['service'];
const ours = new Set<string>();

beforeAll(async () => {
  nodes = await openOnTwoNodes();
  ({ service } = nodes);
  for (const currency of ['ETH', 'USDT'] as const) ours.add(await service.hot(currency));
}, TIMEOUT);
afterAll(() => nodes?.close(), TIMEOUT);

async function works(turns: number): Promise<void> {
  for (let turn = 0; turn < turns; turn++) {
    await service.work(LATER_MS);
    await service.mine(FINAL);
  }
  await service.work(LATER_MS);
}
const hex = (amount: bigint): string => `0x${amount.toString(16)}`;
async function sent(from: string, to: string, call: { readonly value?: bigint; readonly data?: string }): Promise<string> {
  await service.anvil.rpc('anvil_impersonateAccount', from);
  const { value = 0n, data = '0x' } = call;
  const gas = data === '0x' ? 21_000n : 70_000n;
  // of a token, all the ether that was brought for its gas
  const gasPrice = data === '0x' ? GAS_PRICE : (await service.ether(from)) / gas;
  const transaction = { from, to, value: hex(value), data, gas: hex(gas), gasPrice: hex(gasPrice) };
  return service.anvil.rpc<string>('eth_sendTransaction', transaction);
}
const transfer = (to: string, units: bigint): string => callData(QUIRKY_TOKEN, 'transfer(address,uint256)', to, units);
async function ledgerIsChain(): Promise<void> {
  const total = async (read: (address: string) => Promise<bigint>): Promise<bigint> =>
    (await Promise.all([...ours].map(read))).reduce((a, b) => a + b, 0n);
  expect(await service.findings()).toEqual([]);
  expect(await service.balance('asset:chain:ETH')).toBe(await total(service.ether));
  expect(await service.balance('asset:chain:USDT')).toBe(await total(service.units));
}
/** A transaction that was paid whole, and whose payment is about to be moved by a signed transaction that no block has. */
async function signed(currency: 'ETH' | 'USDT'): Promise<string> {
  const { address } = await service.owe(currency, 300_00n);
  await service.pay(currency, address, currency === 'ETH' ? TENTH : UNITS);
  await service.mine(FINAL);
  ours.add(address);
  const before = (await service.batches('sweep')).length;
  for (let turn = 0; turn < 4; turn++) {
    await service.work(LATER_MS);
    if ((await service.batches('sweep')).length > before) break;
    await service.mine();
  }
  expect((await service.batches('sweep')).at(-1)).toMatchObject({ currency, state: 'signed' });
  await service.anvil.rpc('anvil_dropAllTransactions');
  return address;
}
const ended = async () => (await service.batches('sweep')).map(({ currency, state, nonce }) => `${currency} ${state} ${nonce}`);

test.each(['ETH', 'USDT'] as const)('%s', { timeout: TIMEOUT }, async (currency) => {
  const before = await ended();
  const address = await signed(currency);
  const hot = await service.hot(currency);
  await (currency === 'ETH'
    ? sent(address, hot, { value: TENTH - 21_000n * GAS_PRICE })
    : sent(address, service.anvil.token, { data: transfer(hot, UNITS) }));
  await service.mine();
  await service.work(LATER_MS);
  expect(await openBreakers(service.db)).toEqual([]);
  expect((await ended()).at(-1)).toBe(`${currency} signed 0`);
  await service.mine(FINAL);
  await works(3);
  expect(await openBreakers(service.db)).toEqual([]);
  expect((await ended()).sort()).toEqual([...before, `${currency} dead 0`, `${currency} final 0`].sort());
  await ledgerIsChain();
  // what comes there later is moved with the next nonce
  await service.pay(currency, address, currency === 'ETH' ? TENTH : UNITS);
  await service.mine(FINAL);
  await service.work(6 * 3_600_000);
  await works(3);
  expect((await ended()).filter((one) => one === `${currency} final 1`)).toHaveLength(1);
  await ledgerIsChain();
});

test('ether for gas', { timeout: TIMEOUT }, async () => {
  const { address } = await service.owe('USDT', 300_00n);
  await service.pay('USDT', address, UNITS);
  await service.mine(FINAL);
  ours.add(address);
  const topUps = async () => (await service.batches('top_up')).map(({ state, nonce }) => `${state} ${nonce}`);
  const before = await topUps();
  const nonce = before.length;
  for (let turn = 0; turn < 4 && (await topUps()).at(-1) !== `signed ${nonce}`; turn++) await service.work(LATER_MS);
  expect((await topUps()).at(-1)).toBe(`signed ${nonce}`);
  await service.anvil.rpc('anvil_dropAllTransactions');
  await sent(await service.hot('ETH'), address, { value: TENTH });
  await service.mine();
  await service.work(LATER_MS);
  expect(await openBreakers(service.db)).toEqual([]);
  await service.mine(FINAL);
  await works(4);
  // a worker compares nonces when it starts, as the audit does every hour
  service.restart();
  await works(2);
  expect(await openBreakers(service.db)).toEqual([]);
  expect((await topUps()).sort()).toEqual([...before, `dead ${nonce}`, `final ${nonce}`].sort());
  expect(await service.units(address)).toBe(0n);
  await ledgerIsChain();
});
