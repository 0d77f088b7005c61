-- What a payout was requested with never changes: the service's sessions may only move it on. A column that a later file adds and that changes
-- needs a grant of its own.
revoke update, delete on payouts, outgoing_attempts, outgoing_shares, reimbursement_shares from bursar_app;
grant update (status, step, held_reason, approved_at, approved_by, batch_id, batch_position, fee, given_back, error, completed_at, sequence, noted, resolved)
  on payouts to bursar_app;
grant update (sent_at, height, block_hash) on outgoing_attempts to bursar_app;
-- the amount and script of an output are what the chain shows
revoke update on outgoing_inputs, own_outputs from bursar_app;
grant update (spent_by, spent_height, freed) on outgoing_inputs to bursar_app;
grant update (height, block_hash, booked, spent) on own_outputs to bursar_app;
