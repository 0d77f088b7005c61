-- An operator's word that what made an output of a batch can be in no block any more, as the height that was read then: what undid it is not
-- known (what its payer's payer had spent is not followed). Void where a block has had it since. Who has said so, and why, is with the batch.
alter table outgoing_inputs add column undone_height integer;
alter table outgoing_batches add column given_up text;
grant update (undone_height) on outgoing_inputs to bursar_app;
