// What the audit asks of Lightning: what the node lists as received and as paid, the payments, the payouts and the ledger against each other.
import { LIGHTNING } from '../../core/currencies/lightning.ts';
import type { Question } from '../ledger/audit.ts';
import { OVERDUE } from './comparison.ts';
import { ROUTED } from './operators-part.ts';
import { OVER_LIGHTNING } from './outgoing.ts';
import { ASKED_BY, FOUND_PAID, UNDER_WAY_OF_OPERATOR } from './sent-payments.ts';

/** LN-1 to LN-6. A red one stops payouts. */
export const OF_LIGHTNING: readonly Question[] = [
  {
    id: 'LN-1',
    says: 'every invoice that the Lightning node lists as settled is a payment of its amount, and the ledger has what it brought',
    text: `select r.txid || ' of ' || r.amount || ' to ' || r.transaction_id || case
                    when p.id is null then ' is no payment'
                    when p.amount <> r.amount then ' is recorded as ' || p.amount
                    else ' is recorded for ' || p.transaction_id end as what
             from chain_receipts r left join payments p on p.currency = r.currency and p.txid = r.txid and p.vout = r.vout
            where r.currency = '${LIGHTNING.code}' and (p.id is null or p.amount <> r.amount or p.transaction_id <> r.transaction_id)
           union all
           select p.txid || ' of ' || p.amount || ' is booked as ' || d.amount
             from payments p join ledger.part d on d.key = p.part_key where p.currency = '${LIGHTNING.code}' and d.amount <> p.amount`,
  },
  {
    id: 'LN-2',
    says: 'every payment over Lightning is an invoice that the node lists as settled',
    text: `select p.txid || ' of ' || p.amount || ' to ' || p.transaction_id || ' is a payment, and the node does not list its invoice as settled (bursar payout recover)' as what
             from payments p
            where p.currency = '${LIGHTNING.code}' and p.paid_by is null and ${OVERDUE}
              and not exists (select 1 from chain_receipts r where r.currency = p.currency and r.txid = p.txid and r.vout = p.vout)`,
  },
  {
    id: 'LN-3',
    says: 'every settled invoice of ours has its transaction and its payment',
    text: `select i.payment_hash || ' of ' || i.paid_msat || ' msat was paid, and ' || i.transaction_id || ' has no such payment' as what
             from lightning_invoices i
            where i.state = 'settled' and not exists (select 1 from payments p where p.currency = '${LIGHTNING.code}' and p.txid = i.payment_hash)`,
  },
  {
    id: 'LN-4',
    says: 'what the ledger holds at the Lightning node is what payments brought, less what payouts have taken, and the capital and fractions that are booked',
    text: `select 'ledger ' || l.amount || ', payments less payouts and the rest ' || r.amount as what
             from (select coalesce(sum(amount), 0) as amount from ledger.account_balance where kind = 'asset_lightning') l
             cross join (select coalesce((select sum(amount) from decided_payments where currency = '${LIGHTNING.code}' and part_key is not null), 0)
                              - coalesce((select sum(amount) from (${OVER_LIGHTNING}) o), 0)
                              + coalesce((select sum(p.amount) from ledger.posting p join ledger.account a on a.id = p.account_id and a.kind = 'asset_lightning'
                                            join ledger.entry e on e.id = p.entry_id where e.kind in ('capital', 'lightning_rounding', 'unknown_outflow')), 0) as amount) r
            where l.amount <> r.amount`,
  },
  {
    id: 'LN-5',
    says: 'what the Lightning node lists as paid, or under way, is what payouts have asked for, and none that failed was paid',
    text: `select 'node ' || s.node || ' has paid ' || s.payment_hash || ' of ' || s.amount_msat || ' msat, fee ' || s.fee_msat || ', which no payout here has asked for'
                  || ' (bursar payout recover)' as what
             from lightning_sent s where s.acknowledged_at is null and not (${UNDER_WAY_OF_OPERATOR})
              and not exists (select ${ASKED_BY})
           union all
           select a.payout_id || ' has failed, and node ' || s.node || ' has paid ' || s.payment_hash
             from lightning_sent s cross join lateral (select min(l.payout_id) as payout_id, bool_and(p.status = 'failed') as failed ${ASKED_BY}) a
            where s.acknowledged_at is null and s.state = 'succeeded' and a.failed
           union all
           select l.payout_id || ' was paid ' || p.amount || ' for a fee of ' || l.fee_msat || ' msat, and node ' || s.node || ' lists ' || s.amount_msat || ' msat, fee '
                  || s.fee_msat
             from lightning_payments l join payouts p on p.id = l.payout_id
             join lightning_sent s on s.payment_hash = l.payment_hash and s.node = l.node and s.state = 'succeeded'
            where l.state = 'paid' and (s.fee_msat <> l.fee_msat or s.amount_msat <> (p.amount - case when p.reimburses is null then 0 else p.fee_max end) * 1000)
           union all
           select l.payout_id || ' was paid as number ' || l.payment_index || ', and node ' || n.identity || ' does not list ' || l.payment_hash
                  || ' (bursar payout recover)'
             from lightning_payments l join lightning_nodes n on n.identity = l.node
            where l.state = 'paid' and l.forgotten_at is null and (l.doubted or l.payment_index <= n.payments_compared)
              and not exists (select from lightning_sent s where s.payment_hash = l.payment_hash and s.node = l.node)`,
  },
  {
    id: 'LN-6',
    says: 'what is on its way out over Lightning is what open payouts were committed for',
    text: `select 'ledger ' || l.amount || ', payouts ' || r.amount as what
             from (select coalesce(sum(amount), 0) as amount from ledger.account_balance where kind = 'asset_lightning_outbound') l
             cross join (select coalesce(sum(amount), 0) as amount from (${OVER_LIGHTNING}) o where o.is_open) r where l.amount <> r.amount`,
  },
];

/** What the operator may have done himself with the node stops nothing. */
export const TOLD_OF_LIGHTNING: readonly Question[] = [
  {
    id: 'LN-7',
    says: 'what the books have at the Lightning node was in its channels and its wallet when it was last looked at with nothing under way',
    text: `select 'node ' || identity || ' had ' || at_node || ' satoshis in its channels and its wallet, and the books have ' || booked_there || ' there: '
                  || (booked_there - at_node) || ' are not in them (bursar payout recover)' as what
             from lightning_nodes where at_node < booked_there and held_at = (select max(held_at) from lightning_nodes)`,
  },
  {
    id: 'LN-8',
    says: 'what the books have as earned by forwarding is what the Lightning nodes list',
    text: `select 'ledger ' || booked || ', nodes ' || read as what from (${ROUTED}) r where booked <> read`,
  },
  {
    id: 'LN-9',
    says: 'every invoice that was paid at the Lightning node and was made while this database was not compared with it was asked for here',
    text: `select 'node ' || node || ' was paid ' || paid_msat || ' msat for ' || payment_hash || ', made ' || to_char(added_at at time zone 'UTC', 'YYYY-MM-DD HH24:MI:SS')
                  || ' UTC, which no transaction here has asked for: of a copy that was put back its customer has paid for nothing (bursar payout recover)' as what
             from lightning_unknown_invoices where paid_msat is not null and acknowledged_at is null`,
  },
  {
    id: 'LN-10',
    says: 'none that an operator has found paid has failed at the Lightning node that had it',
    text: `select l.payout_id || ' was found paid by an operator, and node ' || n.identity || ', which had it as number ' || l.payment_index || ', does not list '
                  || l.payment_hash || ' as paid or under way: where its recipient does not have it, its merchant has paid for nothing (bursar payout recover)' as what
             from ${FOUND_PAID} and not exists (select from lightning_sent s where s.payment_hash = l.payment_hash and s.node = l.node)`,
  },
];
