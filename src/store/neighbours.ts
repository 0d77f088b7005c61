// The word of a server that has come to others on its database, by notification. Called by main/neighbours.ts.
import type { Sql } from './connect.ts';

export const NEIGHBOUR_CHANNEL = 'neighbours';

/** Tells every listener that this server is here. */
export async function tellNeighbours(sql: Sql, self: string): Promise<void> {
  await sql.query({ name: 'tell_neighbours', text: 'select pg_notify($1, $2)', values: [NEIGHBOUR_CHANNEL, self] });
}
