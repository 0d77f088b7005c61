-- What a block shows one of our addresses on Ethereum's chain to have sent to another one of ours, and what nobody here has signed: database and signer,
-- put back together, have forgotten it. It is booked once its block is final.
create table forgotten_moves (
  currency   text not null,
  txid       text not null,
  -- sender and nonce, as in outgoing_inputs
  sender     text not null,
  nonce      integer not null,
  height     integer not null,
  block_hash text not null,
  primary key (currency, txid)
);
