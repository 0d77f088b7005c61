// Which transactions output scripts belong to, asked in slices: one statement for a whole block (up to a million outputs) would exceed the
// statement's time limit.
import type { Sql } from '../postgres/connect.ts';
import { inParts } from '../postgres/in-parts.ts';

/** The largest number of scripts in one statement. */
const ASKED_AT_ONCE = 20_000;

/** Transaction ids by script (hex), whatever their age; scripts that are not ours are left out. */
export async function ownersOf(sql: Sql, scripts: readonly Uint8Array[]): Promise<ReadonlyMap<string, string>> {
  const owners = new Map<string, string>();
  await inParts(scripts, ASKED_AT_ONCE, async (part) => {
    const { rows } = await sql.query<{ id: string; script: Buffer }>({
      name: 'owners_of_scripts',
      text: 'select id, script from transactions where script = any ($1::bytea[])',
      values: [part],
    });
    for (const row of rows) owners.set(row.script.toString('hex'), row.id);
  });
  return owners;
}

/** Which of these scripts belong to a transaction, whatever its age. */
export async function knownScripts(sql: Sql, scripts: readonly Uint8Array[]): Promise<readonly Buffer[]> {
  return [...(await ownersOf(sql, scripts)).keys()].map((script) => Buffer.from(script, 'hex'));
}
