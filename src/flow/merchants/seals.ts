// The seals of all rows at once: made for those of before there were any, compared by the audit, and made anew when an operator vouches for them.
import { isSealedUser, signInFields, signingKeyFields, userFields } from '../../core/row-seals.ts';
import type { Answer } from '../../store/ledger/audit.ts';
import {
  hasVersions,
  lockSealing,
  readSigningKeys,
  type StoredSigningKey,
  unsealedSignIns,
  writeSignInSeals,
  writeSigningKeySeal,
} from '../../store/merchants/seals.ts';
import { listSettings, lockSettings, type StoredSettings } from '../../store/merchants/settings.ts';
import { listUsers, lockUser, type User } from '../../store/merchants/users.ts';
import type { Database, Sql } from '../../store/postgres/connect.ts';
import { deleteRates, foreignRates } from '../../store/transactions/rates.ts';
import { vouchForLinks } from '../ledger-links.ts';
import { changeUser } from '../sign-in/sealed-users.ts';
import type { SignInContext } from '../sign-in/token-pair.ts';
import { fitsSettings, sealSettings } from './settings.ts';

export type Sealing = { readonly db: Database; readonly ports: Pick<SignInContext['ports'], 'seals' | 'clock'> };

const AT_ONCE = 1_000;
const SHOWN = 20;

type Settings = { readonly merchantId: bigint; readonly affiliateId: string; readonly settings: StoredSettings };
type Rows = {
  readonly users: readonly User[];
  readonly settings: readonly Settings[];
  readonly keys: readonly StoredSigningKey[];
};

async function readAll(sql: Sql): Promise<Rows> {
  const users: User[] = [];
  for (let more = true; more; ) {
    const page = await listUsers(sql, users.at(-1)?.usernameKey ?? '', AT_ONCE);
    users.push(...page);
    more = page.length === AT_ONCE;
  }
  const settings: Settings[] = [];
  for (let more = true; more; ) {
    const page = await listSettings(sql, settings.at(-1)?.merchantId ?? 0n, AT_ONCE);
    settings.push(...page);
    more = page.length === AT_ONCE;
  }
  return { users, settings, keys: await readSigningKeys(sql) };
}

function foreign({ ports: { seals } }: Sealing, rows: Rows): Rows {
  return {
    users: rows.users.filter((user) => !isSealedUser(seals, user, user)),
    settings: rows.settings.filter(({ merchantId, settings }) => !fitsSettings(seals, merchantId, settings)),
    keys: rows.keys.filter(({ kid, publicKeyPem, seal }) => !seals.fits(signingKeyFields(kid, publicKeyPem), seal)),
  };
}

/**
 * Seals what was never sealed, in a database in which no row has a seal or ever had one. One that has seals of this key was sealed before, and
 * nothing in it is touched: a row without one is foreign there.
 * @returns `other_key` too where all seals were removed: nobody can tell whose they were
 */
export function sealExisting(ctx: Sealing): Promise<{ readonly outcome: 'done' | 'other_key'; readonly sealed: number }> {
  return ctx.db.transaction(async (sql) => {
    await lockSealing(sql);
    const rows = await readAll(sql);
    const { seals } = ctx.ports;
    const hasSeal = [
      ...rows.users.map((user) => ({ fits: seals.fits(userFields(user, user.version), user.seal), seal: user.seal })),
      ...rows.settings.map(({ merchantId, settings }) => ({
        fits: fitsSettings(seals, merchantId, settings),
        seal: settings.seal,
      })),
    ].filter(({ seal }) => seal !== null);
    if (hasSeal.length > 0) return { outcome: hasSeal.some(({ fits }) => fits) ? 'done' : 'other_key', sealed: 0 };
    // seals can be removed, numbers cannot
    if (await hasVersions(sql)) return { outcome: 'other_key', sealed: 0 };
    await sealRows(ctx, sql, rows);
    return { outcome: 'done', sealed: rows.users.length + rows.settings.length };
  });
}

async function sealRows(ctx: Sealing, sql: Sql, { users, settings, keys }: Rows): Promise<void> {
  const { seals } = ctx.ports;
  for (const { usernameKey } of users) {
    const user = await lockUser(sql, usernameKey);
    if (user !== null) await changeUser(ctx, sql, user);
  }
  for (const { merchantId } of settings) await sealSettings(ctx.ports, sql, merchantId, await lockSettings(sql, merchantId));
  for (const { kid, publicKeyPem } of keys) await writeSigningKeySeal(sql, kid, seals.seal(signingKeyFields(kid, publicKeyPem)));
  for (let more = true; more; ) {
    const page = await unsealedSignIns(sql, AT_ONCE);
    const made = page.map(({ id, usernameKey }) => seals.seal(signInFields(id, usernameKey)));
    await writeSignInSeals(
      sql,
      page.map(({ id }) => id),
      made,
    );
    more = page.length === AT_ONCE;
  }
}

/** What an operator would vouch for: by name, users and merchants whose rows are not what was sealed. */
export type Unsealed = { readonly users: readonly User[]; readonly merchants: readonly string[] };

/** The users, and the merchants whose settings, are not what was sealed last: `bursar merchant seal` shows them. */
export async function readUnsealed(ctx: Sealing): Promise<Unsealed> {
  const { users, settings } = foreign(ctx, await readAll(ctx.db));
  return { users, merchants: settings.map(({ affiliateId }) => affiliateId) };
}

/** Seals these rows as they are now, after an operator has looked at them. Their sign-ins of before stay refused: users sign in again. */
export function vouch(ctx: Sealing): Promise<Unsealed> {
  return ctx.db.transaction(async (sql) => {
    await lockSealing(sql);
    const { users, settings } = foreign(ctx, await readAll(sql));
    for (const { usernameKey } of users) {
      const user = await lockUser(sql, usernameKey);
      if (user !== null) await changeUser(ctx, sql, user);
    }
    for (const { merchantId } of settings) await sealSettings(ctx.ports, sql, merchantId, await lockSettings(sql, merchantId));
    await vouchForLinks(ctx, sql);
    // nobody can vouch for a price: they are fetched again
    await deleteRates(sql, await foreignRates(sql, ctx.ports.seals, ctx.ports.clock.now()));
    return { users, merchants: settings.map(({ affiliateId }) => affiliateId) };
  });
}

/** SEAL-1: whoever writes to the database without the key changes no user, no guard of payouts and no price that goes unnoticed. */
export async function auditSeals(ctx: Sealing): Promise<Answer> {
  const says = 'users, settings, keys of tokens and prices are what was sealed, and none is older';
  // a command in another folder cannot tell
  if (!ctx.ports.seals.isKnown())
    return { id: 'SEAL-1', says: `${says} (not compared: there is no key here)`, findings: [], more: false };
  const { users, settings, keys } = foreign(ctx, await readAll(ctx.db));
  const prices = await foreignRates(ctx.db, ctx.ports.seals, ctx.ports.clock.now());
  const findings = [
    ...users.map(({ usernameKey }) => `user ${usernameKey} is not what was sealed: it cannot sign in`),
    ...settings.map(({ affiliateId }) => `the settings of ${affiliateId} are not what was sealed: its payouts wait for approval`),
    ...keys.map(({ kid }) => `the key ${kid} of tokens is not what was sealed: no token counts by it`),
    ...prices.map((currency) => `the price of ${currency} is not what was sealed: nothing is sold, paid or converted by it`),
  ];
  return { id: 'SEAL-1', says, findings: findings.slice(0, SHOWN), more: findings.length > SHOWN };
}
