// The numbers of sealed rows' changes, and the rows as they were sealed: for the audit, and for whoever seals them anew.
import type { Sql } from '../postgres/connect.ts';

/** SQL: the highest number that a subject has taken. */
export const newestOf = (subject: string): string =>
  `coalesce((select max(v.version) from seal_versions v where v.subject = ${subject}), 0)`;

/** The number of a subject's next change. It is taken by {@link takeVersion}, in the same transaction; its row is locked. */
export async function nextVersion(sql: Sql, subject: string): Promise<bigint> {
  const { rows } = await sql.query<{ next: bigint }>({
    name: 'seal_version_next',
    text: `select ${newestOf('$1')} + 1 as next`,
    values: [subject],
  });
  return rows[0]?.next as bigint;
}

/** Takes a number for good. */
export async function takeVersion(sql: Sql, subject: string, version: bigint): Promise<void> {
  await sql.query({
    name: 'seal_version_take',
    text: 'insert into seal_versions (subject, version) values ($1, $2)',
    values: [subject, version],
  });
}

/** Whether anything was ever sealed here: the service's role cannot remove these numbers. */
export async function hasVersions(sql: Sql): Promise<boolean> {
  const { rows } = await sql.query<{ found: boolean }>({
    text: 'select exists (select from seal_versions) as found',
    values: [],
  });
  return rows[0]?.found === true;
}

/** Only one process seals what was never sealed; until the transaction ends. */
export async function lockSealing(sql: Sql): Promise<void> {
  await sql.query({ text: `select pg_advisory_xact_lock(hashtextextended('seal rows', 0))`, values: [] });
}

export type SealedSignIn = { readonly id: string; readonly usernameKey: string };

/** Sign-ins without a seal that are not revoked. */
export async function unsealedSignIns(sql: Sql, limit: number): Promise<readonly SealedSignIn[]> {
  const { rows } = await sql.query<SealedSignIn>({
    text: `select s.id, u.username_key as "usernameKey" from sign_ins s join users u on u.id = s.user_id
            where s.seal is null and s.revoked_at is null limit $1`,
    values: [limit],
  });
  return rows;
}

/** Seals sign-ins by their identifiers; both lists have the same order. */
export async function writeSignInSeals(sql: Sql, ids: readonly string[], seals: readonly Uint8Array[]): Promise<void> {
  await sql.query({
    text: 'update sign_ins s set seal = q.seal from unnest($1::text[], $2::bytea[]) as q(id, seal) where s.id = q.id',
    values: [ids, seals],
  });
}

export type StoredSigningKey = { readonly kid: string; readonly publicKeyPem: string; readonly seal: Uint8Array | null };

/** The public keys by which access tokens are checked (PEM, Ed25519), with their seals; null = sealed by nobody yet. */
export async function readSigningKeys(sql: Sql): Promise<readonly StoredSigningKey[]> {
  const { rows } = await sql.query<{ kid: string; public_key: string; seal: Buffer | null }>({
    text: 'select kid, public_key, seal from signing_keys order by kid',
    values: [],
  });
  return rows.map((row) => ({ kid: row.kid, publicKeyPem: row.public_key, seal: row.seal }));
}

/** Seals the public key of this `kid`. */
export async function writeSigningKeySeal(sql: Sql, kid: string, seal: Uint8Array): Promise<void> {
  await sql.query({ text: 'update signing_keys set seal = $2 where kid = $1', values: [kid, seal] });
}
