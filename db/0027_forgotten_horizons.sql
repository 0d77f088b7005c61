-- A worker that starts resets marks of another cluster here too (0011); the revocation of 0025 took that away, and no worker could start.
grant update (made_in) on outgoing_inputs to bursar_app;
