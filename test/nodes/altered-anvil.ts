// A real Ethereum node behind a relay that changes its answers: at first it shows no calls of contracts. And the whole service behind such a relay.
import { afterAll, afterEach, beforeAll, beforeEach } from 'vitest';
import { type Anvil, callData, startAnvil } from '../support/evm/anvil.ts';
import { FORWARDER } from '../support/evm/compiled.ts';
import { type Alteration, openAlteredNode, WITHOUT_TRACES } from '../support/nodes/altered-node.ts';
import { type EvmService, openEvmService } from './evm-service.ts';
import { addressOf, type Owed, type WatchedChain, watchChain } from './watched-chain.ts';

const TIMEOUT = 300_000;
export const ETHER = 10n ** 18n;
type Relay = Awaited<ReturnType<typeof openAlteredNode>>;
/** A call without a payee runs code: with it balances are read. */
export const readsBalances = ({ method, params }: { readonly method: string; readonly params: readonly unknown[] }): boolean =>
  method === 'eth_call' && (params[0] as { readonly to?: string }).to === undefined;

export let anvil: Anvil;
export let relay: Relay;
export let chain: WatchedChain;

/** Each test watches ether anew at a node that shows no calls. */
export function eachAtAnvilWithoutTraces(): void {
  beforeAll(async () => {
    anvil = await startAnvil();
    relay = await openAlteredNode(anvil.url);
  }, TIMEOUT);
  afterAll(async () => {
    relay?.close();
    await anvil?.remove();
  });
  beforeEach(async () => {
    relay.alter(WITHOUT_TRACES);
    await watchAnew();
  });
  afterEach(() => chain?.close());
}
/** Watches ether, with nothing known. */
export async function watchAnew(): Promise<void> {
  chain = await watchChain('ETH', relay.url);
  await chain.catchUp();
}

/** A contract pays an address in one of its ways. */
export const call = (name: string, owed: Owed, value = ETHER) =>
  anvil.send({ to: anvil.forwarder, value, input: callData(FORWARDER, name, addressOf(owed)) });
export const mined = async (owed: Owed): Promise<readonly bigint[]> =>
  (await chain.facts(owed)).filter(({ state }) => state === 'mined').map(({ amount }) => amount);

/** The whole service at a node whose answers are changed: `alter` changes them again, and `pay` has a contract pay an address. */
export async function openAlteredService(alteration: Alteration) {
  let at: Relay | null = null;
  const service: EvmService = await openEvmService({
    through: async (url) => {
      at = await openAlteredNode(url);
      at.alter(alteration);
      return at.url;
    },
  });
  return {
    service,
    alter: (how: Alteration) => at?.alter(how),
    url: (): string => (at as Relay).url,
    pay: (address: string, value: bigint) =>
      service.anvil.send({ to: service.anvil.forwarder, value, input: callData(FORWARDER, 'halves(address)', address) }),
    async close(): Promise<void> {
      await service.close();
      at?.close();
    },
  };
}
