-- What the signer has signed for batches that are not here, or are here without it: it waits until everything that has left is known. A later signature may be
-- stored meanwhile, in another currency, so a worker that begins asks the signer again from the first of these.
create table waiting_signatures (
  currency text not null,
  txid     text collate "C" not null,
  -- the signer's own number of it
  sequence bigint not null,
  primary key (currency, txid)
);
revoke update on waiting_signatures from bursar_app;
