// What our nodes say that a transaction costs: asked by the workers, read where a payout is requested and where one is priced.
import type { CurrencyCode } from '../../core/currency.ts';
import type { Sql } from '../postgres/connect.ts';

/** @param feeRate minor units per 1,000 virtual bytes */
export async function saveFeeRate(sql: Sql, currency: CurrencyCode, feeRate: bigint, atMs: number): Promise<void> {
  await sql.query({
    name: 'save_fee_rate',
    text: `insert into fee_rates (currency, fee_rate, asked_at) values ($1, $2, $3)
             on conflict (currency) do update set fee_rate = excluded.fee_rate, asked_at = excluded.asked_at
             where fee_rates.fee_rate <> excluded.fee_rate or fee_rates.asked_at < excluded.asked_at - interval '5 minutes'`,
    values: [currency, feeRate, new Date(atMs)],
  });
}

/** The last one that a node reported, however old; null = none ever did. */
export async function readFeeRate(sql: Sql, currency: CurrencyCode): Promise<bigint | null> {
  const { rows } = await sql.query<{ fee_rate: bigint }>({
    name: 'read_fee_rate',
    text: 'select fee_rate from fee_rates where currency = $1',
    values: [currency],
  });
  return rows[0]?.fee_rate ?? null;
}

/** Writes why the payouts that are next in a currency do not leave; null = nothing stands against them. */
export async function savePayoutsWait(sql: Sql, currency: CurrencyCode, why: string | null): Promise<void> {
  await sql.query({
    name: 'save_payouts_wait',
    text: 'update fee_rates set payouts_wait = $2 where currency = $1 and payouts_wait is distinct from $2',
    values: [currency, why],
  });
}

const SIGNER_SILENT = 'the signer does not answer';

/** Writes that nothing of these currencies is signed because the signer does not answer, where nothing else stands against it. */
export async function saveSignerSilent(sql: Sql, currencies: readonly string[]): Promise<void> {
  await sql.query({
    name: 'save_signer_silent',
    text: 'update fee_rates set payouts_wait = $1 where currency = any ($2) and payouts_wait is null',
    values: [SIGNER_SILENT, currencies],
  });
}

/** It has answered. */
export async function saveSignerAnswers(sql: Sql): Promise<void> {
  await sql.query({
    name: 'save_signer_answers',
    text: 'update fee_rates set payouts_wait = null where payouts_wait = $1',
    values: [SIGNER_SILENT],
  });
}
