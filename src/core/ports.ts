// Types of everything outside the service (nodes, price feeds, clocks): exchangeable and not trusted. The adapters in outside/ implement
// them; flow and worker reach them through Context.ports.
import type { BlockRef, InnerWord, Unconfirmed } from './block-ref.ts';
import type { CurrencyCode, UtxoCode } from './currency.ts';
import type { EvmOutcome, TokenPayees } from './evm/outcome.ts';
import type { LightningPort } from './lightning/port.ts';
import type { NodeTroubleState } from './node-states.ts';
import type { Outbound } from './outbound.ts';
import type { IntentKey } from './payouts/intent.ts';
import type { Destinations } from './payouts/validation.ts';
import type { RateFeed } from './rate-feed.ts';
import type { RowSeals } from './row-seals.ts';
import type { Passwords, Tokens } from './sign-in-ports.ts';

export type { NodeTroubleState } from './node-states.ts';
export type { Passwords, TokenClaims, TokenKind, Tokens, VerificationKey } from './sign-in-ports.ts';

export type Clock = {
  /** Milliseconds since 1970, on the service's clock (in the sandbox it can be moved forward). */
  now(): number;
  /** What has passed, on a clock that moves forward with the other and that nobody sets, within a process; without it setting the clock looks like time. */
  steady?(): number;
  /** By how much it was moved forward against the system's; without it nobody can compare it with the clock of another machine. */
  movedMs?(): number;
};

/** Cryptographic randomness. */
export type Rng = { bytes(length: number): Uint8Array };
/** The state of a node. Only a `ready` one is read. */
export type NodeCondition =
  | {
      readonly state: 'ready';
      readonly height: number;
      readonly hash: string;
      /** Of the block below the tip, where the node has said it in the same answer. */
      readonly previousHash?: string;
      readonly tipTimeMs: number;
      readonly peers: number;
      /** Which of several nodes we read (host and port); absent where there is only one. */
      readonly node?: string;
      /** Whether our nodes agree about the chain; absent where there is only one. */
      readonly agreement?: NodeAgreement;
      /** What is wrong with the other nodes that could not take this one's place, each named. */
      readonly others?: readonly string[];
      /** A pruned node has no block below this height. */
      readonly prunedBelow?: number;
      /** The txids of its mempool right before it answered, when we asked for them. */
      readonly mempool?: readonly string[];
    }
  | {
      readonly state: NodeTroubleState;
      readonly reason: string;
      readonly height: number | null;
    };

/**
 * The result of comparing several nodes. `agreed`: two of them hold this block, the highest that both have. `contested`: at a height that
 * both have they hold different blocks. `unknown`: no two could be asked, so the last result still holds.
 */
export type NodeAgreement =
  | { readonly state: 'agreed'; readonly height: number; readonly hash: string }
  | { readonly state: 'unknown' }
  | {
      readonly state: 'contested';
      /** Names the nodes, the height and what each holds there. */
      readonly reason: string;
    };

export type Outpoint = { readonly txid: string; readonly vout: number };
/** An output to a watched script that carries a CashToken (BCH). Neither the token nor its BCH is a payment to us: it is only reported. */
export type TokenOutput = {
  readonly vout: number;
  /** The output script behind the token, hex. */
  readonly script: string;
  readonly amountMinor: bigint;
  /** Id of the token's category, display order, hex. */
  readonly category: string;
  /** Fungible units; 0 when there is only an NFT. */
  readonly tokens: bigint;
  readonly nft: boolean;
};

export type OutputFacts = {
  readonly vout: number;
  readonly script: string;
  readonly amountMinor: bigint;
  /**
   * It leaves Litecoin's extension block. Waiting, a kernel of this transaction asks for it (`vout` counts on from its outputs), in a block an
   * output of the HogEx pays it: only script and amount are the same in both. */
  readonly pegOut?: true;
  /** Ether that contracts sent in the block, known by balances only: which transaction it was nobody can say, so as with a peg-out. */
  readonly byBalance?: true;
  /** Of a token: another than who has sent the transaction has paid it, as a contract that was called does. */
  readonly sentOn?: true;
};

/** One transaction of a block or the mempool that touches something watched. Hashes in display order, hex. */
export type TransactionFacts = {
  readonly txid: string;
  readonly coinbase: boolean;
  /**
   * Every input; empty for a coinbase, a Dash quorum's payment from the credit pool, and Litecoin's HogEx: what that spends is no payment's.
   */
  readonly inputs: readonly Outpoint[];
  /** Only the outputs to watched scripts (hex). */
  readonly outputs: readonly OutputFacts[];
  /** Only the watched outpoints that it spends. */
  readonly spends: readonly Outpoint[];
  /** How a transaction of an account ended that spends something watched (Ethereum), in a block only. */
  readonly outcome?: EvmOutcome;
  /** Outputs to watched scripts that carry a token, where there are any: never among `outputs`. */
  readonly tokenOutputs?: readonly TokenOutput[];
  /**
   * Outputs to watched scripts that our key does not control on this chain (a witness program without segwit), where there are any: never
   * among `outputs`, because whoever mines the next block can take them. They are only recorded.
   */
  readonly unprotectedOutputs?: readonly OutputFacts[];
};

/** A transaction of the mempool that cannot be read, and why. */
export type UnreadTransaction = { readonly txid: string; readonly reason: string };
export type BlockFacts = {
  readonly hash: string;
  readonly previousHash: string;
  /** The header's time. */
  readonly timeMs: number;
  readonly transactionCount: number;
  /** In block order, only those that touch something watched. */
  readonly touched: readonly TransactionFacts[];
  /** Where not all calls of a block are shown (Ethereum): ether that contracts sent was looked for by what addresses hold, or could not be. */
  readonly inner?: 'by_balance' | 'unseen';
  /** Where several nodes are configured (Ethereum): why not two show what it pays to watched scripts, what each knows of contracts, how many do. */
  readonly unconfirmed?: Unconfirmed;
  readonly innerWords?: readonly InnerWord[];
  readonly innerSeenBy?: number;
};

/** What the scanner asks for each output and input of a block; must answer in well under a microsecond and without allocating. */
export type WatchList = {
  /** Whether bytes[start, end) is a watched output script. */
  hasScript(bytes: Uint8Array, start: number, end: number): boolean;
  /** Whether the 36 bytes at start (txid in wire order, index little-endian) are a watched outpoint. */
  hasOutpoint(bytes: Uint8Array, start: number): boolean;
  /** The watched output scripts, the newest last, each valid until the next one; absent where the list cannot name them. */
  scripts?(): Iterable<Uint8Array>;
  /**
   * Loads every transaction that was committed until now. The node adapter awaits it after bytes have arrived and before it looks at them:
   * so every address that could be paid before the node sent these bytes is watched.
   */
  fresh(): Promise<void>;
};

/** A lock of our own node's quorums (DASH): of the transaction, or of its block. */
export type ChainLock = 'instantsend' | 'chainlock';

export type MempoolPush = {
  /** A block arrived, or an announcement was lost: look now, at the whole mempool too. */
  readonly onHint: () => void;
  /** Raw transactions entered the mempool, or are in a new block; some that came just before a hint may be left out. */
  readonly onTransactions: (raws: readonly Uint8Array[]) => void;
};
export type AskedToo = { readonly mempool: boolean };
export type MempoolEntry = {
  /** By the node's clock. */
  readonly atMs: number;
  /** The height of the node's tip at that time; null when it does not say. */
  readonly height: number | null;
};

/**
 * One chain as our own node reports it. Every call may throw NodeTrouble (outside/utxo/node/trouble); none inside a database
 * transaction.
 */
export type ChainPort = {
  readonly currency: CurrencyCode;
  /** @param asked.mempool list the mempool too, in the same request: only for a mempool known to be small */
  condition(asked?: AskedToo): Promise<NodeCondition>;
  /** Hash of the best chain's block at a height; null beyond the tip. */
  hashAt(height: number): Promise<string | null>;
  /** Whether a block is the tip now, in one call; absent: its hash and what is above it are asked for. */
  isTip?(block: BlockRef): Promise<boolean>;
  /** Reads a whole block and checks it (hash against header, txids of hits, Merkle root); throws when anything does not match. */
  readBlock(hash: string, watch: WatchList): Promise<BlockFacts>;
  /** The same at every node of several (Ethereum): what only another one shows is `unconfirmed` too. Absent: one node proves what it shows. */
  readByAll?(hash: string, watch: WatchList): Promise<BlockFacts>;
  /** All txids of the mempool. */
  mempool(): Promise<readonly string[]>;
  /**
   * The facts of those of the transactions that touch something watched. `missing`: not read, because the node says that it does not have
   * them (any more); a txid that is still listed must be requested again. `unread`: neither their bytes nor the node's decoded answer prove
   * what they are; they hold up nothing, are requested again, and the block that includes them settles it.
   */
  readMempoolTransactions(
    txids: readonly string[],
    watch: WatchList,
  ): Promise<{
    readonly missing: readonly string[];
    readonly unread: readonly UnreadTransaction[];
    readonly touched: readonly TransactionFacts[];
  }>;
  /** Facts of a raw transaction that a push brought; null when it touches nothing watched or cannot be read. `watch` must be fresh. */
  readRaw(raw: Uint8Array, watch: WatchList): TransactionFacts | null;
  /**
   * What our node says of the entry of these transactions into its mempool (the node is an observer too), by txid; without those that are
   * no longer there, or of which it does not say.
   */
  mempoolEntries(txids: readonly string[]): Promise<ReadonlyMap<string, MempoolEntry>>;
  /** Those of the transactions that our own node reports as locked (DASH), in the mempool or in a block; empty on every other chain. */
  locks(txids: readonly string[]): Promise<ReadonlyMap<string, ChainLock>>;
  /** Those in the mempool for which our node has a double-spend proof (BCH); empty where the node has none, null where the chain has none. */
  readonly doubleSpendProofs: ((txids: readonly string[]) => Promise<ReadonlySet<string>>) | null;
  /** Hashes of the blocks of a range that pay to one of these scripts, by filters (BIP158; a few do not) or events; null where there are none. */
  blocksPaying?(scripts: readonly Uint8Array[], fromHeight: number, toHeight: number): Promise<readonly string[] | null>;
  /** Subscribes to the node's ZMQ where it has one; null where it has none. */
  subscribe(push: MempoolPush): Promise<PushSubscription | null>;
  /**
   * The highest block that can no longer be replaced, as the chain's own consensus says (Ethereum's `finalized`), at or below the node's tip;
   * null when there is none yet. Absent on chains where only depth counts.
   */
  finalized?(): Promise<BlockRef | null>;
};

/** A chain of Bitcoin's family, on which payouts can be made. */
export type PayingPort = ChainPort & {
  readonly currency: UtxoCode;
  /** The bytes of these transactions of one block, by txid; what is not in it is left out. Only for chains without segwit. */
  minedTransactions(blockHash: string, txids: ReadonlySet<string>): Promise<ReadonlyMap<string, Uint8Array>>;
  /** Sends a signed transaction, to every node where there are several. Throws when it is unknown whether a node has it. */
  send(raw: Uint8Array): Promise<SendAnswer>;
  /** What a transaction must pay to be mined soon: minor units per 1,000 virtual bytes; null when the node does not say. */
  feeRate(): Promise<bigint | null>;
  /** Those of the outputs that the node in use has not as unspent: a block or its mempool spends them, or it does not know what makes them. */
  spentOf(outpoints: readonly Outpoint[]): Promise<readonly Outpoint[]>;
  /** Each node by itself, the one in use first; absent: there is only one. */
  nodes?(): readonly (PayingPort & { readonly name: string })[];
  /**
   * The bytes of a transaction.
   * @param blockHash the block that holds it; null = it is in the mempool
   * @returns null when the node does not show it
   */
  rawTransaction(txid: string, blockHash: string | null): Promise<Uint8Array | null>;
};

/**
 * What a node says of a transaction that it was sent. `accepted`: it has it, now or already; `mined`: it is in a block. The others are
 * refusals, and none proves that the transaction can never be mined: `conflict` and `inputs_missing` (another transaction spends an input,
 * or it was mined and its outputs are spent), `policy` (for example the fee), `invalid` (no node will take these bytes).
 */
export type SendAnswer =
  | { readonly state: 'accepted' | 'mined' }
  | { readonly state: 'conflict' | 'inputs_missing' | 'policy' | 'invalid'; readonly reason: string };

export type PushSubscription = {
  /** Whether we are receiving what the node announces now. */
  isLive(): boolean;
  close(): Promise<void>;
};

/** One of our addresses, its output script, and the index it was derived at. */
export type DerivedAddress = { readonly address: string; readonly script: Uint8Array; readonly index: number };
/** Derives the receiving addresses of one account; `derive` throws UnderivableIndex for an index without a key (chance 2⁻¹²⁷). */
export type AddressDeriver = { readonly currency: CurrencyCode; derive(index: number): DerivedAddress };
export type AddressDerivers = {
  /** The deriver of an account-level public key; throws AccountKeyProblem for a key that is not of this currency and network. */
  of(currency: CurrencyCode, xpub: string): AddressDeriver;
  /** The deriver of the account's own addresses (chain 1): change, and the service's capital. */
  ownOf(currency: CurrencyCode, xpub: string): AddressDeriver;
  /** The same derivation by other libraries: slow, for audits. */
  rederive(currency: CurrencyCode, xpub: string, index: number): Promise<DerivedAddress>;
};

export type Ports = {
  readonly clock: Clock;
  readonly rng: Rng;
  readonly passwords: Passwords;
  readonly tokens: Tokens;
  readonly seals: RowSeals;
  readonly chains: ReadonlyMap<CurrencyCode, ChainPort>;
  /** Null = no Lightning node is configured. */
  readonly lightning: LightningPort | null;
  readonly rateFeeds: readonly RateFeed[];
  readonly addresses: AddressDerivers;
  readonly destinations: Destinations;
  /** What USDT's contract says of a payee; the API's only. */
  readonly tokenPayees?: TokenPayees;
  /** The API's; every other process has one that refuses. */
  readonly intentKey: IntentKey;
  /** Only computes. */
  readonly sealing: Sealing;
  /** The same, for the secrets of webhooks: the API's and the worker's; every other process has one that refuses. */
  readonly webhookSealing: Sealing;
  /** Calls to addresses that merchants and customers chose. */
  readonly outbound: Outbound;
};

/** Makes bytes unreadable for everybody without the key; `about` binds them to what they belong to. Without a key they stay as they are. */
export type Sealing = {
  seal(plain: Uint8Array, about: string): Uint8Array;
  open(sealed: Uint8Array, about: string): Uint8Array;
};
