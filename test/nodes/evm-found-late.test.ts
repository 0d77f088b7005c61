// What is recorded of a block on Ethereum's chain after the second reading has passed it, as its node shows more or names other places by then: the block
// is read a second time anew, so nothing is missing there.
import { afterEach, expect, test } from 'vitest';
import { createChainNodes } from '../../src/outside/utxo/by-currency.ts';
import type { ChainContext } from '../../src/worker/chain/context.ts';
import { lookUpAgain } from '../../src/worker/rescan/rescan.ts';
import { type Alteration, WITHOUT_TRACES } from '../support/nodes/altered-node.ts';
import { openAlteredService, readsBalances } from './altered-anvil.ts';
import { FINAL } from './evm-lied-to.ts';

const TIMEOUT = 300_000;
const WEI = 10n ** 17n;
/** Neither calls nor what addresses hold. */
const NOTHING_INSIDE: Alteration = {
  instead: (asked) =>
    readsBalances(asked)
      ? { error: { code: -32602, message: 'missing value for required argument "to"' } }
      : (WITHOUT_TRACES.instead?.(asked) ?? null),
};
let altered: Awaited<ReturnType<typeof openAlteredService>> | undefined;
afterEach(() => altered?.close(), TIMEOUT);

test('ether of a contract that the last look-up finds', { timeout: TIMEOUT }, async () => {
  altered = await openAlteredService(NOTHING_INSIDE);
  const { service, alter, pay } = altered;
  const { id, address } = await service.owe('ETH', 300_00n);
  const fromHeight = Number(await service.anvil.rpc<string>('eth_blockNumber'));
  await pay(address, WEI);
  await service.mine(FINAL);
  expect([await service.status(id), await service.findings()]).toEqual(['started', []]);
  alter({});
  const urls = new Map([['ETH' as const, [altered.url()]]]);
  const nodes = createChainNodes({
    network: 'regtest',
    clock: service.ctx.ports.clock,
    urls,
    tokenContract: service.anvil.token,
  });
  const ctx: ChainContext = { ...service.ctx, ports: { ...service.ctx.ports, chains: nodes.chains } };
  const scripts = [Buffer.from(`65766d${address.slice(2)}`, 'hex')];
  expect(await lookUpAgain(ctx, 'ETH', { fromHeight, scripts })).toBe(true);
  await nodes.close();
  await service.mine();
  expect([await service.status(id), await service.findings()]).toEqual(['succeeded', []]);
});
