// What else happens to our addresses in the block in which a contract pays them, and contracts that send on what we have paid, on a real EVM: to
// the wei the same at a node that shows calls and at one that shows balances only.
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { reimburseTransaction } from '../../src/flow/payouts/reimbursements.ts';
import { WITHOUT_TRACES } from '../support/nodes/altered-node.ts';
import { openAlteredService } from './altered-anvil.ts';
import type { EvmService } from './evm-service.ts';

const TIMEOUT = 300_000;
const LATER_MS = 61_000;
const FINAL = 65;
const TENTH = 10n ** 17n;
/** Makes a contract by CREATE2 from a salt and its code (it is at this address on most chains, and on anvil). */
const MAKER = '0x4e59b44847b379578588920ca78fbf26c0b4956c';
const SALT = '00'.repeat(32);
/** A constructor that leaves everything to an address. */
const leavesTo = (address: string): string => `0x${SALT}73${address.slice(2)}ff`;
/** Sends what it gets to an address, or half of it back. */
const sendsTo = (address: string): string => `0x600060006000600034${`73${address.slice(2)}`}5af100`;
const SENDS_HALF_BACK = '0x60006000600060006002340433' + '5af100';

describe.each([
  ['shows calls', {}],
  ['shows balances only', WITHOUT_TRACES],
])('at a node that %s', (_what, alteration) => {
  let altered: Awaited<ReturnType<typeof openAlteredService>>;
  let service: EvmService;
  const ours: string[] = [];
  beforeAll(async () => {
    altered = await openAlteredService(alteration);
    ({ service } = altered);
  }, TIMEOUT);
  afterAll(() => altered?.close(), TIMEOUT);

  async function owe(cents = 300_00n) {
    const owed = await service.owe('ETH', cents);
    ours.push(owed.address);
    return owed;
  }
  async function ledgerIsChain(): Promise<void> {
    const all = [...ours, await service.hot('ETH'), await service.hot('USDT')];
    const held = (await Promise.all(all.map(service.ether))).reduce((a, b) => a + b, 0n);
    expect(await service.balance('asset:chain:ETH')).toBe(held);
    expect(await service.findings()).toEqual([]);
  }
  async function worked(turns = 4): Promise<void> {
    for (let turn = 0; turn < turns; turn++) {
      await service.work(LATER_MS);
      await service.mine();
    }
    await service.mine(FINAL);
    await service.work(LATER_MS);
  }

  test('a contract made by CREATE2 leaves what it got to an address', { timeout: TIMEOUT }, async () => {
    const owed = await owe();
    await service.anvil.send({ to: MAKER, value: TENTH, input: leavesTo(owed.address) });
    await service.mine(FINAL + 5);
    expect(await service.status(owed.id)).toBe('succeeded');
    await ledgerIsChain();
  });

  test('a sweep, its gas, a contract’s payment, a plain one and the fees of the block are told apart', {
    timeout: TIMEOUT,
  }, async () => {
    const [swept, proposer] = [await owe(), await owe()];
    await service.pay('ETH', swept.address, TENTH);
    await service.mine(FINAL);
    await service.work(LATER_MS);
    expect((await service.batches('sweep')).length).toBeGreaterThan(0);
    await altered.pay(swept.address, 5n);
    await service.pay('ETH', swept.address, 7n);
    await altered.pay(proposer.address, TENTH);
    await service.anvil.rpc('anvil_setCoinbase', proposer.address);
    await service.mine();
    await service.anvil.rpc('anvil_setCoinbase', `0x${'00'.repeat(20)}`);
    await worked();
    expect(await service.ether(swept.address)).toBe(12n);
    expect(await service.status(proposer.id)).toBe('succeeded');
    expect(await service.balance(`suspense:${proposer.id}:ETH`)).toBeGreaterThan(0n);
    await ledgerIsChain();
  });

  test('what a contract sends on that we have paid is a payment, and what it sends back is ours', {
    timeout: TIMEOUT,
  }, async () => {
    const owed = await owe(10_00n);
    for (const code of [sendsTo(owed.address), SENDS_HALF_BACK]) {
      const paid = await owe();
      await service.pay('ETH', paid.address, TENTH);
      await service.mine(FINAL);
      const contract = `0x${Buffer.from(`contract ${ours.length}`.padEnd(20, '.')).toString('hex')}`;
      await service.anvil.rpc('anvil_setCode', contract, code);
      await service.price();
      const { ctx, merchantId } = service;
      await reimburseTransaction(ctx, {
        ...{ merchantId, transactionId: paid.id, destination: contract },
        ...{ part: null, currency: null },
      });
      await worked();
      await ledgerIsChain();
    }
    expect(await service.ether(owed.address)).toBe(0n);
    expect(await service.status(owed.id)).toBe('succeeded');
  });
});
