-- Reimbursements: coins that go back to a customer. Each is a row of `payouts` that no merchant sees there, and leaves through the same machine.
-- Its `amount` is all that it takes, the network fee included: the destination gets what the fee leaves. Its hold is in `refund_payable`.
alter table payouts drop constraint payouts_method_check;
alter table payouts add constraint payouts_method_check check (method in ('lightning', 'bitcoin', 'ach', 'usdt', 'reimbursement'));
alter table payouts
  -- the transaction whose coins go back; null for a payout
  add column reimburses text collate "C" references transactions,
  -- `whole`: everything of the currency; `excess`: what was in suspense
  add column part text check (part in ('whole', 'excess')),
  -- the judge has drawn the consequences of its end
  add column noted boolean not null default false,
  add constraint payouts_reimbursement_check check ((method = 'reimbursement') = (reimburses is not null) and (reimburses is null) = (part is null));
create index payouts_reimbursing on payouts (reimburses, created_at, id) where reimburses is not null;
create index payouts_unnoted on payouts (reimburses) where reimburses is not null and not noted;
-- one at a time
create unique index payouts_reimbursing_open on payouts (reimburses) where reimburses is not null and step <> 'ended';

-- the lists of payouts leave them out
drop index payouts_merchant;
drop index payouts_kind;
create index payouts_merchant on payouts (merchant_id, created_at, id) where reimburses is null;
create index payouts_kind on payouts (merchant_id, status, method, created_at, id) where reimburses is null;

-- What a reimbursement took of each payment, and from where.
create table reimbursed_coins (
  payout_id      text collate "C" not null references payouts,
  payment_id     bigint not null,
  from_available units not null check (from_available >= 0),
  from_suspense  units not null check (from_suspense >= 0),
  primary key (payout_id, payment_id),
  check (from_available + from_suspense > 0)
);
