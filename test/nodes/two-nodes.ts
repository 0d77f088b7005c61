// The whole service on two nodes of Ethereum's chain that hold the same blocks, of which each says what a test lets it say.
import { type Alteration, openAlteredNode } from '../support/nodes/altered-node.ts';
import { openEvmService } from './evm-service.ts';

export type TwoNodes = Awaited<ReturnType<typeof openOnTwoNodes>>;

/** @param says of the node that is read and of the other one: what it changes from the beginning (default: nothing) */
export async function openOnTwoNodes(says: { readonly read?: Alteration; readonly other?: Alteration } = {}) {
  const nodes: Awaited<ReturnType<typeof openAlteredNode>>[] = [];
  const altered =
    (alteration: Alteration = {}) =>
    async (url: string): Promise<string> => {
      const node = await openAlteredNode(url);
      node.alter(alteration);
      nodes.push(node);
      return node.url;
    };
  const service = await openEvmService({ through: altered(says.read), second: altered(says.other) });
  const [read, other] = nodes as [(typeof nodes)[number], (typeof nodes)[number]];
  return {
    service,
    read,
    other,
    async close(): Promise<void> {
      await service.close();
      for (const node of nodes) node.close();
    },
  };
}
