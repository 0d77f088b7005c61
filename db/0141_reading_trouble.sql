-- Why the second reading cannot go on although its node can be asked (a block that the node has pruned, an answer that is wrong); null while
-- it can. The audit is red as long as it stands: what is not compared is not known to agree.
alter table chain_reconciled add column trouble text;
