// The ledger as it was: a chain of hashes over its entries, each sealed by the key outside the database (INV-18). It is made on before each
// audit, and every audit computes all of it again.
import type { SealFields } from '../core/row-seals.ts';
import type { Answer } from '../store/ledger/audit.ts';
import {
  addLinkSeal,
  insertLink,
  type LedgerLink,
  lastLink,
  linkEnd,
  linkHash,
  readLinks,
  settledEntry,
} from '../store/ledger/links.ts';
import type { Sql } from '../store/postgres/connect.ts';
import type { Context } from './context.ts';

/** Entries of one link: few enough to be one text in the database. */
const ENTRIES = 5_000;
const AT_ONCE = 100;
const SHOWN = 20;
const NOTHING = new Uint8Array(32);

const fieldsOf = ({ number, lastEntry, hash }: Omit<LedgerLink, 'seals'>): SealFields => [
  'ledger link',
  number.toString(),
  lastEntry.toString(),
  Buffer.from(hash).toString('hex'),
];

/** Covers what was booked since the last link; what cannot be covered now is covered the next time. */
export async function extendLinks(ctx: Context): Promise<void> {
  const settled = await ctx.db.transaction(settledEntry);
  if (settled === null) return;
  for (;;) {
    const last = await lastLink(ctx.db);
    const after = last?.lastEntry ?? 0n;
    const lastEntry = await linkEnd(ctx.db, after, settled, ENTRIES);
    if (lastEntry === null) return;
    const hash = await linkHash(ctx.db, last?.hash ?? NOTHING, after, lastEntry);
    const link = { number: (last?.number ?? 0n) + 1n, lastEntry, hash };
    await insertLink(ctx.db, { ...link, seal: ctx.ports.seals.seal(fieldsOf(link)) }, ctx.ports.clock.now());
  }
}

type Sealing = { readonly ports: Pick<Context['ports'], 'seals'> };
const isSealed = ({ ports }: Sealing, link: LedgerLink): boolean =>
  link.seals.some((seal) => ports.seals.fits(fieldsOf(link), seal));

/** Vouches for links that this key has not sealed, as they are. */
export async function vouchForLinks(ctx: Sealing, sql: Sql): Promise<void> {
  for (let after = 0n, more = true; more; ) {
    const links = await readLinks(sql, after, AT_ONCE);
    for (const link of links) if (!isSealed(ctx, link)) await addLinkSeal(sql, link.number, ctx.ports.seals.seal(fieldsOf(link)));
    after = links.at(-1)?.number ?? after;
    more = links.length === AT_ONCE;
  }
}

/** INV-18: no entry that a link covers was changed, added or taken away since, not even by who owns the database. */
export async function auditLinks(ctx: Context): Promise<Answer> {
  const says = 'every entry of the ledger is as it was when it was sealed';
  const answer = (findings: readonly string[], more = false, note = ''): Answer => ({
    id: 'INV-18',
    says: says + note,
    findings,
    more,
  });
  // a command in another folder cannot tell
  if (!ctx.ports.seals.isKnown()) return answer([], false, ' (not compared: there is no key here)');
  const findings: string[] = [];
  let before: Pick<LedgerLink, 'number' | 'lastEntry' | 'hash'> = { number: 0n, lastEntry: 0n, hash: NOTHING };
  for (;;) {
    const links = await readLinks(ctx.db, before.number, AT_ONCE);
    for (const link of links) {
      const entries = `entries ${before.lastEntry + 1n} to ${link.lastEntry}`;
      const hash = await linkHash(ctx.db, before.hash, before.lastEntry, link.lastEntry);
      if (link.number !== before.number + 1n) findings.push(`link ${before.number + 1n} of the ledger is gone`);
      else if (!isSealed(ctx, link))
        findings.push(`link ${link.number} of the ledger, which ends with entry ${link.lastEntry}, is not what was sealed`);
      else if (!hash.equals(link.hash)) findings.push(`${entries} are not what they were`);
      before = link;
      if (findings.length > SHOWN) return answer(findings.slice(0, SHOWN), true);
    }
    if (links.length < AT_ONCE) return answer(findings);
  }
}
