// What must be true of each ledger entry when it is posted: a booked payment that is only nowhere has been so for ten minutes (rule 17), and
// whatever enters a merchant's available balance has repaid the receivable first. Asked by checks.ts after each look of a judge.
import { MINUTE } from './behaviour.ts';
import type { Model } from './model.ts';
import type { SimulatedService } from './simulated-service.ts';

const BOOKED_GONE = 10 * MINUTE;

/** What is wrong with the entries after this one. */
export async function wrongEntries(service: SimulatedService, model: Model, afterEntry: bigint): Promise<string[]> {
  return [...(await lostTooEarly(service, model, afterEntry)), ...(await notRepaid(service, afterEntry))];
}

async function lostTooEarly(service: SimulatedService, model: Model, afterEntry: bigint): Promise<string[]> {
  const { rows } = await service.db.query<{ key: string; of: string; at: Date }>({
    text: `select d.key, e.transaction_id as of, e.created_at as at from ledger.entry e join ledger.part d on d.entry_id = e.id
            where e.id > $1 and e.kind = 'deposit_lost' order by e.id`,
    values: [afterEntry],
  });
  return rows.flatMap(({ key, of, at }) => {
    const sent = model.known(key.split(':')[2] ?? '');
    // one whose payments are spent by somebody else is lost at once
    if (sent === undefined || sent.rivalled) return [];
    if (sent.hiddenSince === null) return [];
    const ms = at.getTime() - sent.hiddenSince;
    return ms >= BOOKED_GONE ? [] : [`${key} takes back what ${of} got, ${ms / 1000} s after the payment was gone`];
  });
}

async function notRepaid(service: SimulatedService, afterEntry: bigint): Promise<string[]> {
  const { rows } = await service.db.query<{ key: string; owes: string; entered: string }>({
    text: `select e.key, r.balance_after as owes, -p.amount as entered
             from ledger.entry e join ledger.posting p on p.entry_id = e.id join ledger.account a on a.id = p.account_id and a.kind = 'available'
             join ledger.account o on o.kind = 'receivable' and o.merchant_id = a.merchant_id and o.currency = a.currency,
                  lateral (select balance_after from ledger.posting where account_id = o.id and entry_id <= e.id order by entry_id desc limit 1) r
            where e.id > $1 and p.amount < 0 and r.balance_after > 0`,
    values: [afterEntry],
  });
  return rows.map(({ key, owes, entered }) => `${key} lets ${entered} enter available while ${owes} is owed`);
}
