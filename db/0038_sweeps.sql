-- Payments in ether and tokens move from the addresses of their transactions to the address that payouts leave from. Each such transaction is a
-- batch without payouts: it has the lease, the attempts and the one input (sender and nonce) of every other batch.

alter table outgoing_batches
  -- sweep: from the address of its input to the one that payouts leave from; top_up: ether for gas to an address of ours
  add column purpose text not null default 'payout' check (purpose in ('payout', 'sweep', 'top_up')),
  -- the output script of whom a sweep or a top-up pays; null of payouts
  add column target bytea,
  add constraint outgoing_batches_target_check check ((purpose = 'payout') = (target is null));

create index outgoing_batches_target on outgoing_batches (target) where purpose = 'top_up';
