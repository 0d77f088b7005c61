// What the measurements of webhooks share: the API as a merchant calls it, receivers that answer or hang, and events without anything else.
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import type pg from 'pg';
import type { Instance } from './instance.ts';

const CREATE = { amount: '25.00', crypto_selected: 'BTC' };
/** Endpoints that never answer, beside one that does. */
export const HANGING = 5;

type Api = { call<T>(path: string, body?: object, token?: string): Promise<T>; readonly token: string };

export type Setting = {
  readonly instance: Instance;
  readonly api: Api;
  readonly client: pg.Client;
  readonly transactionId: string;
};

/** Signs in, and creates the transaction whose events are delivered. */
export async function openSetting(instance: Instance, client: pg.Client): Promise<Setting> {
  const api = await openApi(instance);
  const { transaction_id } = await api.call<{ transaction_id: string }>('/create_transaction', CREATE);
  return { instance, api, client, transactionId: transaction_id };
}

async function openApi(instance: Instance): Promise<Api> {
  const token = await instance.token();
  return {
    token,
    async call<T>(path: string, body: object = {}, of = token): Promise<T> {
      const answer = await fetch(`http://127.0.0.1:${instance.port}${path}`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify(path.startsWith('/sandbox/') ? body : { access_token: of, ...body }),
      });
      if (answer.status !== 200) throw new Error(`${path} answered ${answer.status}: ${await answer.text()}`);
      return (await answer.json()) as T;
    },
  };
}

/** A merchant's server: counts what arrives, or never answers. */
export async function openReceiver(hangs = false) {
  let count = 0;
  let wanted = 0;
  let arrived: () => void = () => undefined;
  let firstByteMs = 0;
  const server = createServer((incoming, response) => {
    firstByteMs = performance.now();
    incoming.resume();
    if (hangs) return;
    incoming.on('end', () => {
      response.writeHead(204).end();
      count += 1;
      if (count >= wanted) arrived();
    });
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`,
    firstByteMs: () => firstByteMs,
    /** Resolves when this many more have arrived. */
    next(more: number): Promise<void> {
      wanted = count + more;
      return new Promise((resolve) => {
        arrived = resolve;
      });
    },
    close(): void {
      server.close();
      server.closeAllConnections();
    },
  };
}

/** Endpoints of the same merchant that hang, each with this many events of its transaction waiting; they want none of its next ones. */
export async function addHanging({ client, transactionId }: Setting, url: string, each: number): Promise<void> {
  for (let n = 0; n < HANGING; n++) {
    await client.query(
      `insert into webhooks (id, merchant_id, url, secret, created_at)
         select $1, merchant_id, $2, 'whsec_AAAA', now() from transactions where id = $3`,
      [`wh_bench${n}`, `${url}${n}`, transactionId],
    );
    await client.query(
      `insert into deliveries (webhook, event_id, due_at)
         select w.number, e.id, '-infinity' from webhooks w, (select id from events where object_id = $2 order by id limit $3) e where w.id = $1`,
      [`wh_bench${n}`, transactionId, each],
    );
    await client.query(`update webhooks set events = '{payout.failed}' where id = $1`, [`wh_bench${n}`]);
  }
}

/** Removes them as a merchant would: what waits for them is forgotten. */
export const removeHanging = (client: pg.Client) => client.query(`delete from webhooks where id like 'wh_bench%'`);

/** So many events of a transaction. */
export const addEvents = (client: pg.Client, transactionId: string, count: number) =>
  client.query(
    `with base as materialized (
       select t.merchant_id, t.id, (select max(e.sequence) from events e where e.object_id = t.id) as last from transactions t where t.id = $1)
     insert into events (merchant_id, object_id, sequence, type, status, previous, reason, at)
       select merchant_id, id, last + n, 'transaction.reorged', 'started', 'started', 'bench', now() from base, generate_series(1, $2::integer) n`,
    [transactionId, count],
  );

export const percentile = (sorted: readonly number[], share: number): number =>
  sorted[Math.floor((sorted.length - 1) * share)] ?? 0;
