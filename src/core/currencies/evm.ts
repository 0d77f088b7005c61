// What differs between currencies of Ethereum's family: ether, and tokens of a contract (ERC-20).

type ByNetwork<T> = { readonly mainnet: T; readonly testnet: T; readonly regtest: T };

export type EvmParameters = {
  /** BIP44: m/purpose'/slip44'/account'. */
  readonly purpose: 44;
  readonly slip44: 60;
  /** Ether and each token have accounts of their own, so that no address is ever given to two transactions. */
  readonly account: number;
  /** EIP-155: what `eth_chainId` answers. */
  readonly chainId: ByNetwork<number>;
  /** Of a token: its contract, in lower case; null where the operator must name it. */
  readonly token: { readonly contract: ByNetwork<string | null> } | null;
  /** Nothing that a block creates for its proposer can be spent later than the rest. */
  readonly coinbaseMaturity: 0;
  readonly blockSeconds: number;
  /** About what a full block, its receipts and its traces take in memory. */
  readonly blockBytes: number;
  readonly extendedKeys: readonly [];
};

/** Of every currency on Ethereum's chain. */
export const ETHEREUM = {
  purpose: 44,
  slip44: 60,
  chainId: { mainnet: 1, testnet: 11_155_111, regtest: 31_337 },
  coinbaseMaturity: 0,
  blockSeconds: 12,
  blockBytes: 8_000_000,
  extendedKeys: [],
} as const satisfies Omit<EvmParameters, 'account' | 'token'>;

/**
 * Blocks behind the tip at which a node without the tag `finalized` counts as sure of a block: two epochs. A block this far behind has one
 * confirmation more.
 */
export const FINALIZED_BEHIND = 64;

/**
 * No block becomes final nearer to the tip, whatever a node says: two epochs with blocks in two thirds of their slots are 43. A node that
 * names its tip makes nothing final at one confirmation.
 */
export const FINAL_AT_LEAST_BEHIND = 32;

/**
 * The form of an address among the output scripts of the other chains: three bytes and the 20 of the address. Its first byte is OP_VERIF,
 * which makes every script of Bitcoin's family that holds it unspendable, so it can never be taken for one of theirs.
 */
export const EVM_SCRIPT = { bytes: 23, head: '65766d', tail: '' } as const;

/** @param address 40 hexadecimal digits of either case, with or without 0x */
export function evmScript(address: string): string {
  return EVM_SCRIPT.head + address.slice(-40).toLowerCase();
}

/** The address of such a form, 0x and 40 digits, lower case. @param script hex */
export function evmAddressOf(script: string): string {
  return `0x${script.slice(EVM_SCRIPT.head.length)}`;
}

/**
 * Where a waiting transaction's payment stands until a block says what it was: behind every place of a mined one, because the block may show
 * another amount (a token with a fee on transfers) or none (a call that fails).
 */
export const WAITING_PLACE = 1_000_000;
/** Payments that a block has disproved stand behind the places of all that a block or a waiting transaction can show. */
export const DISPROVED_PLACE = 2_000_000;
/** Where payments stand that are known by balances only, in the name of their block: here, and the last 30 bits of the address behind it. */
export const BALANCE_PLACE = 2 ** 30;

/** The sender and nonce of a transaction in the place of an input: whatever else has both replaces it. */
export function evmInput(from: string, nonce: number): { readonly txid: string; readonly vout: number } {
  return { txid: from.slice(2).toLowerCase().padStart(64, '0'), vout: nonce };
}

/** Blocks that confirm a payout: the one that holds it counts (behaviour §5). */
export const EVM_CONFIRMATIONS = 12;
/** What a transaction of ours may use and pay, in gas and in wei for each unit of gas. */
export const GAS = {
  /** A plain transfer of ether uses exactly this. */
  plain: 21_000,
  /** A token's transfer to an address that has none yet; what is held for it. */
  token: 100_000,
  /** The most that the signer lets a transaction use. */
  most: 200_000,
  /** The most that the signer lets a unit cost: 2,000 gwei. */
  mostFee: 2_000_000_000_000n,
  /** The least that is offered: a tenth of a gwei. */
  leastFee: 100_000_000n,
} as const;
