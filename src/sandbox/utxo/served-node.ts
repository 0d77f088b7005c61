// One simulated node behind its own server, for tests of the node's clients. The sandbox serves all its nodes at one address instead.
import { createServer } from 'node:http';
import { closeServer, listen, sandboxHandler } from '../server.ts';
import { openAnnouncer } from './announcer.ts';
import { type NodeOptions, openSimulatedNode, type SimulatedNode } from './simulated-node.ts';

export type ServedNode = SimulatedNode & {
  /** `http://bursar:<secret>@127.0.0.1:<port>/node/<currency>` */
  readonly url: string;
  /** Stops serving and closes the journal. */
  stop(): Promise<void>;
};

/**
 * Opens a node (see {@link openSimulatedNode}) and serves its JSON-RPC on a free loopback port.
 * @param options.announces whether it publishes by ZMQ too, as the sandbox's nodes do (default false)
 */
export async function createSimulatedNode(options: NodeOptions & { readonly announces?: boolean }): Promise<ServedNode> {
  const secret = 'simulated';
  const node = openSimulatedNode(options);
  const server = createServer(sandboxHandler({ secret, nodes: [node], log: (line, error) => console.error(line, error) }));
  const port = await listen(server, 0);
  const announcer = options.announces ? await openAnnouncer(node) : null;
  return {
    ...node,
    url: `http://bursar:${secret}@127.0.0.1:${port}/node/${node.dialect.path}`,
    stop: async () => {
      await closeServer(server);
      await announcer?.close();
      node.close();
    },
  };
}
