-- The signer signs nonces in their order; which of them blocks have used without it is in these rows.
grant select on outgoing_inputs to bursar_signer;
