// Which channels our Lightning nodes had open, and until when: a node that was put back to before it had one has forgotten it, with what it held.
import type { CountedChannel } from '../../core/lightning/node-run.ts';
import type { KnownChannels } from '../../core/lightning/port.ts';
import type { Sql } from '../postgres/connect.ts';

/** Keeps what a node lists as open now. */
export async function recordChannels(
  sql: Sql,
  node: { readonly identity: string; readonly channels: readonly CountedChannel[] },
  atMs: number,
): Promise<void> {
  await sql.query({
    name: 'record_lightning_channels',
    text: `with gone as (
             update lightning_channels set gone_at = $3 where node = $1 and gone_at is null and channel_point <> all ($2))
           insert into lightning_channels (node, channel_point, counted_from) select $1, t.point, t.counted_from
             from unnest($2::text[], $4::timestamptz[]) as t(point, counted_from)
             on conflict (node, channel_point) do update set gone_at = null, counted_from = excluded.counted_from`,
    values: [
      node.identity,
      node.channels.map(({ point }) => point),
      new Date(atMs),
      node.channels.map(({ fromMs }) => new Date(fromMs)),
    ],
  });
}

/** Keeps channels of which this database does not know that a node had them: it was put back to before they were opened. They count as open until now. */
export async function addForgottenChannels(sql: Sql, node: string, points: readonly string[], atMs: number): Promise<void> {
  await sql.query({
    name: 'add_forgotten_lightning_channels',
    text: `insert into lightning_channels (node, channel_point, gone_at) select $1, t.point, $3 from unnest($2::text[]) as t(point) on conflict do nothing`,
    values: [node, points, new Date(atMs)],
  });
}

/** What a node may have held something in since a time, and what was closed before it. Our clock may have been set back since, by an hour at most. */
export async function channelsSince(sql: Sql, node: string, sinceMs: number): Promise<KnownChannels> {
  const { rows } = await sql.query<{ point: string; had: boolean }>({
    name: 'lightning_channels_since',
    text: `select channel_point as point, (gone_at is null or gone_at >= $2::timestamptz - interval '1 hour') as had from lightning_channels where node = $1`,
    values: [node, new Date(sinceMs)],
  });
  const points = (had: boolean) => rows.filter((row) => row.had === had).map((row) => row.point);
  return { had: points(true), closedBefore: points(false) };
}
