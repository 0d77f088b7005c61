// The payouts about which a person is asked, or was, because of something that was booked as paid to nobody known.
import type { CurrencyCode } from '../../../core/currency.ts';
import type { AskedAbout } from '../../../core/payouts/lost-questions.ts';
import type { Sql } from '../../postgres/connect.ts';

/** Where it is: an output of a transaction, or (USD) the entry of a trace number in a bank file, whose name is in the place of a txid. */
export type LostPlace = { readonly currency: CurrencyCode | 'USD'; readonly txid: string; readonly place: string };

/**
 * Those because of what was lost in these transactions, or bank files. One that something else is known to pay says nothing of what was lost, nor does one
 * that has ended without a person's word, nor, unless it was found paid, a reimbursement that goes elsewhere: it sends back something else. @returns by place
 */
export async function askedAbout(
  sql: Sql,
  currency: LostPlace['currency'],
  txids: readonly string[],
): Promise<(place: Omit<LostPlace, 'currency'>) => readonly AskedAbout[]> {
  type Row = { txid: string; place: string; payoutId: string; merchantId: bigint; amount: string; isPaid: boolean };
  const { rows } = await sql.query<Row>({
    name: 'asked_about_lost',
    text: `select q.txid, q.place, q.payout_id as "payoutId", p.merchant_id as "merchantId", p.amount, p.status = 'completed' as "isPaid"
             from lost_questions q join payouts p on p.id = q.payout_id
            where q.currency = $1 and q.txid = any ($2) and (p.step <> 'ended' or p.resolved)
              and not exists (select from outgoing_shares s where s.payout_id = p.id) and not exists (select from ach_entries e where e.payout_id = p.id)
              and (p.reimburses is null or p.status = 'completed' or exists (
                select from lost_outputs l where l.currency = q.currency and l.txid = q.txid and l.vout::text = q.place and l.script = p.script))`,
    values: [currency, [...new Set(txids)]],
  });
  const asked = Map.groupBy(rows, ({ txid, place }) => `${txid} ${place}`);
  return ({ txid, place }) =>
    (asked.get(`${txid} ${place}`) ?? []).map(({ payoutId, merchantId, amount, isPaid }) => ({
      payoutId,
      merchantId,
      amount: BigInt(amount),
      isPaid,
    }));
}

/** Of these payouts those about which a person is asked already, or was. */
export async function alreadyAsked(sql: Sql, payoutIds: readonly string[]): Promise<ReadonlySet<string>> {
  const { rows } = await sql.query<{ id: string }>({
    name: 'already_asked_about_lost',
    text: 'select payout_id as id from lost_questions where payout_id = any ($1)',
    values: [payoutIds],
  });
  return new Set(rows.map(({ id }) => id));
}

/** A person is asked about a payout. */
export async function insertQuestion(sql: Sql, payoutId: string, { currency, txid, place }: LostPlace): Promise<void> {
  await sql.query({
    name: 'insert_lost_question',
    text: 'insert into lost_questions (payout_id, currency, txid, place) values ($1, $2, $3, $4)',
    values: [payoutId, currency, txid, place],
  });
}

/** Something else than what was lost is known to pay these payouts: whatever was asked about them is open again. */
export async function dropQuestions(sql: Sql, payoutIds: readonly string[]): Promise<void> {
  await sql.query({
    name: 'drop_lost_questions',
    text: 'delete from lost_questions where payout_id = any ($1)',
    values: [payoutIds],
  });
}
