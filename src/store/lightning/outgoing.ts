// What leaves over Lightning, as the rows of payouts say: the audit compares it with the ledger.
/** SQL: what payouts have taken out of our channels, or may take: the amount, and the fee, which is the highest until the node has said the real one. */
export const OVER_LIGHTNING = `select case when p.reimburses is not null then p.amount when p.status = 'completed' then p.amount + p.fee else p.amount + p.fee_max end as amount,
                    p.status <> 'completed' as is_open
               from payouts p join lightning_payments l on l.payout_id = p.id
              where p.status = 'completed' or (p.status = 'processing' and l.state = 'sent')`;
