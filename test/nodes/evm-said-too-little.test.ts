// What addresses of ours hold is compared with what one node says, and one may be wrong: where it says less than is known, the others are asked too.
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Alteration } from '../support/nodes/altered-node.ts';
import { earnsDollars } from './evm-steps.ts';
import { openOnTwoNodes, type TwoNodes } from './two-nodes.ts';

const TIMEOUT = 300_000;
const BALANCE_OF = '0x70a08231';
let nodes: TwoNodes;

beforeAll(async () => {
  nodes = await openOnTwoNodes();
  await earnsDollars(nodes.service);
}, TIMEOUT);
afterAll(() => nodes?.close(), TIMEOUT);

/** Every address holds a dollar of the token, it says. */
const SAYS_LITTLE: Alteration = {
  instead: ({ method, params: [call] }) =>
    method === 'eth_call' && (call as { readonly data?: string }).data?.startsWith(BALANCE_OF) === true
      ? { result: `0x${(1_000_000).toString(16).padStart(64, '0')}` }
      : null,
};
test.each(['read', 'other'] as const)(
  'the one that is %s says too little of a token: nothing is missing, and that it says so is told',
  {
    timeout: TIMEOUT,
  },
  async (which) => {
    expect(await nodes.service.findings()).toEqual([]);
    nodes[which].alter(SAYS_LITTLE);
    expect(await nodes.service.findings()).toEqual([
      expect.stringMatching(/^EVM-3: .* of USDT .*, and only 1000000 by that of /),
    ]);
    nodes[which].alter({});
  },
);

test('what neither shows is missing', { timeout: TIMEOUT }, async () => {
  for (const node of [nodes.read, nodes.other]) node.alter(SAYS_LITTLE);
  expect(await nodes.service.findings()).toEqual(expect.arrayContaining([expect.stringMatching(/^EVM-1: .* of USDT/)]));
  for (const node of [nodes.read, nodes.other]) node.alter({});
  expect(await nodes.service.findings()).toEqual([]);
});
