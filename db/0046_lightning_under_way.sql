-- What a merchant has on its way over Lightning is counted before each payout.
create index payouts_under_way on payouts (merchant_id, step) where payment_hash is not null and step in ('queued', 'batched');

-- an operator has seen that a node which was restored has forgotten that it made this payment
alter table lightning_payments add column forgotten_at timestamptz;
