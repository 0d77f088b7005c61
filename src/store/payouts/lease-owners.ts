// Whose leases of batches are open: what a worker that died had leased need not wait for the end of the lease.
import type { Sql } from '../postgres/connect.ts';

/** The names of workers that have leased a batch. */
export async function leaseOwners(sql: Sql): Promise<readonly string[]> {
  const { rows } = await sql.query<{ owner: string }>({
    name: 'lease_owners',
    text: 'select distinct lease_owner as owner from outgoing_batches where due_at is not null and lease_until is not null and lease_owner is not null',
    values: [],
  });
  return rows.map(({ owner }) => owner);
}

/** Ends their leases: each batch is due at once. Who leases it raises its epoch, so that nothing of the old lease counts any more. */
export async function endLeasesOf(sql: Sql, owners: readonly string[]): Promise<void> {
  await sql.query({
    name: 'end_leases_of_owners',
    text: `update outgoing_batches set lease_until = null, lease_owner = null, due_at = '-infinity'
            where due_at is not null and lease_until is not null and lease_owner = any ($1)`,
    values: [owners],
  });
}
