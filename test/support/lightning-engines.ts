// The Lightning nodes that the tests run on: the simulated one, and two real LND where they are to be had. Each with somebody who pays.
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { RECEIVING } from '../../src/outside/lightning/lnd.ts';
import type { LndTarget } from '../../src/outside/lightning/lnd-rest.ts';
import { type LightningNode, openLightningNode } from '../../src/sandbox/lightning/lightning-node.ts';
import { serveLightning } from '../../src/sandbox/lightning/lnd-server.ts';
import { closeServer, listen } from '../../src/sandbox/server.ts';
import { startLndPair } from './lnd.ts';

export type LightningEngine = {
  readonly name: string;
  /** With a macaroon for what receiving needs. */
  target(): LndTarget;
  /** Somebody pays an invoice; whether he could. */
  pay(paymentRequest: string, paymentHash: string): Promise<boolean>;
  /** Ends the node as a crash does, and starts it again. */
  restart(): Promise<void>;
  close(): Promise<void>;
};

export type SimulatedEngine = LightningEngine & { node(): LightningNode };

/** @param now the clock of the node */
export async function simulatedEngine(now: () => number = () => Date.now()): Promise<SimulatedEngine> {
  const folder = mkdtempSync(join(tmpdir(), 'bursar-ln-'));
  const log = (line: string, error: Error) => console.error(line, error);
  const open = () => {
    const node = openLightningNode(folder, now);
    return { node, served: serveLightning(node, { folder, now, log }) };
  };
  let { node, served } = open();
  let port = await listen(served.server, 0);
  const stop = async (): Promise<void> => {
    await closeServer(served.server);
    node.close();
  };
  return {
    name: 'the simulated node',
    node: () => node,
    target: () => ({ url: `https://127.0.0.1:${port}`, certificate: served.certificate, macaroon: served.macaroon }),
    async pay(_request, paymentHash) {
      const found = node.find(paymentHash);
      return found !== null && node.pay(paymentHash, found.valueMsat, 1).paid;
    },
    async restart() {
      await stop();
      ({ node, served } = open());
      port = await listen(served.server, port);
    },
    async close() {
      await stop();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

export async function lndEngine(): Promise<LightningEngine> {
  const pair = await startLndPair();
  const macaroon = await pair.shop.bake(RECEIVING);
  return {
    name: 'LND',
    target: () => ({ ...pair.shop.target, macaroon }),
    pay: async (request) => (await pair.pay(request)) === 'SUCCEEDED',
    async restart() {
      await pair.shop.kill();
      await pair.shop.start();
    },
    close: () => pair.remove(),
  };
}

/** On Debian the real nodes must be there; elsewhere their part is skipped. */
export const HAS_LND = existsSync('/etc/debian_version');
