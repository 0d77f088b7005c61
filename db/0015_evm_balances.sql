-- What is known of thousands of addresses on Ethereum's chain is compared every hour with what a node says that they hold: by the address, and
-- the addresses in their order without the orders of other chains.
drop index outgoing_batches_target;
create index outgoing_batches_target on outgoing_batches (target) where target is not null;
create index own_outputs_script on own_outputs (script);
create index transactions_evm on transactions (id) where script is not null and currency in ('ETH', 'USDT');
