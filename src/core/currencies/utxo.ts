// What a currency of Bitcoin's family needs besides its row: the form of its addresses and keys, what its blocks can hold, which output
// scripts only our key can spend on its chain, and how to ask its node.

/** The kinds of output script that our addresses have. */
export type ScriptKind = 'p2pkh' | 'p2wpkh';

export type ByNetwork<T> = Record<'mainnet' | 'testnet' | 'regtest', T>;

/** Version bytes and prefixes of one network (chainparams of the currency's reference node; BIP173 hrp; CashAddr prefix). */
export type AddressParameters = {
  readonly bech32: string | null;
  readonly pubKeyHash: number;
  readonly scriptHash: number;
  readonly wif: number;
  readonly cashaddr: string | null;
  /** A version byte that P2SH addresses had in the past and that the currency's nodes still accept. */
  readonly legacyScriptHash?: number;
};

/** A form of extended keys besides BIP32's xpub and tpub (SLIP-132, or the currency's own chainparams). */
export type ExtendedKeyForm = {
  readonly form: string;
  readonly public: number;
  readonly private: number;
  /** True for mainnet, false for all test networks. */
  readonly mainnet: boolean;
};

/** What differs between the JSON-RPC interfaces of the nodes, as far as we call them. */
export type UtxoDialect = {
  /** The second parameter of getblock that asks for the raw bytes; Dogecoin Core accepts only a boolean. */
  readonly rawBlock: 0 | false;
  /** getrawtransaction reports InstantSend locks and ChainLocks (Dash Core). */
  readonly locks: boolean;
  /** getdsproof reports double-spend proofs (BCHN; bchd refuses it). */
  readonly doubleSpendProofs: boolean;
};

/**
 * What our receiving addresses are: the form of their text, of their scripts and of the signatures that spend them. Whatever depends on it
 * names every kind, so that a new one does not compile until each place knows it.
 */
export type OwnAddressKind = 'p2wpkh' | 'p2pkh' | 'cashaddr-p2pkh';

/** What a currency of Bitcoin's family needs besides its row. */
export type UtxoParameters = {
  /** BIP44 purpose and SLIP-44 coin type of the account path `m/purpose'/coin'/0'`; outside mainnet the coin type is 1 (SLIP-44). */
  readonly purpose: 84 | 44;
  readonly slip44: number;
  readonly addressKind: OwnAddressKind;
  readonly address: ByNetwork<AddressParameters>;
  /** Hash of block 0 in display order; a node that answers another hash is on the wrong network. */
  readonly genesis: ByNetwork<string>;
  /**
   * On mainnet, for a currency whose chain shares its first blocks with other currencies': for each of them the first block that only this
   * chain has (a checkpoint of the reference nodes), the lowest first.
   */
  readonly splits?: readonly { readonly height: number; readonly hash: string }[];
  /** What a block of this chain can hold besides plain transactions; the parser refuses what is not listed here. */
  readonly blockFeatures: {
    readonly segwit: boolean;
    readonly mweb: boolean;
    /** Headers with version bit 0x100 carry another chain's proof of work (merged mining). */
    readonly auxpow: boolean;
    /** DIP2: the upper half of the version is a type; types above 0 carry a payload behind the lock time. */
    readonly specialTransactions: boolean;
    /** CHIP-2022-02 CashTokens: an output script may begin with a token. */
    readonly tokens: boolean;
    /**
     * MAX_MONEY of the reference node (amount.h), in minor units: no output may be above it. Dogecoin's supply has no cap, only each output
     * has.
     */
    readonly maxMoney: bigint;
    /**
     * The script kinds that only our key can spend on this chain. A witness program is one of them only where segwit (BIP141) is in force:
     * elsewhere anybody or nobody can spend it. A payment to any other script of ours is not ours.
     */
    readonly protectedScripts: readonly ScriptKind[];
    /** The hash of the 80 header bytes that identifies a block. */
    readonly headerHash: 'sha256d' | 'x11';
  };
  /** What proves a block's work: the hash that identifies it, or scrypt (of its parent's header where it was mined with another chain's). */
  readonly work: {
    readonly hash: 'header' | 'scrypt';
    readonly merged: boolean;
    /** powLimit of mainnet, as nBits: no target is easier. */
    readonly limitBits: number;
  };
  /** What a transaction of ours pays at least and at most, in minor units per 1,000 virtual bytes: what miners take, and what no mistake exceeds. */
  readonly feeRates: { readonly least: bigint; readonly highest: bigint };
  readonly coinbaseMaturity: number;
  readonly blockSeconds: number;
  /** About the size of the largest block that its rules allow. */
  readonly blockBytes: number;
  readonly dialect: UtxoDialect;
  readonly extendedKeys: readonly ExtendedKeyForm[];
  /** Prefixes of addresses that look like segwit's but cannot be paid on the chain itself (Litecoin's MWEB). */
  readonly unpayablePrefixes: readonly string[];
};

/** Bitcoin Core's. */
export const PLAIN_DIALECT: UtxoDialect = { rawBlock: 0, locks: false, doubleSpendProofs: false };

/** One and 500 satoshis a virtual byte: the relay fee of Bitcoin Core and most of its descendants. */
export const PLAIN_FEES: UtxoParameters['feeRates'] = { least: 1_000n, highest: 500_000n };

/** SLIP-132: the prefixes of P2SH-P2WPKH and P2WPKH accounts of Bitcoin and Litecoin. */
export const SEGWIT_KEYS: readonly ExtendedKeyForm[] = [
  { form: 'ypub', public: 0x049d7cb2, private: 0x049d7878, mainnet: true },
  { form: 'zpub', public: 0x04b24746, private: 0x04b2430c, mainnet: true },
  { form: 'upub', public: 0x044a5262, private: 0x044a4e28, mainnet: false },
  { form: 'vpub', public: 0x045f1cf6, private: 0x045f18bc, mainnet: false },
];

/** Version bytes of an address; `bech32` and `cashaddr` are prefixes, null where the chain has no such addresses. */
export function addresses(
  pubKeyHash: number,
  scriptHash: number,
  wif: number,
  others: { readonly bech32?: string; readonly cashaddr?: string; readonly legacyScriptHash?: number } = {},
): AddressParameters {
  const { bech32 = null, cashaddr = null, ...rest } = others;
  return { bech32, pubKeyHash, scriptHash, wif, cashaddr, ...rest };
}

export const PLAIN_BLOCKS: UtxoParameters['blockFeatures'] = {
  segwit: false,
  mweb: false,
  auxpow: false,
  specialTransactions: false,
  tokens: false,
  maxMoney: 21_000_000n * 10n ** 8n,
  protectedScripts: ['p2pkh'],
  headerHash: 'sha256d',
};

/** Bitcoin's since BIP141. */
export const SEGWIT_BLOCKS: UtxoParameters['blockFeatures'] = {
  ...PLAIN_BLOCKS,
  segwit: true,
  protectedScripts: ['p2pkh', 'p2wpkh'],
};

/** The form of each kind's scripts: their length, and the bytes (hex) before and after a hash of 20 bytes. */
export const SCRIPT_FORMS: Readonly<
  Record<ScriptKind, { readonly bytes: number; readonly head: string; readonly tail: string }>
> = {
  p2pkh: { bytes: 25, head: '76a914', tail: '88ac' },
  p2wpkh: { bytes: 22, head: '0014', tail: '' },
};

/**
 * Whether only our key can spend an output on a chain.
 * @param script the output script of one of our addresses, hex
 */
export function isProtected({ protectedScripts }: UtxoParameters['blockFeatures'], script: string): boolean {
  return protectedScripts.some((kind) => {
    const { bytes, head, tail } = SCRIPT_FORMS[kind];
    return script.length === bytes * 2 && script.startsWith(head) && script.endsWith(tail);
  });
}
