-------------------------- MODULE LightningPayout --------------------------
(* Payouts over Lightning for ONE payment hash, as flow/lightning and
   worker/payouts/lightning/steps pay them.

   Two payouts (of two merchants, or the second after the first failed) want to
   pay the same invoice. The node remembers one payment per hash: SendPaymentV2
   is refused while it is under way and after success, and taken again after
   FAILED. A request may lie on the wire and arrive later than its sender lives.
   The node can be killed (an attempt may then stay IN_FLIGHT for good) and can
   be restored from an older backup (it then says NOT_FOUND for what it paid), or
   another node can be put in its place, which knows nothing of the hash.
   Its clock may be behind ours: it takes an invoice that has expired for us.
   House = TRUE: the invoice is one of our own, an outsider may pay it too.    *)
EXTENDS Integers, FiniteSets

CONSTANTS Payouts, Workers, MaxSend, House, Without
On(s) == s \notin Without

VARIABLES
  status,      \* per payout: none processing completed failed
  attempt,     \* per payout: attempt row committed
  wk,          \* per worker: [st, p, dl]  idle leased ; which payout ; dl: its send deadline (a lease number)
  epoch,       \* per payout
  wire,        \* send requests under way: [p, ep]
  sends,       \* bound
  node,        \* what TrackPaymentV2 says: NOT_FOUND IN_FLIGHT SUCCEEDED FAILED
  htlc,        \* what is really in the channels: none out(standing) paid ; and given back = none
  stuck,       \* IN_FLIGHT for good (killed between the disk and the channel)
  lost,        \* the node was restored from an older backup ; we noticed
  noticed,
  replaced,    \* never, now (another node is in its place, which knows nothing of this hash), or past: the first one is back
  expired,     \* the invoice
  paidTimes,   \* how often money left for this hash
  holdof,      \* per payout: hold still reserved
  held,        \* per payout: it waits (cool_down, approval, a breaker), and may be cancelled
  invoice,     \* our own invoice at our node: open canceled settled
  credited,    \* the other merchant's transaction: booked how often
  owner        \* its status: started timedout succeeded
vars == <<status, attempt, wk, epoch, wire, sends, node, htlc, stuck, lost, noticed, replaced, expired, paidTimes, holdof, held, invoice, credited, owner>>
ours == <<status, attempt, wk, epoch, holdof, held>>
lnd  == <<node, htlc, stuck, lost, expired, paidTimes>>
in   == <<invoice, credited, owner>>

Init ==
  /\ status = [p \in Payouts |-> "none"] /\ attempt = [p \in Payouts |-> FALSE] /\ epoch = [p \in Payouts |-> 0]
  /\ wk = [w \in Workers |-> [st |-> "idle", p |-> "-", ep |-> 0]] /\ wire = {} /\ sends = 0
  /\ node = "NOT_FOUND" /\ htlc = "none" /\ stuck = FALSE /\ lost = FALSE /\ noticed = FALSE /\ replaced = "never" /\ expired = FALSE /\ paidTimes = 0
  /\ holdof = [p \in Payouts |-> FALSE] /\ held = [p \in Payouts |-> FALSE]
  /\ invoice = "open" /\ credited = 0 /\ owner = "started"

\* unique index on the payment hash over all merchants, but for failed payouts
Request(p) == /\ status[p] = "none" /\ ~expired
              /\ (On("unique_hash") => \A q \in Payouts \ {p} : status[q] \in {"none", "failed"})
              /\ status' = [status EXCEPT ![p] = "processing"] /\ holdof' = [holdof EXCEPT ![p] = TRUE]
              /\ UNCHANGED <<attempt, wk, epoch, held, wire, sends, lnd, noticed, replaced, in>>
Lease(w, p) == /\ wk[w].st = "idle" /\ status[p] = "processing" /\ ~held[p] /\ epoch[p] < 2
               /\ epoch' = [epoch EXCEPT ![p] = @ + 1]
               /\ wk' = [wk EXCEPT ![w] = [st |-> "leased", p |-> p, ep |-> epoch[p] + 1]]
               /\ UNCHANGED <<status, attempt, holdof, held, wire, sends, lnd, noticed, replaced, in>>
\* a crash, or the end of its lease: its macaroon is refused from then on
Crash(w) == /\ wk[w].st # "idle" /\ wk' = [wk EXCEPT ![w].st = "idle"]
            /\ UNCHANGED <<status, attempt, epoch, holdof, held, wire, sends, lnd, noticed, replaced, in>>
Mine(w) == wk[w].st = "leased" /\ status[wk[w].p] = "processing" /\ wk[w].ep = epoch[wk[w].p] /\ ~held[wk[w].p]
\* under the payout's lock: it may have been held, cancelled or ended since it was leased
Commit(w) == /\ wk[w].st = "leased" /\ wk[w].ep = epoch[wk[w].p] /\ ~House /\ ~attempt[wk[w].p]
             /\ (On("commit_looks_at_payout") => status[wk[w].p] = "processing" /\ ~held[wk[w].p])
             /\ attempt' = [attempt EXCEPT ![wk[w].p] = TRUE]
             /\ UNCHANGED <<status, wk, epoch, holdof, held, wire, sends, lnd, noticed, replaced, in>>
\* the worker looked at its lease, then writes the request to the wire. It may be slow: the look was earlier.
Send(w) == /\ wk[w].st = "leased" /\ ~House /\ sends < MaxSend
           /\ (On("commit_before_send") => attempt[wk[w].p]) /\ ~noticed /\ replaced # "now"
           /\ wire' = wire \cup {[p |-> wk[w].p, ep |-> wk[w].ep]} /\ sends' = sends + 1
           /\ wk' = [wk EXCEPT ![w].st = "idle"]
           /\ UNCHANGED <<status, attempt, epoch, holdof, held, lnd, noticed, replaced, in>>
\* the request carries a macaroon with the caveat time-before: after the deadline the node itself refuses it
Deadline == On("send_deadline") /\ wire # {} /\ wire' = {} /\ UNCHANGED <<ours, sends, lnd, noticed, replaced, in>>
OnWire(p) == \E r \in wire : r.p = p
Arrive == \E r \in wire :
  /\ wire' = wire \ {r}
  \* or the node refuses it for good: every text of LND that says so comes before it begins a payment
  /\ IF node \in {"NOT_FOUND", "FAILED"}
     THEN \/ node' = "IN_FLIGHT" /\ htlc' \in {htlc, "out"} \ {"none"} /\ stuck' = FALSE
          \/ UNCHANGED <<node, htlc, stuck>>
     ELSE UNCHANGED <<node, htlc, stuck>>
  /\ UNCHANGED <<ours, sends, lost, expired, paidTimes, noticed, replaced, in>>
\* the payee takes or gives back
Settle == /\ htlc = "out" /\ htlc' = "none" /\ paidTimes' = paidTimes + 1 /\ node' = IF node = "IN_FLIGHT" THEN "SUCCEEDED" ELSE node
          /\ UNCHANGED <<ours, wire, sends, stuck, lost, expired, noticed, replaced, in>>
GiveBack == /\ htlc = "out" /\ htlc' = "none" /\ node' = IF node = "IN_FLIGHT" THEN "FAILED" ELSE node
            /\ UNCHANGED <<ours, wire, sends, stuck, lost, expired, paidTimes, noticed, replaced, in>>
\* kill -9 in the gap between the disk and the channel: IN_FLIGHT on disk, nothing in the channel
Kill == /\ node = "IN_FLIGHT" /\ htlc = "out" /\ ~stuck /\ htlc' = "none" /\ stuck' = TRUE
        /\ UNCHANGED <<ours, wire, sends, node, lost, expired, paidTimes, noticed, replaced, in>>
\* a person closes that channel
Unstick == /\ stuck /\ stuck' = FALSE /\ node' = "FAILED"
           /\ UNCHANGED <<ours, wire, sends, htlc, lost, expired, paidTimes, noticed, replaced, in>>
\* node replaced by an older backup: it forgot the payment, the HTLC lives on in the channel's other end
RestoreNode == /\ ~lost /\ node # "NOT_FOUND" /\ lost' = TRUE /\ node' = "NOT_FOUND" /\ stuck' = FALSE
               \* we compare identity, highest payment_index and settle_index at each connect with what we stored
               /\ noticed' = On("detect_restore")
               /\ wire' = IF On("send_deadline") THEN {} ELSE wire      \* a restore takes longer than any deadline
               /\ UNCHANGED <<ours, sends, htlc, expired, paidTimes, replaced, in>>
\* another node is configured, and the first one lives on: it pays what it has taken, and may be put back
ReplaceNode == replaced = "never" /\ ~lost /\ replaced' = "now" /\ UNCHANGED <<ours, wire, sends, lnd, noticed, in>>
PutNodeBack == replaced = "now" /\ replaced' = "past" /\ UNCHANGED <<ours, wire, sends, lnd, noticed, in>>
Expire == ~expired /\ expired' = TRUE /\ UNCHANGED <<ours, wire, sends, node, htlc, stuck, lost, paidTimes, noticed, replaced, in>>

(* outcome *)
\* what TrackPaymentV2 says at the node that is there now, and whether its word counts: only of the node that was asked to pay
Said == IF replaced = "now" THEN "NOT_FOUND" ELSE node
Counts == On("only_asked_node") => replaced # "now"
\* each request was answered, or its macaroon has ended
NoneMayArrive(p) == ~OnWire(p) /\ \A w \in Workers : ~(wk[w].st = "leased" /\ wk[w].p = p)
Finish(p, s) == /\ status' = [status EXCEPT ![p] = s] /\ holdof' = [holdof EXCEPT ![p] = FALSE]
                /\ UNCHANGED <<attempt, wk, epoch, held, wire, sends, lnd, noticed, replaced, in>>
Complete(p) == status[p] = "processing" /\ attempt[p] /\ Said = "SUCCEEDED" /\ Finish(p, "completed")
FailFailed(p) == /\ status[p] = "processing" /\ attempt[p] /\ Said = "FAILED" /\ htlc = "none"
                 /\ (On("send_deadline") => NoneMayArrive(p))
                 /\ Finish(p, "failed")
\* the node never took it, and has refused it for good (the invoice cannot be paid), or it has expired: 344, 345
FailNotFound(p) == /\ status[p] = "processing" /\ attempt[p] /\ Said = "NOT_FOUND" /\ Counts /\ ~noticed
                   /\ (On("never_is_last") => NoneMayArrive(p))
                   /\ Finish(p, "failed")
FailTimeout(p) == ~On("timeout_is_unknown") /\ status[p] = "processing" /\ attempt[p] /\ Finish(p, "failed")
FailStuck(p) == ~On("stuck_asks_person") /\ status[p] = "processing" /\ attempt[p] /\ Said = "IN_FLIGHT" /\ expired /\ Finish(p, "failed")
\* a person decides with evidence after a restore: the channels are closed and nothing was claimed, or it was
\* or long after the invoice has expired while another node is there: no request of ours can arrive any more
Person(p) == /\ status[p] = "processing" /\ attempt[p] /\ htlc = "none" /\ expired
             /\ (noticed \/ (replaced = "now" /\ NoneMayArrive(p)))
             /\ Finish(p, IF paidTimes > 0 THEN "completed" ELSE "failed")

\* before it is committed: cancelled while it is held, expired wherever it waits, or an invoice that the node cannot read
Cancel(p) == status[p] = "processing" /\ held[p] /\ ~attempt[p] /\ Finish(p, "failed")
ExpireWaiting(p) == status[p] = "processing" /\ expired /\ (On("expire_looks_at_state") => ~attempt[p]) /\ Finish(p, "failed")
Unreadable(p) == status[p] = "processing" /\ ~held[p] /\ ~attempt[p] /\ Finish(p, "failed")
\* enough of its merchant's are on their way (347), or another reason; and that ends
Hold(p) == /\ status[p] = "processing" /\ ~held[p] /\ ~attempt[p] /\ held' = [held EXCEPT ![p] = TRUE]
           /\ UNCHANGED <<status, attempt, wk, epoch, holdof, wire, sends, lnd, noticed, replaced, in>>
LetGo(p) == /\ status[p] = "processing" /\ held[p] /\ held' = [held EXCEPT ![p] = FALSE]
            /\ UNCHANGED <<status, attempt, wk, epoch, holdof, wire, sends, lnd, noticed, replaced, in>>

(* our own invoice: cancelled at the node first, then one entry *)
CancelInvoice(w) == /\ House /\ Mine(w) /\ invoice = "open" /\ invoice' = "canceled"
                    /\ UNCHANGED <<ours, wire, sends, lnd, noticed, replaced, credited, owner>>
Book(w) == /\ House /\ Mine(w)
           /\ IF On("cancel_first") THEN invoice = "canceled" ELSE invoice # "settled"
           /\ (On("book_locks_owner") => owner = "started")
           /\ credited' = credited + 1 /\ owner' = "succeeded"
           /\ status' = [status EXCEPT ![wk[w].p] = "completed"] /\ holdof' = [holdof EXCEPT ![wk[w].p] = FALSE]
           /\ UNCHANGED <<attempt, wk, epoch, held, wire, sends, lnd, noticed, replaced, invoice>>
\* it was paid from outside, or its owner timed out or cancelled: nothing of ours has moved
HouseFail(w) == /\ House /\ Mine(w) /\ (invoice = "settled" \/ (On("book_locks_owner") /\ owner # "started"))
                /\ status' = [status EXCEPT ![wk[w].p] = "failed"] /\ holdof' = [holdof EXCEPT ![wk[w].p] = FALSE]
                /\ UNCHANGED <<attempt, wk, epoch, held, wire, sends, lnd, noticed, replaced, in>>
OutsidePays == /\ House /\ invoice = "open" /\ invoice' = "settled"
               /\ UNCHANGED <<ours, wire, sends, lnd, noticed, replaced, credited, owner>>
OutsideBooked == /\ House /\ invoice = "settled" /\ credited' = credited + 1 /\ owner' = "succeeded" /\ owner = "started"
                 /\ UNCHANGED <<ours, wire, sends, lnd, noticed, replaced, invoice>>
OwnerTimesOut == /\ House /\ expired /\ owner = "started" /\ invoice # "settled"
                 /\ invoice' = "canceled" /\ owner' = "timedout"
                 /\ UNCHANGED <<ours, wire, sends, lnd, noticed, replaced, credited>>

Next == \/ \E p \in Payouts : Request(p) \/ Complete(p) \/ FailFailed(p) \/ FailNotFound(p) \/ FailTimeout(p) \/ FailStuck(p) \/ Person(p) \/ Cancel(p)
                              \/ ExpireWaiting(p) \/ Unreadable(p) \/ Hold(p) \/ LetGo(p)
        \/ \E w \in Workers : Crash(w) \/ Commit(w) \/ Send(w) \/ CancelInvoice(w) \/ Book(w) \/ HouseFail(w) \/ \E p \in Payouts : Lease(w, p)
        \/ (~House /\ (Arrive \/ Deadline \/ Settle \/ GiveBack \/ Kill \/ Unstick \/ RestoreNode \/ ReplaceNode \/ PutNodeBack)) \/ Expire \/ OutsidePays \/ OutsideBooked \/ OwnerTimesOut
Fair == /\ \A p \in Payouts : WF_vars(Complete(p)) /\ WF_vars(FailFailed(p)) /\ WF_vars(FailNotFound(p)) /\ WF_vars(Person(p))
        /\ WF_vars(Arrive) /\ WF_vars(Deadline) /\ SF_vars(Settle \/ GiveBack) /\ WF_vars(Unstick) /\ WF_vars(Expire)
        /\ \A w \in Workers : WF_vars(Crash(w)) /\ WF_vars(CancelInvoice(w)) /\ WF_vars(Book(w)) /\ WF_vars(HouseFail(w))
Spec == Init /\ [][Next]_vars /\ Fair

Done(s) == {p \in Payouts : status[p] = s}
\* the money leaves at most once for this hash
PaidOnce == paidTimes <= 1
\* every hold that was given back belongs to money that is not out there and did not go
FailedStays == paidTimes <= Cardinality(Done("completed")) + Cardinality(Done("processing"))
NoHtlcBehindFailed == htlc = "out" => Done("processing") # {}
CompletedWasPaid == Cardinality(Done("completed")) <= paidTimes + (IF House THEN credited ELSE 0)
HoldIsOpen == \A p \in Payouts : holdof[p] = (status[p] = "processing")
\* own invoice: booked once, and not booked for nothing
CreditedOnce == credited <= 1
OwnerPaid == [][credited' > credited => owner = "started"]_vars
NotPaidAndBooked == House => Cardinality(Done("completed")) + (IF invoice = "settled" THEN 1 ELSE 0) <= 1
\* a stuck payout stays reserved until a person has decided; else every payout ends
Ends == \A p \in Payouts : (status[p] = "processing" /\ attempt[p]) ~> (status[p] # "processing" \/ stuck)
=============================================================================
