// The invariants of bank files and of what our bank holds, as SQL queries: see audit.ts.
import { PAID_BY_LOST } from '../ach/lost-entries.ts';
import type { Question } from './audit.ts';

/** What a refused file would have paid has not left; what came back has. */
const PAID = `select e.cents from ach_entries e join ach_files f on f.name = e.file where e.returned is null and f.state <> 'refused'`;

/** What payouts were found paid by a file that was refused since, until a price gives it back. */
const NOT_YET_BACK = `select d.amount from lost_ach_entries l join ach_files f on f.name = l.file
                       cross join lateral (${PAID_BY_LOST}) of join payouts d on d.id = of.id
                       where f.state = 'refused' and l.returned is null and d.status = 'completed'`;

/** The lines of files that are not sealed, as text whatever their bytes are. */
const LINES = `select f.name, l.line, substr(l.line, 80, 15) as trace from ach_files f
                 cross join lateral regexp_split_to_table(encode(f.bytes, 'escape'), E'\\n') as l(line)
                where substring(f.bytes from 1 for 4) = '101 '::bytea and l.line like '6%'`;
/** When a file `f` was executed after it had been refused, as far as it paid anybody; null where it was not. */
const EXECUTED_AT = `(select max(n.created_at) from (
                         select 'unknown:usd:' || f.name as of union all select 'po:' || e.payout_id from ach_entries e where e.file = f.name) k
                       join ledger.entry n on n.key >= k.of || ':' and n.key < k.of || ';' and n.key like '%:executed')`;
/** At most two banking days after a settlement that is on the next one. */
const LONGEST_DAYS = 14;

export const OF_BANK_FILES: readonly Question[] = [
  {
    id: 'INV-20',
    says: 'every bank file is what its payouts and the ledger say, and every payout that was handed over is in one',
    text: `with files as (
             select f.name, f.credits - f.lost as credits, f.bytes, f.sha256, sum(e.cents) as entries, sum(p.amount) as payouts, sum(l.amount) as ledger
               from ach_files f left join ach_entries e on e.file = f.name left join payouts p on p.id = e.payout_id
               left join lateral (
                 select sum(o.amount) as amount from ledger.entry n join ledger.posting o on o.entry_id = n.id join ledger.account a on a.id = o.account_id
                  where n.key = 'po:' || e.payout_id || ':sign:1' and a.kind = 'asset_bank_outbound') l on true
              group by f.name)
           select 'bank file ' || name || ' pays ' || credits || ', its entries are ' || coalesce(entries, 0) || ', its payouts ' || coalesce(payouts, 0)
                  || ', the ledger says ' || coalesce(ledger, 0) as what
             from files where credits is distinct from coalesce(entries, 0) or credits is distinct from coalesce(payouts, 0) or credits is distinct from coalesce(ledger, 0)
           union all
           select 'bank file ' || name || ' is not the one that was stored' from files where substring(bytes from 1 for 4) = '101 '::bytea and sha256(bytes) <> sha256
           union all
           select p.id || ' is ' || p.status || ', ' || p.step || ' and in ' || count(e.trace) || ' bank files' from payouts p
             left join ach_entries e on e.payout_id = p.id
            where p.method = 'ach' and not p.resolved group by p.id
           having count(e.trace) <> 1 and (p.step = 'batched' or p.status = 'completed') or count(e.trace) <> 0 and p.step in ('held', 'queued')
           union all
           select 'trace number ' || e.trace || ' pays ' || p.id || ', which is by ' || p.method from ach_entries e join payouts p on p.id = e.payout_id
            where p.method <> 'ach'
           union all
           select p.id || ' came back as ' || e.returned || ' and is ' || p.status from ach_entries e join payouts p on p.id = e.payout_id
            where e.returned is not null and p.status <> 'failed'
           union all
           select 'bank file ' || f.name || ' is ' || f.state || ', and ' || p.id || ' in it is ' || p.status
             from ach_files f join ach_entries e on e.file = f.name join payouts p on p.id = e.payout_id
            where f.state = 'over' and p.status = 'processing' or f.state = 'refused' and p.status <> 'failed'
               or f.state <> 'over' and p.status = 'completed'
           union all
           select 'bank file ' || name || ' settles on ' || settles_on || ', and may come back until ' || returns_end from ach_files f
            where returns_end > settles_on + interval '${LONGEST_DAYS} days'
               or settles_on > greatest(created_at, handed_at) + interval '${LONGEST_DAYS} days'
                  and settles_on > coalesce(${EXECUTED_AT}, created_at) + interval '${LONGEST_DAYS} days'
           union all
           select 'bank file ' || f.name || ' has another line for trace number ' || e.trace || ' than ' || p.id
             from ach_entries e join ach_files f on f.name = e.file join payouts p on p.id = e.payout_id
             left join (${LINES}) l on l.name = f.name and l.trace = e.trace
            where substring(f.bytes from 1 for 4) = '101 '::bytea
              and (l.line is null or substr(l.line, 40, 15) <> rpad(upper(right(p.id, 15)), 15) or substr(l.line, 30, 10) <> lpad(e.cents::text, 10, '0')
                   or p.destination like 'ach:%' and (substr(l.line, 4, 9) <> split_part(p.destination, ':', 2)
                                                      or rtrim(substr(l.line, 13, 17)) <> split_part(p.destination, ':', 3)))`,
  },
  {
    id: 'BANK-1',
    says: 'what our bank holds is what was paid in less what has left it, and what is on its way is what open payouts are handed over for',
    text: `with bank as (select coalesce(sum(amount), 0) as amount from ledger.account_balance where kind = 'asset_bank'),
           paid_in as (
             select coalesce(sum(p.amount), 0) as amount from ledger.entry e join ledger.posting p on p.entry_id = e.id
               join ledger.account a on a.id = p.account_id where e.kind = 'capital' and a.kind = 'asset_bank'),
           paid as (select coalesce(sum(cents), 0) as amount from (${PAID} union all select lost from ach_files where state <> 'refused'
                     union all select -l.cents from lost_ach_entries l join ach_files f on f.name = l.file where l.returned is not null and f.state <> 'refused'
                     union all ${NOT_YET_BACK}
                     union all select amount from payouts d where method = 'ach' and resolved and status = 'completed'
                       and not exists (select from ledger.entry e where e.key = 'adopted:' || d.id)) q),
           out as (select coalesce(sum(amount), 0) as amount from ledger.account_balance where kind = 'asset_bank_outbound'),
           open as (select coalesce(sum(amount), 0) as amount from payouts where method = 'ach' and step = 'batched')
           select 'the bank: ledger ' || bank.amount || ', paid in less paid out ' || paid_in.amount - paid.amount as what from bank, paid_in, paid
            where bank.amount <> paid_in.amount - paid.amount
           union all
           select 'on its way: ledger ' || out.amount || ', payouts in files ' || open.amount from out, open where out.amount <> open.amount`,
  },
];
