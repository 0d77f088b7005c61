// A database that knows blocks of Ethereum's chain, and nodes that say of the next one what a test has them say: what the tests of a rescan share.
import pg from 'pg';
import { afterAll, afterEach, beforeAll, beforeEach } from 'vitest';
import type { CurrencyCode, EvmCode } from '../../../src/core/currency.ts';
import type { EvmPort } from '../../../src/core/evm/port.ts';
import type { BlockFacts, ChainPort, TransactionFacts } from '../../../src/core/ports.ts';
import { insertBlocks } from '../../../src/store/chain/blocks.ts';
import type { ChainContext } from '../../../src/worker/chain/context.ts';
import { type KnownBlock, recordAgain } from '../../../src/worker/rescan/rescan.ts';
import { freshDatabase } from '../../support/postgres.ts';

export const AT_MS = Date.UTC(2026, 5, 1);
export const [BLOCKS, TIP] = [60, 100];
export const CODES = ['ETH', 'USDT'] as const;
const hashOf = (height: number): string => `0x${String(height).padStart(64, '0')}`;
const rowOf = (height: number) => ({ height, hash: hashOf(height), previousHash: hashOf(height - 1), timeMs: AT_MS });

let database: Awaited<ReturnType<typeof freshDatabase>>;
/** How many there are, and the block that a test reads. */
let scripts: number;
let transactions: number;
let height: number;
/** The service, and what a test has nodes say; each begins with a block of which they show nothing. */
export const at = {} as {
  ctx: ChainContext;
  /** The superuser. */
  admin: pg.Client;
  block: KnownBlock;
  /** What the node that is read shows of the block, what all of them show together where there are several, and how often one was asked. */
  read: Partial<BlockFacts>;
  together: Partial<BlockFacts> | null;
  asked: number;
  /** What each node says at least that an address holds, by currency. */
  least: Partial<Record<EvmCode, () => Promise<bigint>>>;
};
export const rows = async (text: string, values: readonly unknown[] = []) =>
  (await database.db.query({ text, values: [...values] })).rows;
export const factsOf = (said: Partial<BlockFacts>): BlockFacts => ({
  ...rowOf(height),
  transactionCount: 1,
  touched: [],
  ...said,
});
function portOf(currency: EvmCode): ChainPort {
  const port = {
    currency,
    leastUnits: () => (at.least[currency] ?? (async () => 0n))(),
    readBlock: async () => {
      at.asked++;
      return factsOf(at.read);
    },
    get readByAll() {
      const { together } = at;
      return together === null ? undefined : async () => factsOf(together);
    },
  };
  return port as unknown as EvmPort;
}
export const ports = { ETH: portOf('ETH'), USDT: portOf('USDT') };

/** A database for the tests of a file, and another block for each. */
export function blockForEach(): void {
  beforeAll(async () => {
    [scripts, transactions, height] = [0, 0, 10];
    database = await freshDatabase();
    at.admin = new pg.Client({ connectionString: database.url });
    await at.admin.connect();
    const chains = new Map<CurrencyCode, ChainPort>(CODES.map((code) => [code, ports[code]]));
    at.ctx = { db: database.db, ports: { clock: { now: () => AT_MS }, chains } };
    await rows(`insert into account_xpubs (currency, xpub, origin, created_at) values ('ETH', 'x', 'signer', now())`);
    for (const code of ['ETH', 'USDT', 'BTC'] as const) {
      await insertBlocks(
        database.db,
        code,
        Array.from({ length: BLOCKS }, (_, nth) => rowOf(nth + 1)),
      );
      await rows(
        `insert into chain_cursors (currency, height, hash, caught_up_at, deep_height, updated_at) values ($1, $2, 'tip', now(), 0, now())`,
        [code, TIP],
      );
      await rows(`insert into chain_reconciled (currency, from_height, height, hash, updated_at) values ($1, 1, $2, $3, now())`, [
        code,
        BLOCKS,
        hashOf(BLOCKS),
      ]);
    }
  });
  afterAll(async () => {
    await at.admin?.end();
    await database?.drop();
  });
  beforeEach(() => {
    height++;
    Object.assign(at, { read: {}, together: null, asked: 0, least: {}, block: { ...rowOf(height), facts: factsOf({}) } });
  });
  afterEach(async () => {
    await rows('update chain_reconciled set height = $1, hash = $2', [BLOCKS, hashOf(BLOCKS)]);
    await at.admin.query('truncate own_outputs, address_balances, written_off, forgotten_moves, unconfirmed_blocks');
  });
}

/** Another address that payouts leave from, as a script (hex). */
export async function own(): Promise<string> {
  const script = `65766d${String(++scripts).padStart(40, '0')}`;
  for (const code of CODES)
    await rows(
      `insert into own_addresses (account_xpub_id, address_index, currency, script) select id, $1, $2, decode($3, 'hex') from account_xpubs`,
      [scripts, code, script],
    );
  return script;
}
export type Paid = readonly [script: string, amount: bigint, vout?: number];
export const pays = (...outputs: readonly Paid[]): TransactionFacts => ({
  ...{ txid: `0x${String(++transactions).padStart(64, 'a')}`, coinbase: false, inputs: [], spends: [] },
  outputs: outputs.map(([script, amountMinor, vout], at) => ({ script, amountMinor, vout: vout ?? at })),
});
export const records = (code: EvmCode, ...touched: readonly TransactionFacts[]) =>
  recordAgain(at.ctx, ports[code], at.block, { touched });
/** What is recorded in a block, and what is in none any more. */
export const inBlocks = async () =>
  (await rows('select amount::int as n from own_outputs where height is not null order by n')).map(({ n }) => n);
export const nowhere = async () =>
  (await rows('select amount::int as n from own_outputs where height is null order by n')).map(({ n }) => n);
export const secondReading = async () => (await rows(`select height from chain_reconciled where currency = 'USDT'`))[0]?.height;
export const bufferOf = (script: string): Buffer => Buffer.from(script, 'hex');
