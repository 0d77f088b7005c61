// What a block pays to an address of ours by itself: the fees of its transactions, on a real EVM, and validators' withdrawals. Nobody's payment,
// in the books to the wei, and gone with its block.
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type EvmService, openEvmService } from './evm-service.ts';
import { type Tamper, withTamperedEvm } from './tampered-evm.ts';
import { addressOf } from './watched-chain.ts';

const TIMEOUT = 300_000;
const STRANGER = `0x${'57'.repeat(20)}`;
const FINAL = 65;
const ETHER = 10n ** 18n;

describe('the fees of a block on a real EVM', () => {
  let service: EvmService;
  beforeAll(async () => {
    service = await openEvmService();
  }, TIMEOUT);
  afterAll(() => service?.close(), TIMEOUT);

  /** Strangers pay each other in a block whose fees go to an address; what it has got. */
  async function proposed(by: string): Promise<bigint> {
    const before = await service.ether(by);
    await service.anvil.rpc('anvil_setCoinbase', by);
    for (let n = 0; n < 3; n++) await service.anvil.send({ to: STRANGER, value: 1n });
    await service.mine();
    await service.anvil.rpc('anvil_setCoinbase', STRANGER);
    return (await service.ether(by)) - before;
  }
  const suspense = (id: string): Promise<bigint> => service.balance(`suspense:${id}:ETH`);
  const received = async (id: string): Promise<bigint> => {
    const { rows } = await service.db.query<{ received: string }>({
      text: 'select crypto_received as received from transactions where id = $1',
      values: [id],
    });
    return BigInt(rows[0]?.received ?? -1);
  };

  test('are no payment of an order: they lie in suspense, whatever becomes of it, and the ledger is the chain', {
    timeout: TIMEOUT,
  }, async () => {
    const owed = await service.owe('ETH', 300_00n);
    const fees = await proposed(owed.address);
    expect(fees).toBeGreaterThan(0n);
    expect([await service.status(owed.id), await suspense(owed.id)]).toEqual(['started', 0n]);
    await service.mine(6);
    expect([await service.status(owed.id), await suspense(owed.id), await received(owed.id)]).toEqual(['started', fees, 0n]);
    await service.pay('ETH', owed.address, ETHER / 10n);
    await service.mine(FINAL);
    expect(await service.status(owed.id)).toBe('succeeded');
    expect([await suspense(owed.id), await received(owed.id)]).toEqual([fees, ETHER / 10n]);
    expect(await service.balance(`merchant:${service.merchantId}:available:ETH`)).toBe(ETHER / 10n);
    const hot = await service.hot('ETH');
    expect(await service.balance('asset:chain:ETH')).toBe(
      (await service.ether(owed.address)) + (await service.ether(hot)) + (await service.ether(await service.hot('USDT'))),
    );
    expect(await service.findings()).toEqual([]);
  });

  test('that came to the address of an order in USDT are nobody’s payment either', { timeout: TIMEOUT }, async () => {
    const owed = await service.owe('USDT', 50_00n);
    const fees = await proposed(owed.address);
    await service.mine(FINAL);
    expect([await service.status(owed.id), await suspense(owed.id)]).toEqual(['started', fees]);
    expect(await service.findings()).toEqual([]);
  });

  test('at the address that payouts leave from are capital of the service', { timeout: TIMEOUT }, async () => {
    const hot = await service.hot('ETH');
    const before = await service.balance('asset:chain:ETH');
    const fees = await proposed(hot);
    await service.mine(FINAL);
    await service.work(61_000);
    expect((await service.balance('asset:chain:ETH')) - before).toBe(fees);
    expect(await service.findings()).toEqual([]);
  });

  test('leave the books with the block that is replaced, and come back with the next one', { timeout: TIMEOUT }, async () => {
    const owed = await service.owe('ETH', 300_00n);
    await proposed(owed.address);
    await service.mine(7);
    expect(await suspense(owed.id)).toBeGreaterThan(0n);
    await service.anvil.rpc('anvil_reorg', 8, []);
    await service.anvil.rpc('anvil_dropAllTransactions');
    await service.mine();
    expect(await service.ether(owed.address)).toBe(0n);
    await service.work(11 * 60_000);
    await service.mine();
    expect(await suspense(owed.id)).toBe(0n);
    const fees = await proposed(owed.address);
    await service.mine(FINAL);
    expect(await suspense(owed.id)).toBe(fees);
    expect(await service.findings()).toEqual([]);
  });
});

describe('a withdrawal', () => {
  const evm = withTamperedEvm();
  const withdrawing =
    (...withdrawals: readonly unknown[]): Tamper =>
    ({ method }, answer) =>
      method === 'eth_getBlockByHash' && answer.result ? { result: { ...(answer.result as object), withdrawals } } : answer;
  const to = (address: string, amount: string) => ({ index: '0x1', validatorIndex: '0x2', address, amount });

  test('is recorded with its gwei, each by itself, also in a block without transactions', async () => {
    const owed = await evm.watch('ETH');
    const { hash } = evm.honest.mine(1);
    evm.tamper = withdrawing(
      to(STRANGER, '0x5'),
      to(addressOf(owed), '0x3b9aca00'),
      to(addressOf(owed), '0x1'),
      to(addressOf(owed), '0x0'),
    );
    await evm.chain.catchUp();
    expect(await evm.chain.facts(owed)).toMatchObject([
      { txid: hash, vout: 2, amount: ETHER, state: 'mined' },
      { txid: hash, vout: 3, amount: 1_000_000_000n, state: 'mined' },
    ]);
  });

  test.each([
    ['of no amount that can be read', to(STRANGER, '5')],
    ['to no address', to('0x57', '0x5')],
    ['that is none', 'a withdrawal'],
  ])('%s makes its block unreadable, until the node is right', async (_what, wrong) => {
    const owed = await evm.watch('ETH');
    evm.pay('ETH', owed);
    evm.honest.mine(1);
    evm.tamper = withdrawing(wrong);
    expect(await evm.chain.watcher.pass()).toMatchObject({ state: 'bad_answer', caughtUp: false });
    expect(await evm.chain.facts(owed)).toEqual([]);
    evm.tamper = (_call, answer) => answer;
    await evm.chain.catchUp();
    expect(await evm.chain.facts(owed)).toMatchObject([{ state: 'mined' }]);
  });

  test('is gone when its block is, and what the next block withdraws is another one', async () => {
    const owed = await evm.watch('ETH');
    evm.tamper = withdrawing(to(addressOf(owed), '0x7'));
    const first = evm.honest.mine(1);
    await evm.chain.catchUp();
    evm.tamper = (_call, answer) => answer;
    evm.honest.reorg(1, false);
    await evm.chain.catchUp();
    expect(await evm.chain.facts(owed)).toMatchObject([{ txid: first.hash, state: 'gone', height: null }]);
    evm.tamper = withdrawing(to(addressOf(owed), '0x7'));
    const second = evm.honest.mine(1);
    await evm.chain.catchUp();
    expect(await evm.chain.facts(owed)).toMatchObject([
      { txid: first.hash, state: 'gone' },
      { txid: second.hash, state: 'mined' },
    ]);
  });
});
