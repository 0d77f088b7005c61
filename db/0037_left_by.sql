-- By which transaction of somebody else an address of ours has sent what is gone, where an operator has booked that (EIP-7702): it is booked once.
alter table written_off add column left_by text;
update written_off set left_by = split_part(evidence, ':', 1)
 where batch_id is null and amount > 0 and evidence ~ '^0x[0-9a-f]{64}: it has left beside what else it has sent$';
