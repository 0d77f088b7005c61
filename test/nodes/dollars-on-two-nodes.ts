// What tests of one node's word in payouts of USDT share: two nodes, and a merchant who has received 900 dollars over them.
import { afterAll, afterEach, beforeAll } from 'vitest';
import { receiveDollars } from './evm-lied-to.ts';
import { openOnTwoNodes, type TwoNodes } from './two-nodes.ts';

const TIMEOUT = 300_000;
export let nodes: TwoNodes;
export let service: TwoNodes['service'];

/** Opens it before the tests of the file, and closes it afterwards; after each of them both nodes say what is true again. */
export function dollarsOnTwoNodesForAll(): void {
  beforeAll(async () => {
    nodes = await openOnTwoNodes();
    ({ service } = nodes);
    await receiveDollars(service, 900n);
  }, TIMEOUT);
  afterAll(() => nodes?.close(), TIMEOUT);
  afterEach(() => {
    for (const node of [nodes.read, nodes.other]) node.alter({});
  });
}
