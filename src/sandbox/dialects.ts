// What differs between the simulated coins: genesis, the faucet's hoard, policy and the manner of the reference node's JSON-RPC. One more
// UTXO coin is a row here. Read by the chain, the faucet and the RPC of this room.
import type { UtxoCode } from '../core/currency.ts';

export type Dialect = {
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
  /** Whether the block's hash itself must meet the target; scrypt coins prove their work with another hash, which nobody here checks. */
  readonly workIsBlockHash: boolean;
  readonly blockVersion: number;
  readonly transactionVersion: number;
  /** Regtest: what block 1 to `halvingBlocks` pay to their miner; halves after each such span. */
  readonly subsidyMinor: bigint;
  readonly halvingBlocks: number;
  /** Block 1 pays the faucet this many outputs of this much. */
  readonly faucet: { readonly outputs: number; readonly eachMinor: bigint };
  /** What the faucet pays, and what the node relays at least, in minor units per 1,000 virtual bytes. */
  readonly faucetFeePerKvb: bigint;
  readonly relayFeePerKvb: bigint;
  /** Outputs that cost more to spend than they hold, at this rate, are dust (Bitcoin Core's GetDustThreshold). */
  readonly dustFeePerKvb: bigint;
  /** Whether sendrawtransaction lets a higher fee replace: Bitcoin Core 28+ always, Litecoin Core not as it is delivered. */
  readonly replacement: 'full' | 'none';
  readonly rpc: {
    readonly version: number;
    readonly subversion: string;
    readonly protocol: number;
    /** JSON-RPC 2.0 requests are answered in 2.0 manner (Bitcoin Core 28+). */
    readonly jsonRpc2: boolean;
    /** scriptPubKey has `address`, or `addresses` with `reqSigs` as Bitcoin Core had before 22. */
    readonly addresses: 'one' | 'list';
    /** Blocks tell `target`, transactions `fee`, getblock 3 `prevout`, warnings are a list. */
    readonly modern: boolean;
    /** Every input and output says `ismweb`. */
    readonly mwebFlags: boolean;
  };
};

const REGTEST_BITS = 0x207fffff;

const ROWS: readonly Dialect[] = [
  {
    code: 'BTC',
    path: 'btc',
    genesis: {
      version: 1,
      time: 1296688602,
      bits: REGTEST_BITS,
      nonce: 2,
      coinbaseText: 'The Times 03/Jan/2009 Chancellor on brink of second bailout for banks',
      coinbaseKey:
        '04678afdb0fe5548271967f1a67130b7105cd6a828e03909a67962e0ea1f61deb649f6bc3f4cef38c4f35504e51ec112de5c384df7ba0b8d578a4c702b6bf11d5f',
      minor: 50_0000_0000n,
    },
    workIsBlockHash: true,
    blockVersion: 0x20000000,
    transactionVersion: 2,
    subsidyMinor: 50_0000_0000n,
    halvingBlocks: 150,
    faucet: { outputs: 1000, eachMinor: 10_000_0000_0000n },
    faucetFeePerKvb: 10_000n,
    relayFeePerKvb: 1_000n,
    dustFeePerKvb: 3_000n,
    replacement: 'full',
    rpc: {
      version: 290300,
      subversion: '/Satoshi:29.3.0/',
      protocol: 70016,
      jsonRpc2: true,
      addresses: 'one',
      modern: true,
      mwebFlags: false,
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
      coinbaseKey:
        '040184710fa689ad5023690c80f3a49c8f13f8d45b8c857fbcbc8bc4a8e4d3eb4b10f4d4604fa08dce601aaf0f470216fe1b51850b4acf21b179c45070ac7b03a9',
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
    replacement: 'none',
    rpc: {
      version: 210201,
      subversion: '/LitecoinCore:0.21.2.1/',
      protocol: 70016,
      jsonRpc2: false,
      addresses: 'list',
      modern: false,
      mwebFlags: true,
    },
  },
];

/** The coins that the sandbox simulates, by code. */
export const DIALECTS: ReadonlyMap<UtxoCode, Dialect> = new Map(ROWS.map((row) => [row.code, row]));
