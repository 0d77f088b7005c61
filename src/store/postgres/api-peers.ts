// The notification by which a server announces itself to the others on its database.
import type { Sql } from './connect.ts';

export const API_PEERS_CHANNEL = 'api_peers';

/** Notifies every listener that this server is running. */
export async function announceApiPeer(sql: Sql, self: string): Promise<void> {
  await sql.query({ name: 'announce_api_peer', text: 'select pg_notify($1, $2)', values: [API_PEERS_CHANNEL, self] });
}
