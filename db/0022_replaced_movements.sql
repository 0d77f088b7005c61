-- The outputs of ours (`txid:vout`) that a transaction which was not signed here spends: one that is in no block is over when another has spent them
-- for good.
alter table unknown_movements add column spends text[];
