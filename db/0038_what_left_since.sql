-- A signer whose folder was put back asks what has left since a time.
create index outgoing_attempts_signed on outgoing_attempts (signed_at) where sequence > 0;
create index lightning_payments_asked on lightning_payments (asked_at) where asked_at is not null;
