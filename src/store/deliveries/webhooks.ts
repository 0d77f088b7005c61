// The rows of merchants' endpoints. Secrets are as the caller sealed them.
import type { Sql } from '../postgres/connect.ts';
import { DELIVERIES_JOB } from './deliveries.ts';

/** What merchant and operator see of an endpoint. */
export type Endpoint = {
  readonly number: bigint;
  readonly id: string;
  readonly url: string;
  /** Null = every type. */
  readonly events: readonly string[] | null;
  /** False once it has answered 410. */
  readonly enabled: boolean;
  readonly createdAtMs: number;
};
export type RawEndpoint = {
  number: bigint;
  id: string;
  url: string;
  events: string[] | null;
  enabled: boolean;
  created_at: Date;
};
/** SQL of what {@link endpointOf} reads, of a row `w` of webhooks. */
export const ENDPOINT_COLUMNS = 'w.number, w.id, w.url, w.events, w.enabled, w.created_at';

/** An endpoint from its row. */
export function endpointOf({ number, id, url, events, enabled, created_at }: RawEndpoint): Endpoint {
  return { number, id, url, events, enabled, createdAtMs: created_at.getTime() };
}

export type FormerSecret = { readonly secret: string; readonly until: number };
export type Webhook = Endpoint & {
  readonly merchantId: bigint;
  readonly secret: string;
  readonly formerSecrets: readonly FormerSecret[];
};

type Raw = RawEndpoint & { merchant_id: bigint; secret: string; former_secrets: FormerSecret[] };
const COLUMNS = `${ENDPOINT_COLUMNS}, w.merchant_id, w.secret, w.former_secrets`;

function webhookOf(raw: Raw): Webhook {
  return { ...endpointOf(raw), merchantId: raw.merchant_id, secret: raw.secret, formerSecrets: raw.former_secrets };
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
    text: `select ${COLUMNS} from webhooks w where merchant_id = $1 order by created_at desc, id desc`,
    values: [merchantId],
  });
  return rows.map(webhookOf);
}

/** Locked until the transaction ends; null when the merchant has none with this id. */
export async function lockWebhook(sql: Sql, merchantId: bigint, id: string): Promise<Webhook | null> {
  const { rows } = await sql.query<Raw>({
    name: 'lock_webhook',
    text: `select ${COLUMNS} from webhooks w where id = $1 and merchant_id = $2 for update`,
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

/** Former secrets that would sign along after this time end then: the clock was set back since. */
export async function recallSecrets(sql: Sql, latestMs: number): Promise<void> {
  await sql.query({
    name: 'recall_webhook_secrets',
    text: `update webhooks w set former_secrets = (
             select jsonb_agg(f.one || jsonb_build_object('until', least((f.one ->> 'until')::bigint, $1)) order by f.place)
               from jsonb_array_elements(w.former_secrets) with ordinality f (one, place))
            where exists (select from jsonb_array_elements(w.former_secrets) f (one) where (f.one ->> 'until')::bigint > $1)`,
    values: [latestMs],
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
    text: `select ${COLUMNS} from webhooks w where number = any ((select $1::bigint[])::bigint[])`,
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
