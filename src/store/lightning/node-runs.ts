// In which run of a Lightning node that pays it was last seen, and since when it counted its channels then.
import type { CountedChannel, NodeRun } from '../../core/lightning/node-run.ts';
import type { Sql } from '../postgres/connect.ts';
import { recordChannels } from './channels.ts';

export type KnownRun = {
  /** Null: it was not seen, or not while this was kept. */
  readonly run: NodeRun | null;
  readonly channels: ReadonlyMap<string, number>;
  /** The time now by the clock of the database, which is the same for all workers. */
  readonly nowMs: number;
};

/** Nothing of a node that was never seen. */
export async function readNodeRun(sql: Sql, node: string): Promise<KnownRun> {
  type Row = { now: Date; started_at: Date | null; seen_at: Date | null; point: string | null; counted_from: Date };
  const { rows } = await sql.query<Row>({
    name: 'read_lightning_node_run',
    text: `select clock_timestamp() as now, n.started_at, n.started_seen_at as seen_at, c.channel_point as point, c.counted_from
             from (select $1::text as identity) as asked left join lightning_nodes n using (identity)
                  left join lightning_channels c on c.node = n.identity and c.gone_at is null and c.counted_from is not null`,
    values: [node],
  });
  const [first] = rows;
  const run =
    first?.started_at == null || first.seen_at === null
      ? null
      : { startedAtMs: first.started_at.getTime(), startSeenAtMs: first.seen_at.getTime() };
  const counted = rows.flatMap(({ point, counted_from: from }) => (point === null ? [] : [[point, from.getTime()] as const]));
  return { run, channels: new Map(counted), nowMs: (first as Row).now.getTime() };
}

/** Keeps what a node lists as open now, and the run that it is in; its row is there. */
export async function recordNodeRun(
  sql: Sql,
  node: { readonly identity: string; readonly channels: readonly CountedChannel[]; readonly run: NodeRun },
  atMs: number,
): Promise<void> {
  await recordChannels(sql, node, atMs);
  await sql.query({
    name: 'record_lightning_node_run',
    text: `update lightning_nodes set started_at = $2, started_seen_at = $3 where identity = $1`,
    values: [node.identity, new Date(node.run.startedAtMs), new Date(node.run.startSeenAtMs)],
  });
}
