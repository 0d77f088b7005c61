-- Lists by label, status and currency find their rows without reading the merchant's others. One index serves status, currency and both: a
-- list by one of them takes the newest of each of the few values of the other. The label comes first in its index, for operators who know
-- nothing else of a transaction.
create index transactions_label on transactions (label, merchant_id, created_at, id) where label is not null;
create index transactions_kind on transactions (merchant_id, status, currency, created_at, id);
