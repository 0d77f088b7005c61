// A server tells the others on its database that it is here, by notification.
import type { Sql } from './connect.ts';

export const API_PEERS_CHANNEL = 'api_peers';

/** Tells every listener that this server is here. */
export async function announceApiPeer(sql: Sql, self: string): Promise<void> {
  await sql.query({ name: 'announce_api_peer', text: 'select pg_notify($1, $2)', values: [API_PEERS_CHANNEL, self] });
}
