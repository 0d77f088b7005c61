// A transaction of ours that our nodes have and no block takes is told: one of them may say that less is asked for than is, or keep it for itself.
import { expect, test } from 'vitest';
import { readReadiness } from '../../src/flow/readiness.ts';
import type { Alteration } from '../support/nodes/altered-node.ts';
import { dollarsOnTwoNodesForAll, nodes, service } from './dollars-on-two-nodes.ts';
import { FINAL, LATER_MS } from './evm-lied-to.ts';

const TIMEOUT = 300_000;
const PAYEE = `0x${'b7'.repeat(20)}`;
const LONG_MS = 11 * 60_000;

dollarsOnTwoNodesForAll();

/** No proposer takes what offers him nothing: such nodes have it, and no block ever does. */
const takenByNobody = (tip: bigint): Alteration => ({
  instead({ method }) {
    if (method === 'eth_sendRawTransaction') return { result: `0x${'00'.repeat(32)}` };
    return method === 'eth_maxPriorityFeePerGas' ? { result: `0x${tip.toString(16)}` } : null;
  },
});
const waiting = async (): Promise<readonly string[]> =>
  (await readReadiness(service.ctx, [])).problems.filter((one) => one.startsWith('payout '));

test('one of two nodes that says a tip is not needed is named once payouts wait for that', { timeout: TIMEOUT }, async () => {
  nodes.read.alter(takenByNobody(1_500_000_000n));
  nodes.other.alter(takenByNobody(0n));
  const id = await service.request(PAYEE);
  await service.work(LATER_MS);
  await service.mine(2);
  await service.work(LATER_MS);
  expect(await waiting()).toEqual([]);
  await service.work(LONG_MS);
  const { host } = new URL(nodes.other.url);
  const told = expect.stringMatching(new RegExp(`^payout ${id} waits: no block has taken 0x[0-9a-f]{64} .* ${host} `));
  expect(await waiting()).toEqual([told]);
  await service.work(LATER_MS);
  expect(await waiting()).toEqual([told]);
  // the log names what moves payments too, and each in one and the same way: it is written once
  expect(new Set(service.told.filter((one) => one.includes('no block has taken'))).size).toBe(2);

  for (const node of [nodes.read, nodes.other]) node.alter({});
  await service.work(LATER_MS);
  await service.mine();
  await service.work(LATER_MS);
  expect(await waiting()).toEqual([]);
  await service.mine(FINAL);
  await service.work(LATER_MS);
  expect(await service.findings()).toEqual([]);
});

test('nodes that say the same of gas are named by none, and what they refuse for long is told as they say it', {
  timeout: TIMEOUT,
}, async () => {
  const refuses: Alteration = {
    instead: ({ method }) =>
      method === 'eth_sendRawTransaction' ? { error: { code: -32000, message: 'transaction underpriced' } } : null,
  };
  const first = await service.request(PAYEE);
  for (const node of [nodes.read, nodes.other]) node.alter(takenByNobody(1_000_000_000n));
  await service.work(LATER_MS);
  await service.work(LONG_MS);
  expect(await waiting()).toEqual([
    expect.stringMatching(new RegExp(`^payout ${first} waits: no block has taken 0x[0-9a-f]{64} [^;]*$`)),
  ]);
  for (const node of [nodes.read, nodes.other]) node.alter(refuses);
  await service.work(LATER_MS);
  expect(await waiting()).toEqual([expect.stringMatching(new RegExp(`^payout ${first} waits: .*transaction underpriced .*$`))]);
});
