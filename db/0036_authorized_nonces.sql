-- Nonces of our addresses on Ethereum's chain that a block shows to be used without a transaction of theirs (EIP-7702): whoever has the key has signed an
-- authorization with it, and anybody may send that. An operator has them booked.
create table authorized_nonces (
  currency   text not null,
  -- sender and nonce, as in outgoing_inputs
  sender     text not null,
  nonce      integer not null,
  -- what carries the authorization
  txid       text not null,
  height     integer not null,
  block_hash text not null,
  said_by    text not null,
  at         timestamptz not null,
  primary key (currency, sender, nonce)
);
revoke update on authorized_nonces from bursar_app;
grant select on authorized_nonces to bursar_signer;
