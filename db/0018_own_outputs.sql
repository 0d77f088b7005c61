-- An output at an address of our own that a miner made with his block can be spent only when it is mature: whoever mines may pay one to our change.
alter table own_outputs add column coinbase boolean not null default false;
-- Capital that a reorganisation below its final depth has taken out of its block: booked as lost, and as capital again when it is back. How often is
-- in the key of each entry.
alter table own_outputs add column lost integer not null default 0 check (lost >= 0);
grant update (lost) on own_outputs to bursar_app;
create index own_outputs_gone on own_outputs (currency) where booked and height is null;
