// The rows of merchants.
import type { Sql } from '../postgres/connect.ts';

export type Merchant = {
  readonly affiliateId: string;
  readonly email: string;
  readonly businessName: string;
  readonly createdAt: Date;
};

/** Inserts a merchant with its settings; returns its id. */
export async function insertMerchant(sql: Sql, merchant: Merchant): Promise<bigint> {
  const { rows } = await sql.query<{ id: bigint }>({
    name: 'merchant_insert',
    text: `with m as (insert into merchants (affiliate_id, email, business_name, created_at) values ($1, $2, $3, $4) returning id)
           insert into merchant_settings (merchant_id) select id from m returning merchant_id as id`,
    values: [merchant.affiliateId, merchant.email, merchant.businessName, merchant.createdAt],
  });
  return (rows[0] as { id: bigint }).id;
}

export type ListedMerchant = Merchant & {
  readonly suspendedAt: Date | null;
  readonly users: readonly { readonly username: string; readonly scopes: readonly string[] }[];
};

/** Merchants with their users, the oldest first. @param limit the most of them; null = all */
export async function listMerchants(sql: Sql, limit: number | null = null): Promise<readonly ListedMerchant[]> {
  const { rows } = await sql.query<{
    affiliate_id: string;
    email: string;
    business_name: string;
    created_at: Date;
    suspended_at: Date | null;
    users: readonly { username: string; scopes: readonly string[] }[] | null;
  }>({
    name: 'merchant_list',
    text: `select m.affiliate_id, m.email, m.business_name, m.created_at, m.suspended_at,
                  (select jsonb_agg(jsonb_build_object('username', u.username, 'scopes', u.scopes) order by u.id)
                     from users u where u.merchant_id = m.id) as users
             from merchants m order by m.created_at, m.id limit $1::bigint`,
    values: [limit],
  });
  return rows.map((row) => ({
    affiliateId: row.affiliate_id,
    email: row.email,
    businessName: row.business_name,
    createdAt: row.created_at,
    suspendedAt: row.suspended_at,
    users: row.users ?? [],
  }));
}

/** The id behind an affiliate_id, or null. */
export async function findMerchantId(sql: Sql, affiliateId: string): Promise<bigint | null> {
  const { rows } = await sql.query<{ id: bigint }>({
    name: 'merchant_find_id',
    text: 'select id from merchants where affiliate_id = $1',
    values: [affiliateId],
  });
  return rows[0]?.id ?? null;
}

/** A merchant's registration, or null. */
export async function readMerchant(sql: Sql, merchantId: bigint): Promise<Merchant | null> {
  const { rows } = await sql.query<{ affiliate_id: string; email: string; business_name: string; created_at: Date }>({
    name: 'merchant_read',
    text: 'select affiliate_id, email, business_name, created_at from merchants where id = $1',
    values: [merchantId],
  });
  const row = rows[0];
  return row === undefined
    ? null
    : { affiliateId: row.affiliate_id, email: row.email, businessName: row.business_name, createdAt: row.created_at };
}

/**
 * Suspends a merchant from this time, or ends the suspension (null); one that is suspended already keeps its time. Returns the merchant's
 * id, or null for an unknown one.
 */
export async function setSuspended(sql: Sql, affiliateId: string, at: Date | null): Promise<bigint | null> {
  const { rows } = await sql.query<{ id: bigint }>({
    name: 'merchant_set_suspended',
    text: `update merchants set suspended_at = case when $2::timestamptz is null then null else coalesce(suspended_at, $2) end
            where affiliate_id = $1 returning id`,
    values: [affiliateId, at],
  });
  return rows[0]?.id ?? null;
}
