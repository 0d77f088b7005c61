// Which channels our Lightning nodes had open, and until when: a node that was put back to before it had one has forgotten it, with what it held.
import type { KnownChannels } from '../../core/lightning/port.ts';
import type { Sql } from '../postgres/connect.ts';

/** Keeps what a node lists as open now. */
export async function recordChannels(
  sql: Sql,
  node: { readonly identity: string; readonly channels: readonly string[] },
  atMs: number,
): Promise<void> {
  await sql.query({
    name: 'record_lightning_channels',
    text: `with gone as (
             update lightning_channels set gone_at = $3 where node = $1 and gone_at is null and channel_point <> all ($2))
           insert into lightning_channels (node, channel_point) select $1, t.point from unnest($2::text[]) as t(point)
             on conflict (node, channel_point) do update set gone_at = null where lightning_channels.gone_at is not null`,
    values: [node.identity, node.channels, new Date(atMs)],
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
