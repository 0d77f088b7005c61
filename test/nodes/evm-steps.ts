// What tests of the service on Ethereum's chain do and look at again and again.
import { expect } from 'vitest';
import { callData } from '../support/evm/anvil.ts';
import { QUIRKY_TOKEN } from '../support/evm/compiled.ts';
import { FINAL, LATER_MS } from './evm-lied-to.ts';
import type { EvmService } from './evm-service.ts';

export const GAS_PRICE = 20n * 10n ** 9n;
const hex = (amount: bigint): string => `0x${amount.toString(16)}`;

/** The worker looks, and what it has sent becomes final, so many times; then it looks once more. */
export async function works(service: EvmService, turns: number, final = FINAL): Promise<void> {
  for (let turn = 0; turn < turns; turn++) {
    await service.work(LATER_MS);
    await service.mine(final);
  }
  await service.work(LATER_MS);
}

/** The merchant is paid 900 USDT, which are moved to the address that payouts leave from. @returns every address that holds something of ours */
export async function earnsDollars(service: EvmService): Promise<readonly string[]> {
  const { address } = await service.owe('USDT', 900_00n);
  await service.pay('USDT', address, 900_000_000n);
  await service.mine(FINAL);
  await works(service, 4);
  return [address, await service.hot('ETH'), await service.hot('USDT')];
}

/** What moves a payment is signed next, and no block has it yet. */
export async function sweepIsSigned(service: EvmService, currency: 'ETH' | 'USDT'): Promise<void> {
  const before = (await service.batches('sweep')).length;
  for (let turn = 0; turn < 4; turn++) {
    await service.work(LATER_MS);
    if ((await service.batches('sweep')).length > before) break;
    await service.mine();
  }
  expect((await service.batches('sweep')).at(-1)).toMatchObject({ currency, state: 'signed' });
}

export type Call = { readonly value?: bigint; readonly data?: string; readonly gas?: bigint; readonly gasPrice?: bigint };
/** One of our addresses sends, as this server did before it was put back. @returns the transaction's hash */
export async function sent({ anvil }: EvmService, from: string, to: string, call: Call): Promise<string> {
  await anvil.rpc('anvil_impersonateAccount', from);
  const { value = 0n, data = '0x', gas = data === '0x' ? 21_000n : 100_000n, gasPrice = GAS_PRICE } = call;
  const transaction = { from, to, value: hex(value), data, gas: hex(gas), gasPrice: hex(gasPrice) };
  return anvil.rpc<string>('eth_sendTransaction', transaction);
}
/** The data of a transfer of the token. */
export const transfer = (to: string, units: bigint): string => callData(QUIRKY_TOKEN, 'transfer(address,uint256)', to, units);

/** The audit is green, and the books have what lies at our addresses. @param ours all that hold something */
export async function ledgerIsChain(service: EvmService, ours: Iterable<string>): Promise<void> {
  const total = async (read: (address: string) => Promise<bigint>): Promise<bigint> =>
    (await Promise.all([...new Set(ours)].map(read))).reduce((a, b) => a + b, 0n);
  expect(await service.findings()).toEqual([]);
  expect(await service.balance('asset:chain:ETH')).toBe(await total(service.ether));
  expect(await service.balance('asset:chain:USDT')).toBe(await total(service.units));
}

/** A call of the token that its owner makes. */
export const ownerCall = (name: string, ...args: readonly (string | bigint)[]): string => callData(QUIRKY_TOKEN, name, ...args);

/** The token's issuer blacklists an address, and destroys what it has there. */
export async function isDestroyed({ anvil }: EvmService, address: string): Promise<void> {
  await anvil.asOwner(ownerCall('setBlacklisted(address,bool)', address, 1n));
  await anvil.asOwner(ownerCall('destroyBlackFunds(address)', address));
}

/** Its owner calls the token, before whatever else the next block has: it pays more. */
export async function asOwnerFirst({ anvil }: EvmService, data: string): Promise<void> {
  const [from] = await anvil.rpc<string[]>('eth_accounts');
  const dear = { gas: '0x100000', maxFeePerGas: '0x174876e800', maxPriorityFeePerGas: '0x174876e800' };
  await anvil.rpc('eth_sendTransaction', { from, to: anvil.token, data, ...dear });
}

/** Code that calls transfer(address,uint256) of a token, and leaves on the stack whether that went well. */
function calls(token: string, to: string, units: bigint): string {
  const amount = units.toString(16).padStart(32, '0');
  return `63a9059cbb60e01b60005273${to.slice(2)}6004526f${amount}6024526000600060446000600073${token.slice(2)}5af1`;
}

/** The code of a contract that sends a token, whoever calls it, and fails where that fails. */
export function sendsOn(token: string, to: string, units: bigint): string {
  const call = calls(token, to, units);
  const after = (call.length / 2 + 8).toString(16).padStart(2, '0');
  return `0x${call}60${after}5760006000fd5b00`;
}

/** The same to several, and whatever of it fails. */
export const sendsToAll = (token: string, all: readonly { readonly to: string; readonly units: bigint }[]): string =>
  `0x${all.map(({ to, units }) => `${calls(token, to, units)}50`).join('')}00`;

/**
 * A contract, assembled by hand. In a block with an even number it sends all but one wei of its value to the first address of its call data,
 * then one wei to the second; in any other block one wei to the second, then two to the first.
 */
export const BY_BLOCK_NUMBER =
  '604c600c600039604c6000f343600116602a576000600060006000600134036000355af150600060006000600060016020355af150005b600060006000600060016020355af150600060006000600060026000355af15000';
