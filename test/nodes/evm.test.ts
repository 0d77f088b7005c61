// Ether and USDT on a real EVM: what contracts send to an address and what only looks as if they did, the token's own ways, and when a block
// is final.
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { type Anvil, callData, rawOf, startAnvil } from '../support/evm/anvil.ts';
import { FORWARDER, QUIRKY_TOKEN } from '../support/evm/compiled.ts';
import { openSeverableProxy } from '../support/evm/severable-proxy.ts';
import { BY_BLOCK_NUMBER } from './evm-steps.ts';
import { addressOf, type Owed, type WatchedChain, watchChain } from './watched-chain.ts';

const ETHER = 10n ** 18n;
/** A contract, assembled by hand: as often as its call data says it calls its caller with 100,000 bytes, for some 130 gas each. */
const LOUD = '601b600c600039601b6000f36000355b60006000620186a06000335afa50600190038060035700';

let anvil: Anvil;
let chain: WatchedChain;
beforeAll(async () => {
  anvil = await startAnvil();
});
afterAll(() => anvil?.remove());
afterEach(() => chain?.close());

describe('ether', () => {
  beforeEach(async () => {
    chain = await watchChain('ETH', anvil.url);
    await chain.catchUp();
  });

  /** A call of the forwarder with one ether for an address, mined and read. */
  async function forwarded(name: string): Promise<{ readonly owed: Owed; readonly txid: string; readonly succeeded: boolean }> {
    const owed = await chain.owe();
    const { hash } = await anvil.send({
      to: anvil.forwarder,
      value: ETHER,
      input: callData(FORWARDER, name, addressOf(owed)),
    });
    await anvil.mine();
    await chain.catchUp();
    const { status } = await anvil.rpc<{ status: string }>('eth_getTransactionReceipt', hash);
    const balance = BigInt(await anvil.rpc<string>('eth_getBalance', addressOf(owed), 'latest'));
    const paid = (await chain.facts(owed)).reduce((sum, one) => sum + one.amount, 0n);
    expect(paid).toBe(balance);
    return { owed, txid: hash, succeeded: status === '0x1' };
  }

  test('that a contract sends is seen, each call as a payment of its own', async () => {
    const { owed, txid } = await forwarded('halves(address)');
    expect(await chain.facts(owed)).toMatchObject([
      { txid, amount: ETHER / 2n, state: 'mined' },
      { txid, amount: ETHER / 2n, state: 'mined' },
    ]);
  });

  test('that a contract sends through a delegated call is counted once', async () => {
    const { owed } = await forwarded('delegated(address)');
    expect(await chain.facts(owed)).toHaveLength(2);
  });

  test('that a contract leaves when it destroys itself is seen', async () => {
    const { owed, txid } = await forwarded('destroy(address)');
    expect(await chain.facts(owed)).toMatchObject([{ txid, amount: ETHER, state: 'mined' }]);
  });

  test('of a transaction that reverts is no payment', async () => {
    const { owed, succeeded } = await forwarded('sendAndRevert(address)');
    expect(succeeded).toBe(false);
    expect(await chain.facts(owed)).toEqual([]);
  });

  test('of a call that reverts inside a transaction that succeeds is no payment', async () => {
    const { owed, succeeded } = await forwarded('sendInReverted(address)');
    expect(succeeded).toBe(true);
    expect(await chain.facts(owed)).toEqual([]);
  });

  test('paid from an old kind of transaction is a payment too', async () => {
    const owed = await chain.owe();
    const [from] = await anvil.rpc<string[]>('eth_accounts');
    await anvil.rpc('eth_sendTransaction', { from, to: addressOf(owed), value: '0x1', gasPrice: '0x174876e800', type: '0x0' });
    await anvil.mine();
    await chain.catchUp();
    expect(await chain.facts(owed)).toMatchObject([{ amount: 1n, state: 'mined' }]);
  });

  test('is final when the node says that its block is finalized, and no longer when a reorganisation takes it back', async () => {
    const owed = await chain.owe();
    await anvil.send({ to: addressOf(owed), value: ETHER });
    await anvil.mine(64);
    await chain.catchUp();
    expect(await chain.facts(owed)).toMatchObject([{ state: 'mined', lock: null }]);
    await anvil.mine();
    await chain.catchUp();
    expect(await chain.facts(owed)).toMatchObject([{ state: 'mined', lock: 'chainlock' }]);
    expect(await chain.takeDue(owed)).toBe(true);
    await anvil.rpc('anvil_reorg', 66, []);
    await anvil.mine();
    await chain.catchUp();
    expect((await chain.facts(owed)).map(({ lock }) => lock)).toEqual([null]);
  });

  describe('of a contract that pays by the number of its block', () => {
    const pays = { bytecode: BY_BLOCK_NUMBER, selectors: {} };
    const word = (address: string): string => address.slice(2).padStart(64, '0');
    const odd = async (): Promise<void> => {
      if (Number(await anvil.rpc<string>('eth_blockNumber')) % 2 === 0) await anvil.mine();
    };
    const held = async (owed: Owed): Promise<readonly bigint[]> =>
      (await chain.facts(owed)).filter(({ state }) => state === 'mined').map(({ amount }) => amount);

    test('is what the block of the best chain shows, not what a block before showed', async () => {
      const contract = await anvil.deploy(pays);
      const owed = await chain.owe();
      await odd();
      const input = `0x${word(addressOf(owed))}${word(addressOf(owed))}`;
      const paid = await anvil.send({ to: contract, value: 5n * ETHER, input });
      await anvil.mine(2);
      await chain.catchUp();
      expect(await held(owed)).toEqual([5n * ETHER - 1n, 1n]);
      await chain.takeDue(owed);
      await anvil.rpc('anvil_reorg', 2, [[rawOf(paid), 1]]);
      await chain.catchUp();
      expect(await held(owed)).toEqual([1n, 2n]);
      expect(await chain.takeDue(owed)).toBe(true);
      const states = (await chain.facts(owed)).map(({ state, amount }) => `${state} ${amount}`);
      expect(states.sort()).toEqual([`conflicted ${5n * ETHER - 1n}`, 'mined 1', 'mined 2']);
      await anvil.rpc('anvil_reorg', 2, [[rawOf(paid), 0]]);
      await chain.catchUp();
      expect(await held(owed)).toEqual([5n * ETHER - 1n, 1n]);
    });

    test('is of the transaction that the block of the best chain pays', async () => {
      const contract = await anvil.deploy(pays);
      const [first, second] = [await chain.owe(), await chain.owe()];
      await odd();
      const paid = await anvil.send({
        to: contract,
        value: 3n,
        input: `0x${word(addressOf(first))}${word(addressOf(second))}`,
      });
      await anvil.mine(2);
      await chain.catchUp();
      expect([await held(first), await held(second)]).toEqual([[2n], [1n]]);
      await anvil.rpc('anvil_reorg', 2, [[rawOf(paid), 1]]);
      await chain.catchUp();
      expect([await held(first), await held(second)]).toEqual([[2n], [1n]]);
    });
  });

  test('is read although the calls of another transaction are too much to be shown', async () => {
    const contract = await anvil.deploy({ bytecode: LOUD, selectors: {} });
    const owed = await chain.owe();
    const [from] = await anvil.rpc<string[]>('eth_accounts');
    await anvil.rpc<string>('eth_sendTransaction', {
      from,
      to: contract,
      data: `0x${(1_000).toString(16).padStart(64, '0')}`,
      gas: '0x100000',
    });
    const { hash } = await anvil.send({
      to: anvil.forwarder,
      value: ETHER,
      input: callData(FORWARDER, 'halves(address)', addressOf(owed)),
    });
    await anvil.mine();
    expect(await chain.catchUp()).toMatchObject({ state: 'ready', caughtUp: true });
    expect(await chain.facts(owed)).toMatchObject([
      { txid: hash, amount: ETHER / 2n },
      { txid: hash, amount: ETHER / 2n },
    ]);
    // what was not shown brought nothing: balances say so
    expect((await chain.watcher.pass()).alarms.join()).not.toContain('was not seen');
  });

  test('is read with as many requests a block, however many payments there are', async () => {
    const proxy = await openSeverableProxy(Number(new URL(anvil.url).port));
    await chain.close();
    chain = await watchChain('ETH', proxy.url);
    await chain.catchUp();
    const counted = async (payments: number): Promise<number> => {
      for (let n = 0; n < payments; n++) await anvil.send({ to: addressOf(await chain.owe()), value: ETHER });
      await anvil.mine();
      const before = proxy.requests();
      expect(await chain.catchUp()).toMatchObject({ blocksRead: 1 });
      return proxy.requests() - before;
    };
    const few = await counted(1);
    expect(few).toBeGreaterThan(0);
    expect(await counted(25)).toBe(few);
    proxy.close();
  });
});

describe('USDT', () => {
  beforeEach(async () => {
    chain = await watchChain('USDT', anvil.url, { contract: anvil.token });
    await chain.catchUp();
  });
  const transfer = (to: string, units: bigint): string => callData(QUIRKY_TOKEN, 'transfer(address,uint256)', to, units);
  const balanceOf = async (address: string): Promise<bigint> =>
    BigInt(
      await anvil.rpc<string>(
        'eth_call',
        { to: anvil.token, data: callData(QUIRKY_TOKEN, 'balanceOf(address)', address) },
        'latest',
      ),
    );

  test('with a fee on transfers is credited with what arrives, not with what was sent', async () => {
    await anvil.asOwner(callData(QUIRKY_TOKEN, 'setFee(uint256)', 100n));
    const owed = await chain.owe();
    const { hash } = await anvil.send({ to: anvil.token, input: transfer(addressOf(owed), 1_000_000n) }, { units: 1_000_000n });
    await chain.catchUp();
    expect(await chain.facts(owed)).toMatchObject([{ amount: 1_000_000n, state: 'mempool' }]);
    await anvil.mine();
    await chain.catchUp();
    expect(await chain.facts(owed)).toMatchObject([
      { txid: hash, amount: 1_000_000n, state: 'conflicted' },
      { txid: hash, amount: 990_000n, state: 'mined' },
    ]);
    expect(await balanceOf(addressOf(owed))).toBe(990_000n);
    await anvil.asOwner(callData(QUIRKY_TOKEN, 'setFee(uint256)', 0n));
  });

  test.each([
    ['its sender does not have', async () => undefined, async () => undefined],
    [
      'a paused contract refuses',
      () => anvil.asOwner(callData(QUIRKY_TOKEN, 'setPaused(bool)', 1n)),
      () => anvil.asOwner(callData(QUIRKY_TOKEN, 'setPaused(bool)', 0n)),
    ],
  ])('that %s is never shown as paid, neither waiting nor mined', async (_what, before, after) => {
    await before();
    const owed = await chain.owe();
    await anvil.send({ to: anvil.token, input: transfer(addressOf(owed), 1_000_000n) });
    await chain.catchUp();
    expect(await chain.facts(owed)).toEqual([]);
    await anvil.mine();
    await chain.catchUp();
    expect(await chain.facts(owed)).toEqual([]);
    await after();
  });

  test('that waited and then failed in its block was never paid', async () => {
    const owed = await chain.owe();
    const { hash } = await anvil.send({ to: anvil.token, input: transfer(addressOf(owed), 5n) }, { units: 5n });
    await chain.catchUp();
    expect(await chain.facts(owed)).toMatchObject([{ txid: hash, state: 'mempool' }]);
    const { from } = await anvil.rpc<{ from: string }>('eth_getTransactionByHash', hash);
    await anvil.deal(from, 1n);
    await anvil.mine();
    await chain.catchUp();
    expect(await chain.facts(owed)).toMatchObject([{ txid: hash, state: 'conflicted', conflictTxid: hash }]);
  });

  test('that was allowed to another account and fetched by it is a payment', async () => {
    const owed = await chain.owe();
    const owner = await anvil.send(
      { to: anvil.token, input: callData(QUIRKY_TOKEN, 'approve(address,uint256)', anvil.forwarder, 7n) },
      { units: 7n },
    );
    const [from] = await anvil.rpc<string[]>('eth_accounts');
    await anvil.mine();
    await anvil.rpc('anvil_impersonateAccount', anvil.forwarder);
    await anvil.rpc('anvil_setBalance', anvil.forwarder, `0x${ETHER.toString(16)}`);
    const data = callData(QUIRKY_TOKEN, 'transferFrom(address,address,uint256)', owner.from, addressOf(owed), 7n);
    await anvil.rpc('eth_sendTransaction', { from: anvil.forwarder, to: anvil.token, data, gas: '0x100000' });
    expect(from).toBeDefined();
    await anvil.mine();
    await chain.catchUp();
    expect(await chain.facts(owed)).toMatchObject([{ amount: 7n, state: 'mined' }]);
  });

  test('of another contract with the same name is told and changes nothing', async () => {
    const fake = await anvil.deploy(QUIRKY_TOKEN, (10n ** 18n).toString(16).padStart(64, '0'));
    const owed = await chain.owe();
    const [from] = await anvil.rpc<string[]>('eth_accounts');
    await anvil.rpc('eth_sendTransaction', { from, to: fake, data: transfer(addressOf(owed), 3n), gas: '0x100000' });
    await anvil.mine();
    await chain.catchUp();
    expect(await chain.facts(owed)).toEqual([]);
    expect(await chain.takeDue(owed)).toBe(false);
  });

  test('is not read from a contract that is not there, or that is another', async () => {
    const node = async (contract: string): Promise<unknown> => {
      const other = await watchChain('USDT', anvil.url, { contract });
      try {
        const { state, reason } = await other.watcher.pass();
        return [state, reason?.replace(/^[^ ]+ /, '')];
      } finally {
        await other.close();
      }
    };
    const nowhere = `0x${'12'.repeat(20)}`;
    expect(await node(nowhere)).toEqual(['wrong_network', `there is no contract at ${nowhere}`]);
    expect(await node(anvil.forwarder)).toEqual(['wrong_network', `the contract at ${anvil.forwarder} does not have 6 decimals`]);
  });
});
