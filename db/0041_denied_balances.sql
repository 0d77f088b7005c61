-- What one node says that an address of ours holds, where another one says more: only the most counts, and that one of them denies it is told.
alter table address_balances add column said_less units, add column said_less_by text,
  add constraint address_balances_said_less_check check ((said_less is null) = (said_less_by is null) and said_less >= 0 and said_less < found);
create index address_balances_denied on address_balances (currency, script) where said_less is not null;
