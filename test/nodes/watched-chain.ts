// A database with transactions to be paid, the product's adapter and watcher on one chain, and what they recorded: the setup of the
// conformance cases.
import { randomBytes } from 'node:crypto';
import { secp256k1 } from '@noble/curves/secp256k1.js';
import { type CurrencyCode, isUtxo } from '../../src/core/currency.ts';
import { sortableId } from '../../src/core/ids.ts';
import { createEvmNode } from '../../src/outside/evm/node.ts';
import { createEvmSource } from '../../src/outside/evm/source.ts';
import { encoderOf } from '../../src/outside/utxo/address-encoder.ts';
import { createUtxoNode } from '../../src/outside/utxo/node/node.ts';
import type { Database } from '../../src/store/postgres/connect.ts';
import type { ChainContext } from '../../src/worker/chain/context.ts';
import type { PassResult } from '../../src/worker/chain/pass-result.ts';
import { createWatchedScripts } from '../../src/worker/chain/watch-list.ts';
import { type ChainWatcher, createChainWatcher } from '../../src/worker/chain/watcher.ts';
import { freshDatabase, type TestDatabase } from '../support/postgres.ts';

export type Fact = {
  readonly txid: string;
  readonly vout: number;
  readonly amount: bigint;
  readonly state: string;
  readonly height: number | null;
  readonly foundMined: boolean;
  readonly conflictTxid: string | null;
  readonly gone: boolean;
  readonly lock: string | null;
};
export type Owed = { readonly id: string; readonly script: Buffer };
/** On Ethereum's chain. */
export const addressOf = ({ script }: Owed): string => `0x${script.subarray(3).toString('hex')}`;

export type WatchedChain = {
  readonly db: Database;
  readonly url: string;
  readonly ctx: ChainContext;
  watcher: ChainWatcher;
  /** Milliseconds added to the clock. */
  skew: number;
  /** A transaction that waits for a payment; at the address of a script that was given before, where one is named. */
  owe(options?: { ageDays?: number; currency?: CurrencyCode; script?: Buffer }): Promise<Owed>;
  /** Passes until the watcher has caught up (or a number of passes is over). */
  catchUp(): Promise<PassResult>;
  /** A new watcher on the same database, as after a restart. */
  restart(options?: { blocksPerPass?: number }): Promise<void>;
  facts(owed: Owed): Promise<Fact[]>;
  /** Whether the transaction was due for the judge; removes the mark. */
  takeDue(owed: Owed): Promise<boolean>;
  cursor(): Promise<{ height: number; hash: string; caught_up_at: Date; deep_height: number } | undefined>;
  close(): Promise<void>;
};

export async function watchChain(
  currency: CurrencyCode,
  nodeUrl: string,
  options: { readonly silenceMs?: number; readonly database?: TestDatabase; readonly contract?: string | null } = {},
): Promise<WatchedChain> {
  const { db, url, drop } = options.database ?? (await freshDatabase());
  const merchant = await addMerchant(db);
  const clock = { now: () => Date.now() + chain.skew, steady: () => performance.now() };
  const { silenceMs = 5_000 } = options;
  const node = isUtxo(currency)
    ? createUtxoNode({ currency, url: nodeUrl, network: 'regtest', clock, silenceMs })
    : createEvmNode({
        currency,
        source: createEvmSource({ url: nodeUrl, silenceMs }),
        network: 'regtest',
        clock,
        contract: options.contract ?? null,
      });
  const ctx: ChainContext = { db, ports: { clock, chains: new Map([[currency, node]]) } };
  const newWatcher = (options: { blocksPerPass?: number } = {}): ChainWatcher =>
    createChainWatcher(ctx, currency, { scripts: createWatchedScripts(ctx), ...options });

  const chain: WatchedChain = {
    db,
    url,
    ctx,
    watcher: undefined as unknown as ChainWatcher,
    skew: 0,
    owe: ({ ageDays = 0, script, ...options } = {}) => {
      const address = freshAddress(options.currency ?? currency);
      return addTransaction(db, {
        merchant,
        currency: options.currency ?? currency,
        createdMs: clock.now() - ageDays * 86_400_000,
        address: address.address,
        script: script ?? Buffer.from(address.script),
        isOld: ageDays > 0,
      });
    },
    async catchUp() {
      let result = await chain.watcher.pass();
      for (let i = 0; i < 50 && !result.caughtUp && (result.more || result.state === 'ready'); i++)
        result = await chain.watcher.pass();
      return result;
    },
    async restart(options) {
      await chain.watcher.close();
      chain.watcher = newWatcher(options);
    },
    facts: (owed) => readFacts(db, owed),
    async takeDue(owed) {
      const { rows } = await db.query<{ due: boolean }>({
        text: 'delete from due_marks where transaction_id = $1 returning true as due',
        values: [owed.id],
      });
      return rows[0]?.due === true;
    },
    async cursor() {
      const { rows } = await db.query<{ height: number; hash: string; caught_up_at: Date; deep_height: number }>({
        text: 'select height, hash, caught_up_at, deep_height from chain_cursors where currency = $1',
        values: [currency],
      });
      return rows[0];
    },
    async close() {
      await chain.watcher.close();
      await node.close();
      await drop();
    },
  };
  chain.watcher = newWatcher();
  return chain;
}

async function addMerchant(db: Database): Promise<bigint> {
  const { rows } = await db.query<{ id: bigint }>({
    text: `insert into merchants (affiliate_id, email, business_name, created_at) values ($1, 'a@example.com', 'A', now()) returning id`,
    values: [`aff_${randomBytes(6).toString('hex')}`],
  });
  return (rows[0] as { id: bigint }).id;
}

/** An unused address, with its script. */
export function freshAddress(currency: CurrencyCode): { readonly address: string; readonly script: Uint8Array } {
  return encoderOf(currency, 'regtest')(secp256k1.getPublicKey(secp256k1.utils.randomSecretKey(), true));
}

async function addTransaction(
  db: Database,
  row: {
    readonly merchant: bigint;
    readonly currency: CurrencyCode;
    readonly createdMs: number;
    readonly address: string;
    readonly script: Buffer;
    /** Written long ago: no watch list takes it for new, whenever it was loaded. */
    readonly isOld: boolean;
  },
): Promise<Owed> {
  const { merchant, currency, createdMs, address, script } = row;
  const id = sortableId('txn_', createdMs, randomBytes(10));
  await db.query({
    text: `insert into transactions (id, merchant_id, currency, status, usd_minor, amount_due, rate, rate_at, rate_sources, tolerance_bps, late_payments,
                                     address, script, created_at, window_ends_at, made_in)
             values ($1, $2, $3, 'started', 1000, 100000, 1, $5, '[]', 100, 'accept', $7, $4, $5, $6,
                     case when $8 then '0'::xid8 else pg_current_xact_id() end)`,
    values: [id, merchant, currency, script, new Date(createdMs), new Date(createdMs + 900_000), address, row.isOld],
  });
  return { id, script };
}

async function readFacts(db: Database, owed: Owed): Promise<Fact[]> {
  const { rows } = await db.query<{
    txid: string;
    vout: number;
    amount: string;
    state: string;
    height: number | null;
    found_mined: boolean;
    conflict_txid: string | null;
    gone_since: Date | null;
    lock: string | null;
  }>({
    text: `select txid, vout, amount, state, height, found_mined, conflict_txid, gone_since, lock from payments where transaction_id = $1 order by id`,
    values: [owed.id],
  });
  return rows.map((row) => ({
    txid: row.txid,
    vout: row.vout,
    amount: BigInt(row.amount),
    state: row.state,
    height: row.height,
    foundMined: row.found_mined,
    conflictTxid: row.conflict_txid,
    gone: row.gone_since !== null,
    lock: row.lock,
  }));
}
