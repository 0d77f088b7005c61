// What differs between the simulated currencies: genesis, the faucet's outputs, mempool policy and the details of the reference node's
// JSON-RPC. Another currency of Bitcoin's family is a row here.
import { type UtxoCode, utxoRow } from '../../core/currency.ts';

type Row = {
  readonly code: UtxoCode;
  /** Last part of the node's URL: /node/<path>. */
  readonly path: string;
  readonly genesis: {
    readonly version: number;
    readonly time: number;
    readonly bits: number;
    readonly nonce: number;
    readonly coinbaseText: string;
    readonly coinbaseKey: string;
    readonly minor: bigint;
  };
  /** Whether the block's hash itself must meet the target; scrypt chains prove their work with another hash, which nobody checks here. */
  readonly workIsBlockHash: boolean;
  readonly blockVersion: number;
  readonly transactionVersion: number;
  /** Regtest: what blocks 1 to `halvingBlocks` pay to their miner; halved after each such span. */
  readonly subsidyMinor: bigint;
  readonly halvingBlocks: number;
  /** Block 1 pays the faucet this many outputs of this much. */
  readonly faucet: { readonly outputs: number; readonly eachMinor: bigint };
  /** The fee that the faucet pays, and the least that the node relays, in minor units per 1,000 virtual bytes. */
  readonly faucetFeePerKvb: bigint;
  readonly relayFeePerKvb: bigint;
  /** Outputs that cost more to spend than they hold, at this rate, are dust (Bitcoin Core's GetDustThreshold). */
  readonly dustFeePerKvb: bigint;
  /** An output below this is refused, whatever it costs to spend; 0 = no such rule (Dogecoin Core). */
  readonly leastOutputMinor: bigint;
  /** Each output below this adds the same amount to the least fee; 0 = no such rule (Dogecoin Core). */
  readonly smallOutputMinor: bigint;
  /** What signatures sign: BIP143 for witnesses (else the digest before segwit), or Bitcoin Cash's with SIGHASH_FORKID. */
  readonly sighash: 'bip143' | 'forkid' | 'legacy';
  /** Blocks hold their transactions in the order of their ids (Bitcoin Cash, CTOR). */
  readonly ordered: boolean;
  /** Quorums lock each transaction (InstantSend) and each block (ChainLocks) at once, unless a fault prevents it (Dash). */
  readonly quorums: boolean;
  /**
   * Whether sendrawtransaction accepts a replacement with a higher fee: Bitcoin Core 28+ always, Dogecoin Core for transactions that signal
   * it (BIP125), Litecoin Core not by default, Dash Core and BCHN never.
   */
  readonly replacement: 'full' | 'optin' | 'none';
  readonly rpc: {
    readonly version: number;
    readonly subversion: string;
    readonly protocol: number;
    /** JSON-RPC 2.0 requests get 2.0 answers (Bitcoin Core 28+). */
    readonly jsonRpc2: boolean;
    /** scriptPubKey has `address`, or `addresses` with `reqSigs` as Bitcoin Core had before 22. */
    readonly addresses: 'one' | 'list';
    /** Blocks have `target`, transactions `fee`, getblock 3 `prevout`, warnings are a list. */
    readonly modern: boolean;
    /** Every input and output has `ismweb`. */
    readonly mwebFlags: boolean;
    /** Where a rejection has the number that Bitcoin Core gave until 0.17: before the reason (Dogecoin Core), after it (BCHN), or nowhere. */
    readonly rejectCodes: 'before' | 'behind' | 'none';
    /** getblock takes a boolean only (Dogecoin Core). */
    readonly blockFlag: boolean;
    /** Methods that this node lacks although others have them. */
    readonly without: readonly string[];
  };
};

export type Dialect = Row & {
  readonly segwit: boolean;
  readonly headerHash: 'sha256d' | 'x11';
  /** Blocks carry another chain's proof of work. */
  readonly mergeMined: boolean;
};

const REGTEST_BITS = 0x207fffff;

const CORE_RULES = {
  leastOutputMinor: 0n,
  smallOutputMinor: 0n,
  sighash: 'bip143',
  ordered: false,
  quorums: false,
} as const;
/** The key in the genesis coinbase of Litecoin, and of all chains made after it. */
const LITECOIN_KEY =
  '040184710fa689ad5023690c80f3a49c8f13f8d45b8c857fbcbc8bc4a8e4d3eb4b10f4d4604fa08dce601aaf0f470216fe1b51850b4acf21b179c45070ac7b03a9';
const BITCOIN_GENESIS = {
  version: 1,
  time: 1296688602,
  bits: REGTEST_BITS,
  nonce: 2,
  coinbaseText: 'The Times 03/Jan/2009 Chancellor on brink of second bailout for banks',
  coinbaseKey:
    '04678afdb0fe5548271967f1a67130b7105cd6a828e03909a67962e0ea1f61deb649f6bc3f4cef38c4f35504e51ec112de5c384df7ba0b8d578a4c702b6bf11d5f',
  minor: 50_0000_0000n,
} as const;
/** Methods that Bitcoin Core 0.14 did not have yet. */
const SINCE_0_14 = ['getzmqnotifications', 'testmempoolaccept', 'getindexinfo', 'generateblock'];

const ROWS: readonly Row[] = [
  {
    code: 'BTC',
    path: 'btc',
    genesis: BITCOIN_GENESIS,
    workIsBlockHash: true,
    blockVersion: 0x20000000,
    transactionVersion: 2,
    subsidyMinor: 50_0000_0000n,
    halvingBlocks: 150,
    faucet: { outputs: 1000, eachMinor: 10_000_0000_0000n },
    faucetFeePerKvb: 10_000n,
    relayFeePerKvb: 1_000n,
    dustFeePerKvb: 3_000n,
    ...CORE_RULES,
    replacement: 'full',
    rpc: {
      version: 290300,
      subversion: '/Satoshi:29.3.0/',
      protocol: 70016,
      jsonRpc2: true,
      addresses: 'one',
      modern: true,
      mwebFlags: false,
      rejectCodes: 'none',
      blockFlag: false,
      without: [],
    },
  },
  {
    code: 'LTC',
    path: 'ltc',
    genesis: {
      version: 1,
      time: 1296688602,
      bits: REGTEST_BITS,
      nonce: 0,
      coinbaseText: 'NY Times 05/Oct/2011 Steve Jobs, Apple’s Visionary, Dies at 56',
      coinbaseKey: LITECOIN_KEY,
      minor: 50_0000_0000n,
    },
    workIsBlockHash: false,
    blockVersion: 0x20000000,
    transactionVersion: 2,
    subsidyMinor: 50_0000_0000n,
    halvingBlocks: 150,
    faucet: { outputs: 1000, eachMinor: 40_000_0000_0000n },
    faucetFeePerKvb: 100_000n,
    relayFeePerKvb: 1_000n,
    dustFeePerKvb: 30_000n,
    ...CORE_RULES,
    replacement: 'none',
    rpc: {
      version: 210201,
      subversion: '/LitecoinCore:0.21.2.1/',
      protocol: 70016,
      jsonRpc2: false,
      addresses: 'list',
      modern: false,
      mwebFlags: true,
      rejectCodes: 'none',
      blockFlag: false,
      without: [],
    },
  },
  {
    code: 'BCH',
    path: 'bch',
    genesis: BITCOIN_GENESIS,
    workIsBlockHash: true,
    blockVersion: 0x20000000,
    transactionVersion: 2,
    subsidyMinor: 50_0000_0000n,
    halvingBlocks: 150,
    faucet: { outputs: 1000, eachMinor: 10_000_0000_0000n },
    faucetFeePerKvb: 2_000n,
    relayFeePerKvb: 1_000n,
    dustFeePerKvb: 3_000n,
    ...CORE_RULES,
    sighash: 'forkid',
    ordered: true,
    replacement: 'none',
    rpc: {
      version: 28000100,
      subversion: '/Bitcoin Cash Node:28.0.1(EB32.0)/',
      protocol: 70016,
      jsonRpc2: false,
      addresses: 'list',
      modern: false,
      mwebFlags: false,
      rejectCodes: 'behind',
      blockFlag: false,
      without: ['estimatesmartfee', 'generateblock'],
    },
  },
  {
    code: 'DASH',
    path: 'dash',
    genesis: {
      version: 1,
      time: 1417713337,
      bits: REGTEST_BITS,
      nonce: 1096447,
      coinbaseText: 'Wired 09/Jan/2014 The Grand Experiment Goes Live: Overstock.com Is Now Accepting Bitcoins',
      coinbaseKey: LITECOIN_KEY,
      minor: 50_0000_0000n,
    },
    // on the real chain it is: here nobody checks the work, and X11 is expensive
    workIsBlockHash: false,
    blockVersion: 0x20000000,
    transactionVersion: 2,
    subsidyMinor: 50_0000_0000n,
    halvingBlocks: 150,
    faucet: { outputs: 1000, eachMinor: 100_000_0000_0000n },
    faucetFeePerKvb: 2_000n,
    relayFeePerKvb: 1_000n,
    dustFeePerKvb: 3_000n,
    ...CORE_RULES,
    sighash: 'legacy',
    quorums: true,
    replacement: 'none',
    rpc: {
      version: 220103,
      subversion: '/Dash Core:22.1.3/',
      protocol: 70235,
      jsonRpc2: false,
      addresses: 'list',
      modern: false,
      mwebFlags: false,
      rejectCodes: 'none',
      blockFlag: false,
      without: ['generateblock'],
    },
  },
  {
    code: 'DOGE',
    path: 'doge',
    genesis: {
      version: 1,
      time: 1296688602,
      bits: REGTEST_BITS,
      nonce: 2,
      coinbaseText: 'Nintondo',
      coinbaseKey: LITECOIN_KEY,
      minor: 88_0000_0000n,
    },
    workIsBlockHash: false,
    // version 4, merged mining, chain 0x62
    blockVersion: 0x00620104,
    transactionVersion: 1,
    subsidyMinor: 500_000_0000_0000n,
    halvingBlocks: 150,
    faucet: { outputs: 1000, eachMinor: 10_000_000_0000_0000n },
    faucetFeePerKvb: 2_000_000n,
    relayFeePerKvb: 100_000n,
    dustFeePerKvb: 0n,
    ...CORE_RULES,
    leastOutputMinor: 100_000n,
    smallOutputMinor: 1_000_000n,
    sighash: 'legacy',
    replacement: 'optin',
    rpc: {
      version: 1140900,
      subversion: '/Shibetoshi:1.14.9/',
      protocol: 70015,
      jsonRpc2: false,
      addresses: 'list',
      modern: false,
      mwebFlags: false,
      rejectCodes: 'before',
      blockFlag: true,
      without: SINCE_0_14,
    },
  },
];

/** The currencies that the sandbox simulates, by code. */
export const DIALECTS: ReadonlyMap<UtxoCode, Dialect> = new Map(
  ROWS.map((row) => {
    const { segwit, headerHash, auxpow } = utxoRow(row.code).utxo.blockFeatures;
    return [row.code, { ...row, segwit, headerHash, mergeMined: auxpow }];
  }),
);
