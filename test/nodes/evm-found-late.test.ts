// What is recorded of a block on Ethereum's chain after the second reading has passed it, as its node shows more or names other places by then: the block
// is read a second time anew, so nothing is missing there.
import { afterEach, expect, test } from 'vitest';
import { createChainNodes } from '../../src/outside/utxo/by-currency.ts';
import type { ChainContext } from '../../src/worker/chain/context.ts';
import { lookUpAgain } from '../../src/worker/rescan/rescan.ts';
import { type Alteration, receipts, WITHOUT_TRACES } from '../support/nodes/altered-node.ts';
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
/** Rule 8's last look-up, as another process makes it: nothing that was read before is remembered. */
async function looksUp(
  { service, url }: Awaited<ReturnType<typeof openAlteredService>>,
  currency: 'ETH' | 'USDT',
  of: { readonly fromHeight: number; readonly address: string },
): Promise<void> {
  const { ctx, anvil } = service;
  const urls = new Map([[currency, [url()]]]);
  const nodes = createChainNodes({ network: 'regtest', clock: ctx.ports.clock, urls, tokenContract: anvil.token });
  const reading: ChainContext = { ...ctx, ports: { ...ctx.ports, chains: nodes.chains } };
  const scripts = [Buffer.from(`65766d${of.address.slice(2)}`, 'hex')];
  expect(await lookUpAgain(reading, currency, { fromHeight: of.fromHeight, scripts })).toBe(true);
  await nodes.close();
}
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
  await looksUp(altered, 'ETH', { fromHeight, address });
  await service.mine();
  expect([await service.status(id), await service.findings()]).toEqual(['succeeded', []]);
});

test('what the last look-up finds, and no reading after it, is missing', { timeout: TIMEOUT }, async () => {
  altered = await openAlteredService({});
  const { service, alter } = altered;
  const { address } = await service.owe('USDT', 90_00n);
  const fromHeight = Number(await service.anvil.rpc<string>('eth_blockNumber'));
  const { hash } = await service.pay('USDT', `0x${'aa'.repeat(20)}`, 90_000_000n);
  await service.mine(FINAL);
  expect(await service.findings()).toEqual([]);
  const payee = `0x${address.slice(2).padStart(64, '0')}`;
  alter(
    receipts((one) => ({
      ...one,
      logs: one.logs.map((log) => (one.transactionHash === hash ? { ...log, topics: [...log.topics.slice(0, 2), payee] } : log)),
    })),
  );
  await looksUp(altered, 'USDT', { fromHeight, address });
  alter({});
  await service.mine();
  const found = await service.findings();
  expect(found).toEqual(expect.arrayContaining([expect.stringMatching(new RegExp(`^RECON-2: USDT ${hash}:.* is not there`))]));
});
