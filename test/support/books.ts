// A ledger in memory with the rules that the database enforces: balanced per currency, each account at most once in an entry, each key
// once, each payment in it at most once and taken back at most once, no locked account below zero. The judge's tests post into it.
import { expect } from 'vitest';
import { CURRENCY_CODES } from '../../src/core/currency.ts';
import type { Balances, Entry, Part } from '../../src/core/judge/case.ts';
import { sum } from '../../src/core/money.ts';

const LOCKED = /^(merchant:|suspense:|refund_payable:)/;
const LOCKED_DEBIT = /^asset:/;

export type Books = {
  readonly entries: Map<string, Entry>;
  post(entry: Entry): void;
  /** In the account's normal direction. */
  of(code: string): bigint;
  balances(merchantId: bigint): Balances;
};

export function newBooks(): Books {
  const entries = new Map<string, Entry>();
  const accounts = new Map<string, bigint>();
  const parts = { byKey: new Map<string, Part>(), reversed: new Set<string>() };
  const of = (code: string) => {
    const debit = accounts.get(code) ?? 0n;
    return LOCKED_DEBIT.test(code) ? debit : -debit;
  };
  return {
    entries,
    of,
    post(entry) {
      expect(entries.has(entry.key), `the key ${entry.key} was used before`).toBe(false);
      expect(entry.postings.length, `${entry.key} has too few lines`).toBeGreaterThanOrEqual(2);
      expect(new Set(entry.postings.map((line) => line.account)).size, `${entry.key} touches an account twice`).toBe(
        entry.postings.length,
      );
      const sums = new Map<string, bigint>();
      for (const line of entry.postings) {
        const currency = /[A-Z]+$/.exec(line.account)?.[0] ?? '';
        expect(line.amount, `${entry.key} has an empty line`).not.toBe(0n);
        sums.set(currency, (sums.get(currency) ?? 0n) + line.amount);
        accounts.set(line.account, (accounts.get(line.account) ?? 0n) + line.amount);
      }
      for (const [currency, total] of sums) expect(total, `${entry.key} is not balanced in ${currency}`).toBe(0n);
      for (const { account } of entry.postings)
        if (LOCKED.test(account) || LOCKED_DEBIT.test(account))
          expect(of(account) >= 0n, `${entry.key} overdraws ${account}`).toBe(true);
      for (const part of entry.parts) bookPart(parts, part);
      if (entry.parts.length > 0) {
        const moved = entry.postings.filter((line) => line.account.startsWith('asset:chain:')).map((line) => line.amount);
        expect(sum(entry.parts.map((part) => part.amount)), `the parts of ${entry.key} are what it moves`).toBe(sum(moved));
      }
      entries.set(entry.key, entry);
    },
    balances: (merchantId) =>
      new Map(
        CURRENCY_CODES.map((code) => [
          code,
          {
            available: of(`merchant:${merchantId}:available:${code}`),
            receivable: of(`asset:receivable:merchant:${merchantId}:${code}`),
          },
        ]),
      ),
  };
}

function bookPart({ byKey, reversed }: { byKey: Map<string, Part>; reversed: Set<string> }, part: Part): void {
  expect(byKey.has(part.key), `the key ${part.key} was used before`).toBe(false);
  byKey.set(part.key, part);
  if (part.reversesKey === null) return;
  expect(byKey.get(part.reversesKey)?.amount, `${part.key} takes back what was never posted`).toBe(-part.amount);
  expect(reversed.has(part.reversesKey), `${part.reversesKey} is taken back twice`).toBe(false);
  reversed.add(part.reversesKey);
}
