// The rows of merchants' endpoints. Secrets are as the caller sealed them.
import type { Sql } from '../postgres/connect.ts';
import { DELIVERIES_JOB } from './deliveries.ts';

export type FormerSecret = { readonly secret: string; readonly until: number };
export type Webhook = {
  readonly number: bigint;
  readonly id: string;
  readonly merchantId: bigint;
  readonly url: string;
  /** Null = every type. */
  readonly events: readonly string[] | null;
  readonly secret: string;
  readonly formerSecrets: readonly FormerSecret[];
  readonly enabled: boolean;
  readonly createdAtMs: number;
};

type Raw = {
  number: bigint;
  id: string;
  merchant_id: bigint;
  url: string;
  events: string[] | null;
  secret: string;
  former_secrets: FormerSecret[];
  enabled: boolean;
  created_at: Date;
};
const COLUMNS = 'number, id, merchant_id, url, events, secret, former_secrets, enabled, created_at';

function webhookOf(raw: Raw): Webhook {
  return {
    number: raw.number,
    id: raw.id,
    merchantId: raw.merchant_id,
    url: raw.url,
    events: raw.events,
    secret: raw.secret,
    formerSecrets: raw.former_secrets,
    enabled: raw.enabled,
    createdAtMs: raw.created_at.getTime(),
  };
}

/** SQL: whoever delivers reads the endpoints again. */
const TELL = `select pg_notify('hurry', '${DELIVERIES_JOB}')`;

/** The merchant's endpoints, newest first; the merchant's row is locked, so that two calls do not make one too many. */
export async function lockWebhooks(sql: Sql, merchantId: bigint): Promise<readonly Webhook[]> {
  await sql.query({ name: 'lock_merchant', text: 'select from merchants where id = $1 for no key update', values: [merchantId] });
  return listWebhooks(sql, merchantId);
}

/** The merchant's endpoints, newest first. */
export async function listWebhooks(sql: Sql, merchantId: bigint): Promise<readonly Webhook[]> {
  const { rows } = await sql.query<Raw>({
    name: 'list_webhooks',
    text: `select ${COLUMNS} from webhooks where merchant_id = $1 order by created_at desc, id desc`,
    values: [merchantId],
  });
  return rows.map(webhookOf);
}

/** Locked until the transaction ends; null when the merchant has none with this id. */
export async function lockWebhook(sql: Sql, merchantId: bigint, id: string): Promise<Webhook | null> {
  const { rows } = await sql.query<Raw>({
    name: 'lock_webhook',
    text: `select ${COLUMNS} from webhooks where id = $1 and merchant_id = $2 for update`,
    values: [id, merchantId],
  });
  return rows[0] === undefined ? null : webhookOf(rows[0]);
}

export type NewWebhook = Pick<Webhook, 'id' | 'merchantId' | 'url' | 'events' | 'secret' | 'createdAtMs'>;

/** Adds an endpoint; its secret is sealed already. */
export async function insertWebhook(sql: Sql, made: NewWebhook): Promise<void> {
  await sql.query({
    name: 'insert_webhook',
    text: 'insert into webhooks (id, merchant_id, url, events, secret, created_at) values ($1, $2, $3, $4, $5, $6)',
    values: [made.id, made.merchantId, made.url, made.events, made.secret, new Date(made.createdAtMs)],
  });
}

/**
 * Replaces an endpoint's secret, and those that still sign along; all sealed already.
 * @param number the endpoint's row
 */
export async function setSecrets(sql: Sql, number: bigint, secret: string, former: readonly FormerSecret[]): Promise<void> {
  await sql.query({
    name: 'set_webhook_secrets',
    text: `with changed as (update webhooks set secret = $2, former_secrets = $3 where number = $1) ${TELL}`,
    values: [number, secret, JSON.stringify(former)],
  });
}

/** What waits for it is deleted by the worker, in small steps. */
export async function deleteWebhook(sql: Sql, number: bigint): Promise<void> {
  await sql.query({
    name: 'delete_webhook',
    text: `with gone as (delete from webhooks where number = $1) ${TELL}`,
    values: [number],
  });
}

/** The endpoints of these numbers; those that were removed are left out. */
export async function readWebhooks(sql: Sql, numbers: readonly bigint[]): Promise<readonly Webhook[]> {
  const { rows } = await sql.query<Raw>({
    name: 'read_webhooks',
    text: `select ${COLUMNS} from webhooks where number = any ((select $1::bigint[])::bigint[])`,
    values: [numbers],
  });
  return rows.map(webhookOf);
}

/** The newest endpoints that are enabled, with their secrets. */
export async function newestSecrets(sql: Sql, limit: number): Promise<readonly Pick<Webhook, 'id' | 'secret'>[]> {
  const { rows } = await sql.query<{ id: string; secret: string }>({
    name: 'newest_webhook_secrets',
    text: 'select id, secret from webhooks where enabled order by number desc limit $1',
    values: [limit],
  });
  return rows;
}
