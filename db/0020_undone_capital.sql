-- What our own addresses get is capital, and batches spend it; what it spends itself is in `payment_inputs`, as with payments. The block that holds
-- another transaction in its place, while none holds what made it: a batch that spends it can be mined no more once that block is final.
alter table own_outputs add column gone_height integer;
-- Only a block at its own height can hold what made it: a coinbase, and what leaves Litecoin's extension block.
alter table own_outputs add column of_block boolean not null default false;
update own_outputs set of_block = true where coinbase;
grant update (gone_height) on own_outputs to bursar_app;
create index own_outputs_undone on own_outputs (currency, gone_height) where gone_height is not null;
