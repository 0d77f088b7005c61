// What the owner of USDT's contract can do, on a contract with mainnet's ways and a real EVM: freeze an address, take a fee, put another contract
// in its place, hand it to somebody else. Payments are what arrives, and nothing leaves that would not arrive.
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { readPayout } from '../../src/store/payouts/reads.ts';
import { type Anvil, callData, startAnvil } from '../support/evm/anvil.ts';
import { NEXT_TOKEN, QUIRKY_TOKEN } from '../support/evm/compiled.ts';
import { type EvmService, openEvmService } from './evm-service.ts';
import { addressOf, type WatchedChain, watchChain } from './watched-chain.ts';

const TIMEOUT = 300_000;
const LATER_MS = 61_000;
const FINAL = 65;
const NOBODY = `0x${'0'.repeat(40)}`;
const NEXT_OWNER = `0x${'0e'.repeat(20)}`;
const word = (value: string | bigint): string =>
  (typeof value === 'string' ? value.replace(/^0x/, '') : value.toString(16)).padStart(64, '0');
const ownerCall = (name: string, ...args: readonly (string | bigint)[]): string => callData(QUIRKY_TOKEN, name, ...args);

describe('payments', () => {
  let anvil: Anvil;
  let chain: WatchedChain;
  let deployer = '';
  beforeAll(async () => {
    anvil = await startAnvil();
    [deployer = ''] = await anvil.rpc<string[]>('eth_accounts');
  }, TIMEOUT);
  afterAll(() => anvil?.remove());
  afterEach(() => chain?.close());

  /** A token of its own, watched. */
  async function watched(): Promise<string> {
    const token = await anvil.deploy(QUIRKY_TOKEN, word(10n ** 18n));
    chain = await watchChain('USDT', anvil.url, { contract: token });
    await chain.catchUp();
    return token;
  }
  async function call(to: string, data: string): Promise<void> {
    await anvil.rpc('eth_sendTransaction', { from: deployer, to, data, gas: '0x100000' });
    await anvil.mine();
  }

  test('go on when the contract has another owner, whose fee is not credited', async () => {
    const token = await watched();
    const owed = await chain.owe();
    await call(token, ownerCall('setFee(uint256)', 100n));
    await call(token, ownerCall('setOwner(address)', NEXT_OWNER));
    await call(token, ownerCall('transfer(address,uint256)', addressOf(owed), 1_000_000n));
    expect(await chain.catchUp()).toMatchObject({ state: 'ready' });
    expect(await chain.facts(owed)).toMatchObject([{ amount: 990_000n, state: 'mined' }]);
  });

  test('are not read once another contract has taken its place, which is told, and again when it is taken back', async () => {
    const token = await watched();
    const next = await anvil.deploy(NEXT_TOKEN, word(token) + word(deployer) + word(10n ** 18n));
    const owed = await chain.owe();
    await call(token, ownerCall('deprecate(address)', next));
    await call(token, ownerCall('transfer(address,uint256)', addressOf(owed), 5n));
    chain.skew += LATER_MS;
    expect(await chain.watcher.pass()).toMatchObject({
      state: 'wrong_network',
      reason: expect.stringContaining('is deprecated: another one has taken its place'),
    });
    expect(await chain.facts(owed)).toEqual([]);
    await call(token, ownerCall('deprecate(address)', NOBODY));
    await call(token, ownerCall('transfer(address,uint256)', addressOf(owed), 7n));
    expect(await chain.catchUp()).toMatchObject({ state: 'ready', caughtUp: true });
    expect(await chain.facts(owed)).toMatchObject([{ amount: 7n, state: 'mined' }]);
  });
});

describe('payouts', () => {
  let service: EvmService;
  let next = '';
  beforeAll(async () => {
    service = await openEvmService();
    const owed = await service.owe('USDT', 600_00n);
    await service.pay('USDT', owed.address, 600_000_000n);
    await service.mine(FINAL);
    next = await service.anvil.deploy(NEXT_TOKEN, word(service.anvil.token) + word(await service.hot('USDT')) + word(10n ** 18n));
  }, TIMEOUT);
  afterAll(() => service?.close(), TIMEOUT);

  const status = async (id: string) => {
    const { status, error } = (await readPayout(service.db, id)) as { status: string; error: string | null };
    return { status, error };
  };
  const available = () => service.balance(`merchant:${service.merchantId}:available:USDT`);
  async function completed(id: string): Promise<void> {
    await service.work(LATER_MS);
    await service.mine(12);
    await service.work(LATER_MS);
    expect(await status(id)).toEqual({ status: 'completed', error: null });
  }

  test.each([
    ['our address is on the blacklist', 'setBlacklisted', 'the token has blacklisted our address'],
    ['the token takes a fee', 'setFee', 'the token takes a fee of each transfer'],
    ['another contract is in its place', 'deprecate', 'another contract has taken the place of the token'],
  ])('wait while %s, and leave afterwards', { timeout: TIMEOUT }, async (_what, name, why) => {
    const hot = await service.hot('USDT');
    const calls: Readonly<Record<string, readonly [string, string]>> = {
      setBlacklisted: [ownerCall('setBlacklisted(address,bool)', hot, 1n), ownerCall('setBlacklisted(address,bool)', hot, 0n)],
      setFee: [ownerCall('setFee(uint256)', 100n), ownerCall('setFee(uint256)', 0n)],
      deprecate: [ownerCall('deprecate(address)', next), ownerCall('deprecate(address)', NOBODY)],
    };
    const [on, off] = calls[name] as readonly [string, string];
    await service.anvil.asOwner(on);
    const payee = `0x${'c0'.repeat(19)}${name.length.toString(16).padStart(2, '0')}`;
    const id = await service.request(payee);
    service.told.length = 0;
    await service.work(LATER_MS);
    expect(service.told.join()).toContain(why);
    expect(await status(id)).toEqual({ status: 'processing', error: null });
    await service.anvil.asOwner(off);
    await completed(id);
    expect(await service.units(payee)).toBe(50_000_000n);
  });

  test('that are signed when our address is put on the blacklist fail in a final block, and the money is there again', {
    timeout: TIMEOUT,
  }, async () => {
    const hot = await service.hot('USDT');
    const before = await available();
    const id = await service.request(`0x${'cf'.repeat(20)}`);
    await service.work(LATER_MS);
    expect(await status(id)).toEqual({ status: 'processing', error: null });
    // in the same block, and before it: it pays more
    const [from] = await service.anvil.rpc<string[]>('eth_accounts');
    const dear = { gas: '0x100000', maxFeePerGas: '0x174876e800', maxPriorityFeePerGas: '0x174876e800' };
    const data = ownerCall('setBlacklisted(address,bool)', hot, 1n);
    await service.anvil.rpc('eth_sendTransaction', { from, to: service.anvil.token, data, ...dear });
    await service.mine(FINAL);
    await service.work(LATER_MS);
    expect(await status(id)).toEqual({ status: 'failed', error: 'reverted' });
    expect(await available()).toBe(before);
    await service.anvil.asOwner(ownerCall('setBlacklisted(address,bool)', hot, 0n));
    expect(await service.findings()).toEqual([]);
  });
});
