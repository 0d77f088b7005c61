// How a transaction of ours on Ethereum's chain ended, whose its outputs were, and what a token says of a payee.

/**
 * `paid`: it did what it asks for (a token's transfer: its event says exactly that); `failed`: it changed nothing but its sender's nonce and
 * ether; `unclear`: it succeeded, and its events say something else. `gasPaid` in wei.
 */
export type EvmOutcome = { readonly result: 'paid' | 'failed' | 'unclear'; readonly gasPaid: bigint };

export type TokenPayees = {
  /**
   * Why nothing can be paid to an address (0x and 40 digits) now, as one sentence without a full stop; null when nothing is known against it.
   * @throws Refusal currency_unavailable when no node answers
   */
  problem(address: string): Promise<string | null>;
};

/** Whether what an output is of was its sender's: what a contract has sent on was not (`sentOn`). */
export const isOfSender = ({ sentOn }: { readonly sentOn?: true }): boolean => sentOn !== true;
