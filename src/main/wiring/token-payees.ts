// Asks Ethereum's nodes for the API what USDT's contract says of a payee. The client is loaded with the first payout that needs it: it is the
// only thing that the API asks a node of a chain.

import type { TokenPayees } from '../../core/evm/outcome.ts';
import { PAYOUT_UNITS } from '../../core/payouts/units.ts';
import { Refusal } from '../../core/refusal.ts';
import { configuredNodes, tokenContractAtNodes } from '../config/configured-nodes.ts';
import type { Config } from '../config/variables.ts';
import { sandboxEndpoint, sandboxNodeUrl } from '../sandbox/paths.ts';

/** A merchant waits for the answer. */
const SILENCE_MS = 5_000;
const CURRENCY = PAYOUT_UNITS.usdt.code;

/**
 * Says of an Ethereum address whether a USDT payout to it would be lost, by asking the node; connections are opened when they are first
 * needed.
 */
export function tokenPayeesOf(config: Config): TokenPayees & { close(): Promise<void> } {
  const sources = new Map<string, { problem(address: string): Promise<string | null>; close(): Promise<void> }>();

  async function urls(): Promise<readonly string[]> {
    if (config.network !== 'sandbox') return configuredNodes(config).get(CURRENCY) ?? [];
    return [sandboxNodeUrl(await sandboxEndpoint(config.dataFolder), CURRENCY)];
  }
  async function opened(url: string) {
    const before = sources.get(url);
    if (before !== undefined) return before;
    const [{ createEvmSource }, { createEvmSending }] = await Promise.all([
      import('../../outside/evm/source.ts'),
      import('../../outside/evm/paying.ts'),
    ]);
    const source = createEvmSource({ url, silenceMs: SILENCE_MS });
    const sending = createEvmSending(source, tokenContractAtNodes(config));
    const made = {
      async problem(address: string) {
        const said = await sending.payeeProblem(null, address);
        // that nothing can be sent now is no fault of the payee: the payout waits
        return said?.isPayee === true ? said.what : null;
      },
      close: () => source.close(),
    };
    sources.set(url, made);
    return made;
  }

  return {
    async problem(address) {
      for (const url of await urls()) {
        try {
          return await (await opened(url)).problem(address);
        } catch (error) {
          if ((error as { state?: unknown }).state === undefined) throw error;
        }
      }
      throw new Refusal('currency_unavailable', {
        message: `No Ethereum node answers: payouts in ${CURRENCY} cannot be taken now.`,
      });
    },
    async close() {
      await Promise.all([...sources.values()].map((one) => one.close()));
    },
  };
}
