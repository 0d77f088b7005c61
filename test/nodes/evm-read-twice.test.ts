// The second reading at a provider that answers with an error for a moment: that stops no payouts. What lasts does.
import { afterAll, beforeAll, expect, test } from 'vitest';
import { runReconciliation } from '../../src/flow/audit.ts';
import { createChainNodes } from '../../src/outside/utxo/by-currency.ts';
import { reconcile } from '../../src/worker/rescan/reconciler.ts';
import { openAlteredNode } from '../support/nodes/altered-node.ts';
import { FINAL } from './evm-lied-to.ts';
import { type EvmService, openEvmService } from './evm-service.ts';

const TIMEOUT = 300_000;
const MINUTE_MS = 60_000;
let service: EvmService;
let provider: Awaited<ReturnType<typeof openAlteredNode>>;
let nodes: ReturnType<typeof createChainNodes>;

beforeAll(async () => {
  service = await openEvmService();
  provider = await openAlteredNode(service.anvil.url);
  const urls = new Map([['USDT' as const, [provider.url]]]);
  nodes = createChainNodes({ network: 'regtest', clock: service.ctx.ports.clock, urls, tokenContract: service.anvil.token });
}, TIMEOUT);
afterAll(async () => {
  await nodes?.close();
  provider?.close();
  await service?.close();
}, TIMEOUT);

const readsOn = () => reconcile({ ...service.ctx, ports: { ...service.ctx.ports, chains: nodes.chains } }, 'USDT');
const findings = async (): Promise<readonly string[]> =>
  (await runReconciliation(service.ctx, 2_000)).answers.flatMap((one) => one.findings);
async function passes(ms: number): Promise<void> {
  await service.work(ms);
  await service.mine();
}

test('an answer that is wrong for a moment is no finding, and one that stays so is', { timeout: TIMEOUT }, async () => {
  await service.pay('USDT', (await service.owe('USDT', 90_00n)).address, 90_000_000n);
  await service.mine(FINAL);
  while ((await readsOn()).more);
  await service.pay('USDT', (await service.owe('USDT', 90_00n)).address, 90_000_000n);
  await service.mine(FINAL);
  for (const message of ['Internal error', 'unexpected failure']) {
    provider.alter({ instead: ({ method }) => (method.endsWith('Receipts') ? { error: { code: -32603, message } } : null) });
    expect(await readsOn()).toMatchObject({ unread: true, trouble: expect.stringContaining(message) });
    expect(await findings()).toEqual([]);
    await passes(6 * MINUTE_MS);
  }
  expect(await findings()).toEqual([expect.stringMatching(/^USDT cannot be read on from block \d+: .*unexpected failure/)]);
  provider.alter({});
  while ((await readsOn()).more);
  expect(await findings()).toEqual([]);
  await service.mine(FINAL);
  provider.alter({
    instead: ({ method }) => (/ByHash$|Receipts$/.test(method) ? { error: { code: -32603, message: 'again' } } : null),
  });
  await service.pay('USDT', (await service.owe('USDT', 90_00n)).address, 90_000_000n);
  await service.mine(FINAL);
  await readsOn();
  expect(await findings()).toEqual([]);
});

const FAILS = { error: { code: -32603, message: 'Internal error' } };

test('a chain that is read on between wrong answers is no finding', { timeout: TIMEOUT }, async () => {
  provider.alter({});
  while ((await readsOn()).more);
  for (let reading = 0; reading < 3; reading++) {
    let shown = 0;
    await service.mine(FINAL);
    provider.alter({ instead: ({ method }) => (method.endsWith('ByHash') && ++shown > 6 ? FAILS : null) });
    expect(await readsOn()).toMatchObject({ unread: true, blocksRead: expect.toSatisfy((blocks: number) => blocks > 0) });
    await passes(6 * MINUTE_MS);
    expect(await findings()).toEqual([]);
  }
});

test('a clock that is set back hides no longer that a chain cannot be read', { timeout: TIMEOUT }, async () => {
  provider.alter({});
  while ((await readsOn()).more);
  await service.mine(FINAL);
  provider.alter({ instead: ({ method }) => (method.endsWith('ByHash') ? FAILS : null) });
  expect(await readsOn()).toMatchObject({ unread: true });
  await passes(-24 * 60 * MINUTE_MS);
  expect(await findings()).toEqual([]);
  await passes(11 * MINUTE_MS);
  expect(await findings()).toEqual([expect.stringMatching(/^USDT cannot be read on from block \d+: .*Internal error/)]);
});

test('what was read on, before a node gave no answer, is no finding', { timeout: TIMEOUT }, async () => {
  provider.alter({});
  while ((await readsOn()).more);
  await service.mine(FINAL);
  provider.alter({ instead: ({ method }) => (method.endsWith('ByHash') ? FAILS : null) });
  expect(await readsOn()).toMatchObject({ unread: true, blocksRead: 0 });
  await passes(6 * MINUTE_MS);
  await service.mine(FINAL);
  let shown = 0;
  // the connection ends
  const before = ({ method }: { readonly method: string }) =>
    method.endsWith('ByHash') && ++shown > 6 ? Promise.reject(new Error('it has gone')) : undefined;
  provider.alter({ before });
  expect(await readsOn()).toMatchObject({
    unread: false,
    trouble: expect.any(String),
    blocksRead: expect.toSatisfy((n: number) => n > 0),
  });
  await passes(6 * MINUTE_MS);
  expect(await findings()).toEqual([]);
});
