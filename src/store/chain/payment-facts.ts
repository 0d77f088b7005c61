// The fact columns of payments (never the judge's), read for a set of sightings.
import type { CurrencyCode } from '../../core/currency.ts';
import type { MempoolEntry, TransactionFacts } from '../../core/ports.ts';
import { plannedByIndex, type Sql } from '../postgres/connect.ts';
import { CHOSEN_AT_ONCE, inParts } from '../postgres/in-parts.ts';

export type PlaceOfBlock = { readonly height: number; readonly hash: string; readonly timeMs: number };

export type Sighting = {
  readonly facts: TransactionFacts;
  readonly seenAtMs: number;
  /** How far the watcher had read before it saw this one, where that is further than for the others recorded with it. */
  readonly caughtUpAtMs?: number;
  /** The newest number of the database when it was first seen in a mempool (early-payments.ts), where known. */
  readonly seenOrder?: number | null;
  /** What the node says of its entry into the mempool, where nothing else is known of that. */
  readonly entered?: MempoolEntry | null;
};
export type SightingsContext = {
  /** The block they are in; null = the mempool. */
  readonly block: PlaceOfBlock | null;
  /** How far the watcher had read before it saw them. */
  readonly caughtUpAtMs: number;
  /** The chain's time of this pass. */
  readonly atMs: number;
};

export type PaymentFacts = {
  readonly id: bigint;
  readonly transactionId: string;
  readonly txid: string;
  readonly vout: number;
  readonly amount: bigint;
  readonly malleationKey: string;
  readonly state: 'mempool' | 'mined' | 'gone' | 'conflicted';
  readonly block: PlaceOfBlock | null;
  readonly goneSinceMs: number | null;
  readonly lastHeight: number | null;
  readonly conflictTxid: string | null;
  /** The transaction that conflicts with it is in a block of the best chain. */
  readonly conflictMined: boolean;
};
export type NewPayment = Omit<PaymentFacts, 'id' | 'goneSinceMs' | 'conflictTxid' | 'conflictMined'> & {
  readonly coinbase: boolean;
  readonly seenAtMs: number;
  readonly caughtUpAtMs: number;
};

/** What the database knows about what some transactions touch. */
export type KnownFacts = {
  /** Transaction id by output script (hex). */
  readonly owners: ReadonlyMap<string, string>;
  readonly payments: readonly PaymentFacts[];
  /** By `txid:vout` of an outpoint: the txids of payments that spend it. */
  readonly spenders: ReadonlyMap<string, readonly string[]>;
};

export type RawFacts = {
  id: bigint;
  transaction_id: string;
  txid: string;
  vout: number;
  amount: string;
  twin_key: string;
  state: PaymentFacts['state'];
  height: number | null;
  block_hash: string | null;
  block_time: Date | null;
  gone_since: Date | null;
  last_height: number | null;
  conflict_txid: string | null;
  conflict_mined: boolean;
};
export const FACT_COLUMNS = `p.id, p.transaction_id, p.txid, p.vout, p.amount, encode(p.twin_key, 'hex') as twin_key, p.state, p.height, p.block_hash, p.block_time,
  p.gone_since, p.last_height, p.conflict_txid,
  exists (select 1 from conflicting_transactions v where v.currency = p.currency and v.txid = p.conflict_txid and v.height is not null) as conflict_mined`;

/** A row of `payments` as the watchers work with it; amounts in minor units. */
export function paymentFacts(row: RawFacts): PaymentFacts {
  const mined = row.height !== null && row.block_hash !== null && row.block_time !== null;
  return {
    id: row.id,
    transactionId: row.transaction_id,
    txid: row.txid,
    vout: row.vout,
    amount: BigInt(row.amount),
    malleationKey: row.twin_key,
    state: row.state,
    block: mined
      ? { height: row.height as number, hash: row.block_hash as string, timeMs: (row.block_time as Date).getTime() }
      : null,
    goneSinceMs: row.gone_since?.getTime() ?? null,
    lastHeight: row.last_height,
    conflictTxid: row.conflict_txid,
    conflictMined: row.conflict_mined,
  };
}

/**
 * Which payments spend the same outpoints as these transactions, and which payments exist already: those with one of their txids, and the
 * same ones under another txid.
 * @param seen.malleationKeys the keys that identify the outputs to us under whatever txid (hex)
 */
export async function readFacts(
  sql: Sql,
  currency: CurrencyCode,
  seen: {
    readonly sightings: readonly TransactionFacts[];
    readonly owners: ReadonlyMap<string, string>;
    readonly malleationKeys: readonly string[];
  },
): Promise<KnownFacts> {
  const spends = seen.sightings.flatMap((facts) => facts.inputs);
  const spending: { key: string; txid: string }[] = [];
  await inParts(spends, CHOSEN_AT_ONCE, async (part) => {
    const { rows } = await sql.query<{ key: string; txid: string }>({
      ...plannedByIndex(sql, 'payments_spending'),
      text: `select o.txid || ':' || o.vout as key, i.txid from unnest($2::text[], $3::int[]) as o(txid, vout)
              cross join lateral (select txid from payment_inputs where currency = $1 and prev_txid = o.txid and prev_vout = o.vout offset 0) i`,
      values: [currency, part.map((spend) => spend.txid), part.map((spend) => spend.vout)],
    });
    for (const row of rows) spending.push(row);
  });
  const spenders = new Map(
    [...Map.groupBy(spending, ({ key }) => key)].map(([key, found]) => [key, found.map(({ txid }) => txid)]),
  );
  const txids = [...new Set([...seen.sightings, ...spending].map(({ txid }) => txid))];
  const found = new Map<bigint, RawFacts>();
  for (const [name, wanted, keys] of [
    ['payments_by_txid', 't.currency = $1 and t.txid = k.key', txids],
    // by its own index alone: without statistics of the table the planner would also read the currency's whole index, for each key
    ['payments_by_twin', `t.twin_key = decode(k.key, 'hex')`, seen.malleationKeys],
  ] as const) {
    await inParts(keys, CHOSEN_AT_ONCE, async (part) => {
      const { rows } = await sql.query<RawFacts>({
        ...plannedByIndex(sql, name),
        text: `select q.* from unnest($2::text[]) as k(key)
                cross join lateral (select ${FACT_COLUMNS} from (select * from payments t where ${wanted} offset 0) p where p.currency = $1 offset 0) q`,
        values: [currency, part],
      });
      for (const row of rows) found.set(row.id, row);
    });
  }
  const rows = [...found.values()].sort((a, b) => (a.txid === b.txid ? a.vout - b.vout : a.txid < b.txid ? -1 : 1));
  return { owners: seen.owners, payments: rows.map(paymentFacts), spenders };
}

/**
 * Which of these outputs of a block pay a transaction of ours and are not recorded as mined in it. `entry`: its key in the ledger, when its
 * row is gone though it is booked, or when a booked payment of its transaction has no row (it may be this one, under another txid).
 */
export async function missingPayments(
  sql: Sql,
  currency: CurrencyCode,
  block: {
    readonly blockHash: string;
    readonly outputs: readonly { txid: string; vout: number; script: string; amountMinor: bigint }[];
  },
): Promise<readonly MissingPayment[]> {
  const outputs = block.outputs.filter((output) => output.amountMinor > 0n);
  const { rows } = await sql.query<MissingPayment>({
    name: 'missing_payments',
    text: `select o.txid, o.vout, t.id as "transactionId",
                  (select d.key from ledger.entry e join ledger.part d on d.entry_id = e.id
                    where p.id is null and e.transaction_id = t.id and e.kind = 'deposit'
                      and (d.key = 'dep:' || lower($1) || ':' || o.txid || ':' || o.vout
                           or (starts_with(d.key, 'dep:' || lower($1) || ':')
                               and not exists (select 1 from ledger.part r where r.reverses = d.key)
                               and not exists (select 1 from payments b where b.part_key = d.key)
                               and not exists (select 1 from payment_decisions b where b.transaction_id = t.id and b.part_key = d.key)))
                    order by d.key = 'dep:' || lower($1) || ':' || o.txid || ':' || o.vout desc limit 1) as entry
             from unnest($2::text[], $3::int[], $4::bytea[]) as o(txid, vout, script) join transactions t on t.script = o.script
             left join payments p on p.currency = $1 and p.txid = o.txid and p.vout = o.vout
            where p.block_hash is distinct from $5
              and not exists (select 1 from early_payments n where n.currency = $1 and n.txid = o.txid and n.vout = o.vout and n.accepted_at is null)`,
    values: [
      currency,
      outputs.map((output) => output.txid),
      outputs.map((output) => output.vout),
      outputs.map((output) => Buffer.from(output.script, 'hex')),
      block.blockHash,
    ],
  });
  return rows;
}

export type MissingPayment = {
  readonly txid: string;
  readonly vout: number;
  readonly transactionId: string;
  readonly entry: string | null;
};

/** The transactions of a chain's mempool that have payments to ours; one for each of ours. */
export async function readWaiting(
  sql: Sql,
  currency: CurrencyCode,
): Promise<readonly { readonly txid: string; readonly transactionId: string }[]> {
  const { rows } = await sql.query<{ txid: string; transactionId: string }>({
    name: 'read_waiting_payments',
    text: `select distinct txid, transaction_id as "transactionId" from payments where currency = $1 and state = 'mempool' order by 1, 2`,
    values: [currency],
  });
  return rows;
}
