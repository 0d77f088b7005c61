-- Columns of the judge in the words of the code.
alter table transactions rename column need to amount_due;
alter table transactions rename column word to merchant_decision;
alter table transactions rename column why to review_cause;
alter table transactions rename column barred to accepted_only_by_hand;
