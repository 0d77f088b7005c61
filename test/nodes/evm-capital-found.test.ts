// Capital of the service that a contract has sent while its node did not show that: a rescan finds it, as far as its address holds it.
import { afterEach, expect, test } from 'vitest';
import { createChainNodes } from '../../src/outside/utxo/by-currency.ts';
import { rescan } from '../../src/worker/rescan/rescan-all.ts';
import { callData } from '../support/evm/anvil.ts';
import { FORWARDER } from '../support/evm/compiled.ts';
import type { Alteration } from '../support/nodes/altered-node.ts';
import { openAlteredService, readsBalances } from './altered-anvil.ts';
import { FINAL } from './evm-lied-to.ts';
import { ledgerIsChain, works } from './evm-steps.ts';
import { openOnTwoNodes } from './two-nodes.ts';

const TIMEOUT = 300_000;
const WEI = 10n ** 17n;
type Traced = { readonly result: Record<string, unknown> };
const HIDES_CALLS: Alteration = {
  afterwards: ({ method }, answer) =>
    method.startsWith('debug_traceBlock')
      ? {
          ...answer,
          result: (answer.result as readonly Traced[]).map((one) => ({ ...one, result: { ...one.result, calls: [] } })),
        }
      : answer,
};
let altered: Awaited<ReturnType<typeof openAlteredService>> | undefined;
afterEach(async () => {
  await altered?.close();
  altered = undefined;
}, TIMEOUT);

test('it is recorded once, and what the address does not hold any more is not', { timeout: TIMEOUT }, async () => {
  altered = await openAlteredService(HIDES_CALLS);
  const { service, alter, pay, url } = altered;
  const hot = await service.hot('ETH');
  const fromHeight = Number(await service.anvil.rpc<string>('eth_blockNumber'));
  await pay(hot, WEI);
  await service.mine(FINAL);
  expect(await service.findings()).toEqual([expect.stringMatching(/^EVM-2: .* of ETH .* more than is known/)]);
  alter({});
  const urls = new Map([['ETH' as const, [url()]]]);
  const again = async (): Promise<bigint> => {
    const nodes = createChainNodes({
      network: 'regtest',
      clock: service.ctx.ports.clock,
      urls,
      tokenContract: service.anvil.token,
    });
    const { isBack } = await rescan({ ...service.ctx, ports: { ...service.ctx.ports, chains: nodes.chains } }, 'ETH', {
      fromHeight,
    });
    await nodes.close();
    return isBack.reduce((all, { amount }) => all + amount, 0n);
  };
  expect(await again()).toBe(WEI);
  await service.mine(FINAL);
  await works(service, 2);
  await ledgerIsChain(service, [hot, await service.hot('USDT')]);
  // what is there is known
  const admin = await service.db.query({
    text: 'select count(*)::int as count from own_outputs where height > $1',
    values: [fromHeight],
  });
  expect(admin.rows).toEqual([{ count: 2 }]);
  expect(await again()).toBe(0n);
});

test('what has left is not booked by a second rescan, nor beside what is shown again', { timeout: TIMEOUT }, async () => {
  altered = await openAlteredService(HIDES_CALLS);
  const { service, alter, pay, url } = altered;
  const hot = await service.hot('ETH');
  const height = async (): Promise<number> => Number(await service.anvil.rpc<string>('eth_blockNumber'));
  const chains = () =>
    createChainNodes({
      network: 'regtest',
      clock: service.ctx.ports.clock,
      urls: new Map([['ETH' as const, [url()]]]),
      tokenContract: service.anvil.token,
    });
  const again = async (fromHeight: number): Promise<bigint> => {
    const nodes = chains();
    const { isBack } = await rescan({ ...service.ctx, ports: { ...service.ctx.ports, chains: nodes.chains } }, 'ETH', {
      fromHeight,
    });
    await nodes.close();
    return isBack.reduce((all, { amount }) => all + amount, 0n);
  };
  const first = await height();
  await pay(hot, WEI);
  await service.mine();
  // the first one has left
  await service.anvil.rpc('anvil_setBalance', hot, `0x${((await service.ether(hot)) - WEI).toString(16)}`);
  const second = await height();
  await pay(hot, WEI);
  await service.mine(FINAL);
  expect(await service.findings()).toEqual([expect.stringMatching(/^EVM-2: .* more than is known/)]);
  alter({});
  expect(await again(second)).toBe(WEI);
  expect(await again(first)).toBe(0n);
  expect(await service.findings()).toEqual([]);
  // taken back, as nodes show it no more
  alter(HIDES_CALLS);
  await again(second);
  expect(await service.findings()).toEqual([expect.stringMatching(/^EVM-2: .* more than is known/)]);
  alter({});
  expect(await again(first)).toBe(WEI);
  expect(await service.findings()).toEqual([]);
});

test('what has left before this database began is not taken for what is there', { timeout: TIMEOUT }, async () => {
  altered = await openAlteredService(HIDES_CALLS);
  const { service, alter, pay, url } = altered;
  const hot = await service.hot('ETH');
  const fromHeight = Number(await service.anvil.rpc<string>('eth_blockNumber'));
  await pay(hot, WEI);
  await service.mine();
  // it holds a wei more than is known
  await service.anvil.rpc('anvil_setBalance', hot, `0x${((await service.ether(hot)) - WEI + 1n).toString(16)}`);
  await service.mine(FINAL);
  expect(await service.findings()).toEqual([expect.stringMatching(/^EVM-2: .* 1 more than is known/)]);
  alter({});
  const urls = new Map([['ETH' as const, [url()]]]);
  const nodes = createChainNodes({
    network: 'regtest',
    clock: service.ctx.ports.clock,
    urls,
    tokenContract: service.anvil.token,
  });
  const done = await rescan({ ...service.ctx, ports: { ...service.ctx.ports, chains: nodes.chains } }, 'ETH', { fromHeight });
  await nodes.close();
  expect(done.isBack).toEqual([]);
});

test('what is written off at its address hides none of it', { timeout: TIMEOUT }, async () => {
  altered = await openAlteredService(HIDES_CALLS);
  const { service, alter, pay, url } = altered;
  const hot = await service.hot('ETH');
  const fromHeight = Number(await service.anvil.rpc<string>('eth_blockNumber'));
  await pay(hot, WEI);
  await service.mine();
  // as much of what was known has left, and is written off
  await service.anvil.rpc('anvil_setBalance', hot, `0x${((await service.ether(hot)) - WEI).toString(16)}`);
  await service.db.query({
    text: `insert into written_off (currency, script, amount, height, block_hash, said_by, evidence, at)
             values ('ETH', $1, $2, $3, 'none', 'test', 'test', now())`,
    values: [Buffer.from(`65766d${hot.slice(2)}`, 'hex'), WEI, fromHeight],
  });
  await service.mine(FINAL);
  expect(await service.findings()).toContainEqual(expect.stringMatching(/^EVM-2: .* more than is known/));
  alter({});
  const urls = new Map([['ETH' as const, [url()]]]);
  const { clock } = service.ctx.ports;
  const { chains, close } = createChainNodes({ network: 'regtest', clock, urls, tokenContract: service.anvil.token });
  const { isBack } = await rescan({ ...service.ctx, ports: { ...service.ctx.ports, chains } }, 'ETH', { fromHeight });
  await close();
  expect(isBack.reduce((all, { amount }) => all + amount, 0n)).toBe(WEI);
});

/** Balances have so much more of one address. */
const saysMore = (address: string, wei: bigint): Alteration => ({
  afterwards(call, answer) {
    if (!readsBalances(call) || typeof answer.result !== 'string') return answer;
    const words = answer.result.slice(2).match(/.{64}/g) ?? [];
    const { data } = call.params[0] as { readonly data: string };
    // the number and the hash of the block come before the balances
    const addresses: readonly string[] = data.slice(-40 * (words.length - 2)).match(/.{40}/g) ?? [];
    const at = addresses.indexOf(address.slice(2)) + 2;
    if (at < 2) return answer;
    words[at] = (BigInt(`0x${words[at]}`) + wei).toString(16).padStart(64, '0');
    return { ...answer, result: `0x${words.join('')}` };
  },
});

test('what has left is not booked by the word of one of two nodes that says too much', { timeout: TIMEOUT }, async () => {
  const nodes = await openOnTwoNodes({ read: HIDES_CALLS, other: HIDES_CALLS });
  const { service } = nodes;
  try {
    const hot = await service.hot('ETH');
    const fromHeight = Number(await service.anvil.rpc<string>('eth_blockNumber'));
    await service.anvil.send({ to: service.anvil.forwarder, value: WEI, input: callData(FORWARDER, 'halves(address)', hot) });
    await service.mine();
    await service.anvil.rpc('anvil_setBalance', hot, `0x${((await service.ether(hot)) - WEI).toString(16)}`);
    await service.mine(FINAL);
    expect(await service.findings()).toEqual([]);
    nodes.read.alter({});
    nodes.other.alter(saysMore(hot, WEI));
    expect(await service.findings()).toEqual([expect.stringMatching(/^EVM-2: .* more than is known/)]);
    const { clock } = service.ctx.ports;
    const urls = new Map([['ETH' as const, [nodes.read.url, nodes.other.url]]]);
    const { chains, close } = createChainNodes({ network: 'regtest', clock, urls, tokenContract: service.anvil.token });
    const { isBack } = await rescan({ ...service.ctx, ports: { ...service.ctx.ports, chains } }, 'ETH', { fromHeight });
    await close();
    expect(isBack).toEqual([]);
  } finally {
    await nodes.close();
  }
});

test('what two nodes say is there is booked; what only one can be asked about is not, and the rescan says so', {
  timeout: TIMEOUT,
}, async () => {
  const nodes = await openOnTwoNodes({ read: HIDES_CALLS, other: HIDES_CALLS });
  const { service } = nodes;
  try {
    const hot = await service.hot('ETH');
    const fromHeight = Number(await service.anvil.rpc<string>('eth_blockNumber'));
    await service.anvil.send({ to: service.anvil.forwarder, value: WEI, input: callData(FORWARDER, 'halves(address)', hot) });
    await service.mine(FINAL);
    expect(await service.findings()).toEqual([expect.stringMatching(/^EVM-2: .* more than is known/)]);
    const { clock } = service.ctx.ports;
    const urls = new Map([['ETH' as const, [nodes.read.url, nodes.other.url]]]);
    const again = async () => {
      const { chains, close } = createChainNodes({ network: 'regtest', clock, urls, tokenContract: service.anvil.token });
      const done = await rescan({ ...service.ctx, ports: { ...service.ctx.ports, chains } }, 'ETH', { fromHeight });
      await close();
      return { found: done.isBack.reduce((all, { amount }) => all + amount, 0n), notSought: done.notSought };
    };
    nodes.read.alter({});
    const noState = { error: { code: -32000, message: 'missing trie node' } };
    nodes.other.alter({ instead: ({ method }) => (method === 'eth_getBalance' ? noState : null) });
    expect(await again()).toEqual({
      found: 0n,
      notSought: [{ address: hot, reason: expect.stringMatching(/missing trie node|no answer/) }],
    });
    nodes.other.alter({});
    expect(await again()).toEqual({ found: WEI, notSought: [] });
  } finally {
    await nodes.close();
  }
});
