// What gas costs is what most nodes say: whoever has one of them, and makes a block now and then, would be paid by us what he says.
import { expect, test } from 'vitest';
import type { EvmPort } from '../../src/core/evm/port.ts';
import { createChainNodes } from '../../src/outside/utxo/by-currency.ts';
import { type Alteration, openAlteredNode } from '../support/nodes/altered-node.ts';
import { dollarsOnTwoNodesForAll, nodes, service } from './dollars-on-two-nodes.ts';
import { FINAL, LATER_MS, SILENT } from './evm-lied-to.ts';

const TIMEOUT = 300_000;
const PAYEE = `0x${'b8'.repeat(20)}`;
const GWEI = 10n ** 9n;

dollarsOnTwoNodesForAll();

const hex = (value: bigint): string => `0x${value.toString(16)}`;
/** A node that says what gas costs. */
const asking = (base: bigint, tip: bigint): Alteration => ({
  afterwards({ method, params }, answer) {
    if (method === 'eth_maxPriorityFeePerGas') return { result: hex(tip) };
    if (method !== 'eth_getBlockByNumber' || params[0] !== 'latest') return answer;
    return { result: { ...(answer.result as object), baseFeePerGas: hex(base) } };
  },
});
const offers = async (id: string): Promise<readonly bigint[]> => {
  const { rows } = await service.db.query<{ offer: string }>({
    text: 'select a.max_fee as offer from outgoing_attempts a join payouts p on p.batch_id = a.batch_id where p.id = $1 order by a.number',
    values: [id],
  });
  return rows.map(({ offer }) => BigInt(offer));
};

test('a payout offers, and raises, nothing because one of two nodes says that gas is dear', { timeout: TIMEOUT }, async () => {
  nodes.read.alter(asking(GWEI, 2_000n * GWEI));
  const id = await service.request(PAYEE);
  await service.work(LATER_MS);
  const [first = 0n] = await offers(id);
  expect(first > 0n && first < 100n * GWEI).toBe(true);
  nodes.read.alter(asking(1_500n * GWEI, 100n * GWEI));
  for (let look = 0; look < 3; look++) await service.work(10 * LATER_MS);
  expect(await offers(id)).toEqual([first]);
  nodes.read.alter({});
  await service.mine(FINAL);
  await service.work(LATER_MS);
  expect(await service.findings()).toEqual([]);
});

test('of three the middle one counts, of two the lower, and one that is silent is left out', { timeout: TIMEOUT }, async () => {
  const all = await Promise.all([1, 2, 3].map(() => openAlteredNode(service.anvil.url)));
  const urls = all.map(({ url }) => url);
  const { chains, close } = createChainNodes({
    network: 'regtest',
    clock: service.ctx.ports.clock,
    urls: new Map([['ETH', urls]]),
    tokenContract: service.anvil.token,
  });
  const says = (...nth: readonly Alteration[]) => {
    for (const [at, node] of all.entries()) node.alter(nth[at] as Alteration);
  };
  const condition = async () => (await chains.get('ETH')?.condition()) as { readonly others?: readonly string[] };
  const fees = () => (chains.get('ETH') as unknown as EvmPort).gasFees();
  try {
    says(asking(50n, 3n), asking(24n, 9n), asking(30n, 6n));
    expect(await fees()).toMatchObject({ base: 30n, tip: 6n });
    expect((await condition()).others ?? []).toEqual([
      expect.stringMatching(/^contradiction: by .* gas costs more than 2 times as much as by /),
    ]);
    says(asking(48n, 3n), asking(24n, 9n), asking(30n, 6n));
    await fees();
    expect((await condition()).others ?? []).toEqual([]);
    says(asking(50n, 3n), SILENT, asking(30n, 6n));
    expect(await fees()).toMatchObject({ base: 30n, tip: 3n });
    says(SILENT, SILENT, asking(30n, 6n));
    expect(await fees()).toMatchObject({ base: 30n, tip: 6n });
    says(SILENT, SILENT, SILENT);
    await expect(fees()).rejects.toThrow(/destroyed|closed|other side|fetch|socket/i);
  } finally {
    await close();
    for (const node of all) node.close();
  }
});
