-- When a merchant's call first asked our node to cancel an invoice: committed before the node is asked, so that a call which is cut off after that is finished.
alter table lightning_invoices add column cancel_asked_at timestamptz;
create index lightning_invoices_cancelling on lightning_invoices (window_ends_at) where cancel_asked_at is not null;
