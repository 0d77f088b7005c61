// What a transaction of Bitcoin's family must pay is what most of its nodes say: one that lies would have each payout pay miners as much as the signer
// allows, charged to its merchant.
import { expect, test } from 'vitest';
import { createNodeGroup } from '../../src/outside/utxo/node/group.ts';
import { createUtxoNode } from '../../src/outside/utxo/node/node.ts';
import {
  type Answers,
  badNode,
  blocks,
  clock,
  closeAfterEach,
  fromTable,
  info,
  opened,
  type Reply,
  sound,
  TIP,
} from './bad-node.ts';

closeAfterEach();

/** A node that estimates what a transaction must pay, in whole units for 1,000 bytes. */
const estimating = (feerate: number): Answers => ({ ...sound, estimatesmartfee: { feerate, blocks: 6 } });
/** One that was just started: it says what its mempool asks for at least. */
const WITHOUT_ESTIMATE: Answers = {
  ...sound,
  estimatesmartfee: { feerate: -1, blocks: 6 },
  getmempoolinfo: { mempoolminfee: 0.00001, minrelaytxfee: 0.00001 },
};
const SILENT: Reply = (request) => request.destroy();
const groupOf = async (...said: readonly (Answers | Reply)[]) => {
  const servers = await Promise.all(said.map((one) => badNode(typeof one === 'function' ? one : fromTable(one))));
  // a busy machine is no silent node
  const nodes = servers.map(({ url }) => createUtxoNode({ currency: 'BTC', url, network: 'regtest', clock, silenceMs: 20_000 }));
  for (const node of nodes) opened.push(() => node.close());
  return createNodeGroup(nodes, { clock, patienceMs: 20_000 });
};

test.each<[string, readonly (Answers | Reply)[], bigint | null]>([
  ['of one what it says', [estimating(0.005)], 500_000n],
  ['of two the lower', [estimating(0.005), estimating(0.0002)], 20_000n],
  ['of two the lower, whichever is read', [estimating(0.0002), estimating(0.005)], 20_000n],
  ['of three the middle one', [estimating(0.005), estimating(0.00001), estimating(0.0002)], 20_000n],
  ['nothing of one that is silent', [SILENT, estimating(0.0002)], 20_000n],
  ['nothing of one that has no estimate yet, beside one that has', [WITHOUT_ESTIMATE, estimating(0.0002)], 20_000n],
  ['without any estimate what mempools ask for', [WITHOUT_ESTIMATE, WITHOUT_ESTIMATE], 2_000n],
  ['null where none says anything', [sound, sound], null],
])('%s', async (_, said, expected) => {
  expect(await (await groupOf(...said)).feeRate()).toBe(expected);
});

test('trouble where none answers', async () => {
  await expect((await groupOf(SILENT, SILENT)).feeRate()).rejects.toMatchObject({ name: 'NodeTrouble' });
});

test('estimates that cannot be true together are told, until they are so no more', async () => {
  const answers: Record<string, unknown> = { ...estimating(0.005) };
  const group = await groupOf(answers, estimating(0.0002));
  const others = async () => ((await group.condition()) as { readonly others?: readonly string[] }).others ?? [];
  expect(await others()).toEqual([]);
  await group.feeRate();
  expect(await others()).toEqual([
    expect.stringMatching(/^contradiction: by .* a transaction costs more than 10 times as much as by /),
  ]);
  answers.estimatesmartfee = { feerate: 0.002, blocks: 6 };
  await group.feeRate();
  expect(await others()).toEqual([]);
});

const OTHER_GENESIS = '00'.repeat(32);
test.each<[string, Answers]>([
  ['is on another network', { getblockhash: blocks(OTHER_GENESIS) }],
  ['still reads the chain', { getblockchaininfo: { ...info, initialblockdownload: true, headers: 900_000, bestblockhash: TIP } }],
])('one that %s says nothing of what a transaction costs, until it is ready', async (_, wrong) => {
  const answers: Record<string, unknown> = { ...estimating(0.00001), ...wrong };
  const group = await groupOf(estimating(0.0002), answers);
  await group.condition();
  expect(await group.feeRate()).toBe(20_000n);
  expect(await (await groupOf(answers)).feeRate()).toBe(1_000n);
  Object.assign(answers, sound);
  await group.condition();
  expect(await group.feeRate()).toBe(1_000n);
});
