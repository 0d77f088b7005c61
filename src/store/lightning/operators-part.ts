// What of our node is its operator's, as far as it was read: from when on it is in the books, what it has earned by forwarding, and up to which block its
// wallet and its channels were read. Each is moved on only from where it was read, in the database transaction that books it.
import { LIGHTNING } from '../../core/currencies/lightning.ts';
import type { Sql } from '../postgres/connect.ts';
import { ASKED_BY, UNDER_WAY_OF_OPERATOR } from './sent-payments.ts';

export type OperatorsPart = {
  /** False: what the node has is not in the books yet. */
  readonly isOpen: boolean;
  /** What was forwarded up to here was read, by the node's clock; null = nothing was. */
  readonly forwardedNs: bigint | null;
  /** Of what was forwarded since it is in the books. */
  readonly forwardedMsat: bigint;
  /** The last block up to which transactions of the wallet are booked, and the same of channels that were closed. */
  readonly walletHeight: number;
  readonly closedHeight: number;
  /** Satoshis that were missing at the node when it was compared last. */
  readonly missing: bigint;
  /** The sandbox's capital is booked, which is in its node's channels. */
  readonly hasCapital: boolean;
};

/** Null for a node that was never compared. */
export async function readOperatorsPart(sql: Sql, identity: string): Promise<OperatorsPart | null> {
  const { rows } = await sql.query<{
    open: boolean;
    forwarded_ns: bigint | null;
    forwarded_msat: string;
    wallet_height: number;
    closed_height: number;
    missing: string;
    capital: boolean;
  }>({
    name: 'read_operators_part',
    text: `select part_since is not null as open, forwarded_ns, forwarded_msat::text, wallet_height, closed_height,
                  greatest(booked_there - at_node, 0)::text as missing,
                  exists (select from ledger.entry where key = 'capital:ln') as capital
             from lightning_nodes where identity = $1`,
    values: [identity],
  });
  const [row] = rows;
  if (row === undefined) return null;
  return {
    isOpen: row.open,
    forwardedNs: row.forwarded_ns,
    forwardedMsat: BigInt(row.forwarded_msat),
    walletHeight: row.wallet_height,
    closedHeight: row.closed_height,
    missing: BigInt(row.missing),
    hasCapital: row.capital,
  };
}

/** From now on what the node has is in the books, up to this block. False when it was before. */
export async function openOperatorsPart(sql: Sql, identity: string, height: number, atMs: number): Promise<boolean> {
  const { rowCount } = await sql.query({
    name: 'open_operators_part',
    text: `update lightning_nodes set part_since = $3, wallet_height = $2, closed_height = $2 where identity = $1 and part_since is null`,
    values: [identity, height, new Date(atMs)],
  });
  return rowCount === 1;
}

/** What was forwarded is read up to here. False when it was not read from `before` on. */
export async function setForwarded(
  sql: Sql,
  identity: string,
  before: Pick<OperatorsPart, 'forwardedNs' | 'forwardedMsat'>,
  after: { readonly ns: bigint; readonly msat: bigint },
): Promise<boolean> {
  const { rowCount } = await sql.query({
    name: 'set_forwarded',
    text: `update lightning_nodes set forwarded_ns = $4, forwarded_msat = $5
            where identity = $1 and forwarded_ns is not distinct from $2 and forwarded_msat = $3`,
    values: [identity, before.forwardedNs, before.forwardedMsat, after.ns, after.msat],
  });
  return rowCount === 1;
}

/** The wallet's transactions are booked up to this block. False when they were not booked up to `before`. */
export async function setWalletHeight(sql: Sql, identity: string, before: number, height: number): Promise<boolean> {
  const { rowCount } = await sql.query({
    name: 'set_wallet_height',
    text: 'update lightning_nodes set wallet_height = $3 where identity = $1 and wallet_height = $2',
    values: [identity, before, height],
  });
  return rowCount === 1;
}

/** What channels have cost that were closed up to this block is booked. False when it was not booked up to `before`. */
export async function setClosedHeight(sql: Sql, identity: string, before: number, height: number): Promise<boolean> {
  const { rowCount } = await sql.query({
    name: 'set_closed_height',
    text: 'update lightning_nodes set closed_height = $3 where identity = $1 and closed_height = $2',
    values: [identity, before, height],
  });
  return rowCount === 1;
}

/** SQL: what of our nodes is their operator's, as far as it is booked, in satoshis, and whether that of the node that was compared last is. */
export const OPERATORS_BALANCE = `select coalesce((select sum(amount) from ledger.account_balance where kind = 'asset_lightning_operator'), 0)
                   -- the sandbox's capital
                   + coalesce((select sum(p.amount) from ledger.posting p join ledger.account a on a.id = p.account_id and a.kind = 'asset_lightning'
                                 join ledger.entry e on e.id = p.entry_id where e.kind = 'capital'), 0) as amount,
                  coalesce((select part_since is not null from lightning_nodes order by compared_at desc nulls last limit 1), false) as open`;

/** Locks the rows of all nodes: until this database transaction ends nobody else takes of what is their operator's. */
export async function lockOperatorsPart(sql: Sql): Promise<void> {
  await sql.query({
    name: 'lock_operators_part',
    text: 'select from lightning_nodes order by identity for update',
    values: [],
  });
}

/** Satoshis of the operator's, less what he has under way; null while what the node that was compared last has waits to be booked. */
export async function readOperatorsBalance(sql: Sql): Promise<bigint | null> {
  const { rows } = await sql.query<{ amount: string; open: boolean }>({
    name: 'read_operators_balance',
    text: `select (amount - coalesce((select sum(ceil((amount_msat + fee_msat) / 1000)) from lightning_sent s
                                       where ${UNDER_WAY_OF_OPERATOR} and acknowledged_at is null
                                         -- what a payout had asked for is lost, and not his
                                         and not exists (select ${ASKED_BY})), 0))::text as amount, open
             from (${OPERATORS_BALANCE}) o`,
    values: [],
  });
  const [row] = rows;
  return row?.open === true ? BigInt(row.amount) : null;
}

export type Missing = {
  readonly amount: bigint;
  readonly atMs: number;
  /** What the node had paid until then is listed; where nothing is paid by us nobody lists it. */
  readonly isListed: boolean;
};

/** Locks the node that was compared last, when it had less than the books. Satoshis; null when it had not, or is another one. */
export async function lockMissing(sql: Sql, identity: string): Promise<Missing | null> {
  const { rows } = await sql.query<{ amount: string; held_at: Date; listed: boolean }>({
    name: 'lock_missing',
    text: `select (booked_there - at_node)::text as amount, held_at,
                  payments_compared is null or (listed_for is not null and listed_for = held_at) as listed from lightning_nodes
            where identity = $1 and at_node < booked_there and held_at = (select max(held_at) from lightning_nodes) for update`,
    values: [identity],
  });
  const [row] = rows;
  return row === undefined ? null : { amount: BigInt(row.amount), atMs: row.held_at.getTime(), isListed: row.listed };
}

/** So much of what was missing at a node when it was compared last is not in the books any more. */
export async function setGoneBooked(sql: Sql, identity: string, amount: bigint): Promise<void> {
  await sql.query({
    name: 'set_gone_booked',
    text: 'update lightning_nodes set booked_there = booked_there - $2 where identity = $1',
    values: [identity, amount],
  });
}

/** SQL: what forwarding has earned, in whole satoshis of each node, and what the books have of it. */
export const ROUTED = `select coalesce((select sum(div(forwarded_msat, 1000)) from lightning_nodes), 0) as read,
                  coalesce((select -sum(p.amount) from ledger.posting p join ledger.account a on a.id = p.account_id
                             where a.code = 'income:routing:${LIGHTNING.balance}'), 0) as booked`;
