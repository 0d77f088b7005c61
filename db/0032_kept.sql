-- What of a payout or reimbursement has left and not arrived at its payee, as its final block shows: a token's contract has kept it, or has done
-- something else with it.
alter table payouts add column kept units check (kept > 0 and kept <= amount);
grant update (kept) on payouts to bursar_app;
