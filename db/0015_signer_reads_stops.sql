-- The signer looks itself at what stops payouts before it signs a batch for the first time.
grant select on breakers to bursar_signer;
grant select on ledger.balance to bursar_signer;
