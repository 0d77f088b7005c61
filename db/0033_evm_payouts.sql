-- Payouts and reimbursements on Ethereum's chain. Sender and nonce of a transaction stand in the place of an input, so that all transactions of
-- a batch spend the same one; what a transaction has cost is known only once a block holds it.

-- one address of ours may hold ether and a token
alter table own_outputs drop constraint own_outputs_script_fkey;
alter table own_addresses drop constraint own_addresses_script_key;
alter table own_addresses drop constraint own_addresses_pkey;
alter table own_addresses add primary key (account_xpub_id, address_index, currency);
alter table own_addresses add constraint own_addresses_script_key unique (script, currency);
alter table own_outputs add constraint own_outputs_script_fkey foreign key (script, currency) references own_addresses (script, currency);

alter table outgoing_attempts
  -- what it asks for: the most that a unit of gas may cost, in wei; vbytes is the most gas. Null on other chains
  add column max_fee  units check (max_fee > 0),
  -- how it ended, as the block that holds it shows: paid, failed (it changed nothing but its nonce), or unclear (it says that it did something else)
  add column result   text check (result in ('paid', 'failed', 'unclear')),
  -- what its gas has cost, in wei
  add column gas_paid units check (gas_paid >= 0);
grant update (result, gas_paid) on outgoing_attempts to bursar_app;

-- what the first transaction of a batch offers besides its fee_rate (the most that a unit of gas may cost, in wei), and the most gas it may use
alter table outgoing_batches
  add column tip       units check (tip > 0),
  add column gas_limit integer check (gas_limit > 0);
