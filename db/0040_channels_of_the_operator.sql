-- What our channels hold of the operator's own is no entry: payouts over Lightning may take more than payments brought there.
set role bursar_ledger;
update ledger.account_kind set allow_negative = true where kind = 'asset_lightning';
reset role;
