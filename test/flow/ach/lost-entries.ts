// What tests of lost entries share: a bank that has a forgotten file to an account of each test's own, and what is booked of it.
import { beforeEach, expect, vi } from 'vitest';
import { readNachaFile } from '../../../src/core/ach/nacha-reader.ts';
import { recoverAchFile } from '../../../src/flow/ach/restored-files.ts';
import { resolvePayout } from '../../../src/flow/payouts/resolve.ts';
import { clearBreakers } from '../../../src/store/ledger/breakers.ts';
import { testBank } from '../../support/bank.ts';
import { ctx, world } from '../payouts/merchants.ts';
import { balanceOf, forgottenFile, putBack, requested as requestedBy } from './forgotten-files.ts';

export const CENTS = 9_900n;
const LOST = 'expense:unknown_outflow:USD';
const BANK = 'asset:bank:USD';
const OPERATOR = 'equity:operator:USD';
let accounts = 0;
/** Of each test its own: what is open of one account holds up what goes there. */
export const account = (): string => String(700_000_000 + accounts);
export const requested = (amount = '100', by?: bigint) => requestedBy(null, { amount, account: account(), by });
export let bank: ReturnType<typeof testBank>;
const booked = async () => ({ bank: await balanceOf(BANK), lost: await balanceOf(LOST), own: await balanceOf(OPERATOR) });
export let before: Awaited<ReturnType<typeof booked>>;

/** What is changed is counted from now on, for an account of which nothing is open. */
export async function fromHere(): Promise<void> {
  accounts += 1;
  before = await booked();
}
export function lostEntriesForEach(): void {
  beforeEach(async () => {
    bank = testBank(ctx, { dedupes: false });
    await bank.look();
    await fromHere();
  });
}
export async function changed() {
  const now = await booked();
  return { bank: now.bank - before.bank, lost: now.lost - before.lost };
}

/** A file that the bank has and our folder does not, to the account. */
export function atBank(payouts: readonly { readonly id: string; readonly cents: bigint }[]) {
  const name = forgottenFile(bank, payouts, account());
  const bytes = bank.executed.at(-1)?.bytes as Uint8Array;
  const traces = readNachaFile(new TextDecoder().decode(bytes)).entries.map(({ trace }) => trace);
  return { name, bytes, trace: traces[0] as string };
}
/** The same, found by a look. */
export async function found(payouts: readonly { readonly id: string; readonly cents: bigint }[]) {
  const file = atBank(payouts);
  await putBack();
  await bank.look();
  return file;
}
/** A file that pays these amounts to the account, for payouts that nobody here knows; found by a look. */
export const forgotten = (...cents: readonly bigint[]) =>
  found(cents.map((one, at) => ({ id: `payout_nobody00000000${at}`, cents: one })));
export async function recovered({ name, bytes }: { readonly name: string; readonly bytes: Uint8Array }) {
  const done = await recoverAchFile(ctx, { name, bytes, by: 'ann', acceptsLoss: true });
  await clearBreakers(ctx.db, 'ann', world.now());
  await bank.look();
  return done.alike;
}
export const decide = (payoutId: string, outcome: 'paid' | 'failed') =>
  resolvePayout(ctx, { payoutId, outcome, evidence: 'the bank says so' });
/** That many sessions wait for a lock. */
export const waiting = (count: number) =>
  vi.waitFor(async () => {
    const text = `select count(*)::int as n from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()`;
    expect((await world.admin.query(text)).rows[0].n).toBe(count);
  }, 10_000);
/** The end of a business day. */
export async function nextFile(): Promise<void> {
  bank.cutOff();
  await bank.look();
}
