// Words between the servers of one database, by its notifications. Called by main/neighbours.ts.
import type { Sql } from './connect.ts';

export const NEIGHBOUR_CHANNEL = 'neighbours';

/** Sends a word to every listener; at most 8,000 bytes (PostgreSQL's limit of a notification). */
export async function tellNeighbours(sql: Sql, word: string): Promise<void> {
  await sql.query({ name: 'tell_neighbours', text: 'select pg_notify($1, $2)', values: [NEIGHBOUR_CHANNEL, word] });
}
