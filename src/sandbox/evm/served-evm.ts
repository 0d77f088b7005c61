// The simulated Ethereum chain behind its own server, for tests of the node's clients. The sandbox serves all its nodes at one address.
import { createServer } from 'node:http';
import { closeServer, listen } from '../server.ts';
import { answerEvmRpc } from './rpc-server.ts';
import { openSimulatedEvm, type SimulatedEvm } from './simulated-evm.ts';

export type ServedEvm = SimulatedEvm & { readonly url: string; stop(): Promise<void> };

/** A simulated chain of its own on a free port of loopback, for tests of adapters. */
export async function createServedEvm(options: Parameters<typeof openSimulatedEvm>[0]): Promise<ServedEvm> {
  const chain = openSimulatedEvm(options);
  const server = createServer((request, response) => {
    const parts: Buffer[] = [];
    request.on('data', (part: Buffer) => parts.push(part));
    request.on('end', () => void answerEvmRpc(chain, 'simulated', request, Buffer.concat(parts).toString('utf8'), response));
  });
  const port = await listen(server, 0);
  return {
    ...chain,
    url: `http://bursar:simulated@127.0.0.1:${port}/node/eth`,
    stop: async () => {
      await closeServer(server);
      chain.close();
    },
  };
}
