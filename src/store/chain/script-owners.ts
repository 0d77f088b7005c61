// Which transactions output scripts belong to, asked in slices: one statement for a whole block (up to a million outputs) would exceed the
// statement's time limit. Strangers choose the scripts of a block and their order: each is looked up in the index by itself, because a
// server that sorts or hashes a list of them takes minutes for one that was made for that.
import { plannedByIndex, type Sql } from '../postgres/connect.ts';
import { CHOSEN_AT_ONCE, inParts } from '../postgres/in-parts.ts';

/** Transaction ids by script (hex), whatever their age; scripts that are not ours are left out. */
export async function ownersOf(sql: Sql, scripts: Iterable<Uint8Array>): Promise<ReadonlyMap<string, string>> {
  const owners = new Map<string, string>();
  await inParts(scripts, CHOSEN_AT_ONCE, async (part) => {
    const { rows } = await sql.query<{ id: string; script: Buffer }>({
      ...plannedByIndex(sql, 'script_owners'),
      text: `select t.id, s.script from unnest($1::bytea[]) as s(script)
              cross join lateral (select id from transactions where script = s.script limit 1) t`,
      values: [part],
    });
    for (const row of rows) owners.set(row.script.toString('hex'), row.id);
  });
  return owners;
}

/** Which of these scripts belong to a transaction, whatever its age. */
export async function knownScripts(sql: Sql, scripts: Iterable<Uint8Array>): Promise<readonly Buffer[]> {
  return [...(await ownersOf(sql, scripts)).keys()].map((script) => Buffer.from(script, 'hex'));
}
