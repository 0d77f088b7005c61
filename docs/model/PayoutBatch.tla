----------------------------- MODULE PayoutBatch -----------------------------
(* One payout on a chain of Bitcoin's family, from its hold to final depth, as
   src/flow/payouts/{batches,progress,after-restore/restored-signatures} and
   src/worker/payouts/utxo/driver do it; two workers, one signer.

   T1 is the batch's first transaction, T2 its fee replacement: both spend coin
   u1 and pay the payee. N pays him too, from coin u2: it must never be signed.
   X spends u1 and does not pay him: a stranger's, or one of ours.
   air: whatever was ever sent; a miner may take any of it at any time.
   pool: what nodes relay now.

   A payout is committed when its batch is formed (Form): afterwards it cannot
   be cancelled, its coins are fixed, and only evidence on the chain ends it.  *)
EXTENDS Integers, FiniteSets, Sequences

CONSTANTS Workers, MaxCrash, MaxReorg, MaxLease, MaxRestore, Without
On(s) == s \notin Without

Tx == {"T1", "T2", "N"}
Amount == 4
FeeMax == 2
Start == 10
Fee(t) == IF t = "T2" THEN 2 ELSE 1
Spends(t) == IF t = "N" THEN "u2" ELSE "u1"
Conflict(a, b) == a # b /\ Spends(a) = Spends(b)

VARIABLES
  status,     \* processing completed failed; "displaced": was completed, is shown as failed
  coin,       \* the coin of its batch; "-" = in no batch
  epoch, attempts,     \* of the batch: its lease, its stored transactions
  worker,     \* [st, ep, tx], st in idle leased signed
  journal,    \* the signer's own: what it signed, in order
  compared,   \* since the last start the coins were compared with the chain
  air, pool, depth, taker,   \* depth: 0 not mined, 1 mined, 2 final; taker: who made X
  avail, held, coins, outbound, cost,    \* the ledger
  booked,     \* [fee, step], step in none signed final
  restores, crashes, reorgs, stopped,    \* stopped: the breaker is open
  bothLost    \* database and journal were put back together, and the coins not compared since
vars == <<status, coin, epoch, attempts, worker, journal, compared, air, pool, depth, taker,
          avail, held, coins, outbound, cost, booked, restores, crashes, reorgs, stopped, bothLost>>
rows   == <<status, coin, epoch, attempts>>
ledger == <<avail, held, coins, outbound, cost, booked>>
chain  == <<air, pool, depth, taker, reorgs>>
counts == <<restores, crashes, bothLost>>

Idle == [st |-> "idle", ep |-> 0, tx |-> "-"]
Init ==
  /\ status = "processing" /\ coin = "-" /\ epoch = 0 /\ attempts = {}
  /\ worker = [w \in Workers |-> Idle] /\ journal = <<>> /\ compared = TRUE
  /\ air = {} /\ pool = {} /\ depth = [t \in Tx \cup {"X"} |-> 0] /\ taker = "none"
  /\ avail = Start - Amount - FeeMax /\ held = Amount + FeeMax /\ coins = Start /\ outbound = 0 /\ cost = 0
  /\ booked = [fee |-> 0, step |-> "none"]
  /\ restores = 0 /\ crashes = 0 /\ reorgs = 0 /\ stopped = FALSE /\ bothLost = FALSE

Signed == {journal[i] : i \in 1..Len(journal)}
\* what the chain or a mempool shows as spent by a transaction that is not in the database
SpentByUnknown == \E t \in Tx \cup {"X"} : t \notin attempts /\ (depth[t] > 0 \/ t \in pool)

(* ----- before a batch ----- *)
\* one database transaction: the payout still waits, no batch has it, nothing stops payouts
Form == /\ coin = "-" /\ (status = "processing" \/ ~On("form_locks_payout")) /\ ~stopped
        /\ (On("outputs_compared") => compared)
        /\ coin' \in (IF restores > 0 THEN {"u1", "u2"} ELSE {"u1"})
        /\ UNCHANGED <<status, epoch, attempts, worker, journal, compared, chain, ledger, counts, stopped>>
Cancel == /\ status = "processing" /\ (coin = "-" \/ ~On("committed_when_formed"))
          /\ (On("cancel_waits_for_compare") => compared)
          /\ status' = "failed" /\ avail' = avail + held /\ held' = 0
          /\ UNCHANGED <<coin, epoch, attempts, worker, journal, compared, chain, coins, outbound, cost, booked, counts, stopped>>
\* after a start: a coin that somebody unknown has spent opens the breaker
Compare == /\ ~compared
           /\ IF SpentByUnknown THEN stopped' = TRUE /\ UNCHANGED <<compared, bothLost>>
              ELSE compared' = TRUE /\ bothLost' = FALSE /\ UNCHANGED stopped
           /\ UNCHANGED <<rows, worker, journal, chain, ledger, restores, crashes>>

(* ----- the workers ----- *)
Lease(w) == /\ coin # "-" /\ (status = "processing" \/ ~On("form_locks_payout")) /\ worker[w].st = "idle" /\ epoch < MaxLease
            /\ epoch' = epoch + 1 /\ worker' = [worker EXCEPT ![w] = [st |-> "leased", ep |-> epoch + 1, tx |-> "-"]]
            /\ UNCHANGED <<status, coin, attempts, journal, compared, chain, ledger, counts, stopped>>
Number == IF attempts = {} THEN 1 ELSE 2
Want == IF Number = 2 THEN "T2" ELSE IF coin = "u2" THEN "N" ELSE "T1"
\* the signer reads batch, lease and hold itself; the same number again gets the same bytes
Sign(w) ==
  /\ worker[w].st = "leased" /\ coin # "-" /\ attempts \in {{}, {"T1"}}
  /\ (On("signer_reads_lease") => worker[w].ep = epoch)
  /\ (On("signer_reads_payout") => status = "processing")
  /\ LET known == Len(journal) >= Number
         t == IF known /\ On("same_bytes") THEN journal[Number] ELSE Want IN
     /\ \A s \in Signed : s = t \/ Conflict(s, t) \/ ~On("signer_conflict")
     /\ journal' = IF t \in Signed THEN journal ELSE Append(journal, t)
     /\ \/ worker' = [worker EXCEPT ![w].st = "signed", ![w].tx = t]
        \/ worker' = [worker EXCEPT ![w] = Idle]                        \* the answer is lost
  /\ UNCHANGED <<rows, compared, chain, ledger, counts, stopped>>
\* a refusal: nothing is signed under the old lease any more, and the signer names nothing
GiveUp(w) ==
  /\ worker[w].st = "leased" /\ worker[w].ep = epoch /\ attempts = {} /\ epoch < MaxLease
  /\ (On("give_up_asks_journal") => journal = <<>>)
  /\ epoch' = (IF On("give_up_raises_lease") THEN epoch + 1 ELSE epoch)
  /\ coin' = "-" /\ worker' = [worker EXCEPT ![w] = Idle]
  /\ UNCHANGED <<status, attempts, journal, compared, chain, ledger, counts, stopped>>
Store(w) ==
  /\ worker[w].st = "signed" /\ worker[w].tx \notin attempts
  /\ (On("store_checks_lease") => worker[w].ep = epoch)
  /\ attempts' = attempts \cup {worker[w].tx}
  /\ IF status # "processing" /\ On("store_looks_at_payout") THEN UNCHANGED <<coins, outbound, booked>> ELSE
     LET f == Fee(worker[w].tx)
         more == IF On("books_difference") THEN (IF booked.step = "none" THEN Amount + f ELSE IF f > booked.fee THEN f - booked.fee ELSE 0)
                 ELSE Amount + f IN
     /\ coins' = coins - more /\ outbound' = outbound + more
     /\ booked' = [fee |-> IF f > booked.fee THEN f ELSE booked.fee, step |-> IF booked.step = "none" THEN "signed" ELSE booked.step]
  /\ UNCHANGED <<status, coin, epoch, worker, journal, compared, chain, avail, held, cost, counts, stopped>>
Relayed(t) == {t} \cup {s \in pool : ~Conflict(s, t)}
Send(w) ==
  /\ worker[w].st = "signed" /\ (On("store_before_send") => worker[w].tx \in attempts)
  /\ air' = air \cup {worker[w].tx}
  /\ \/ pool' = IF depth["X"] = 0 THEN Relayed(worker[w].tx) ELSE pool
     \/ pool' = pool                                                    \* sent on and forgotten
  /\ worker' = [worker EXCEPT ![w] = Idle]
  /\ UNCHANGED <<rows, journal, compared, depth, taker, reorgs, ledger, counts, stopped>>
\* the same bytes again, also while the breaker is open
Resend == /\ status \in {"processing", "completed"} /\ attempts # {} /\ pool \cap attempts = {}
          /\ \A t \in attempts : depth[t] = 0
          /\ \E t \in attempts : air' = air \cup {t} /\ pool' = Relayed(t)
          /\ UNCHANGED <<rows, worker, journal, compared, depth, taker, reorgs, ledger, counts, stopped>>

(* ----- bad days ----- *)
Crash(w) == /\ crashes < MaxCrash /\ worker[w].st # "idle" /\ worker' = [worker EXCEPT ![w] = Idle] /\ crashes' = crashes + 1
            /\ UNCHANGED <<rows, journal, compared, chain, ledger, restores, stopped, bothLost>>
\* the database of the moment after the hold; the signer's journal is as it was, and is written back before anything else
RestoreDatabase ==
  LET again == IF On("signatures_written_back") THEN Signed ELSE {}
      f == IF "T2" \in again THEN 2 ELSE 1 IN
  /\ restores < MaxRestore /\ status = "processing" /\ restores' = restores + 1
  /\ attempts' = again /\ coin' = (IF again = {} THEN "-" ELSE Spends(CHOOSE t \in again : TRUE))
  /\ worker' = [w \in Workers |-> Idle] /\ epoch' = 0 /\ compared' = FALSE
  /\ avail' = Start - Amount - FeeMax /\ held' = Amount + FeeMax /\ cost' = 0
  /\ outbound' = (IF again = {} THEN 0 ELSE Amount + f) /\ coins' = Start - outbound'
  /\ booked' = [fee |-> IF again = {} THEN 0 ELSE f, step |-> IF again = {} THEN "none" ELSE "signed"]
  /\ UNCHANGED <<status, journal, chain, crashes, stopped, bothLost>>
\* database and signer's folder of the moment after the hold. What was sent must still show (mempool or block): what every node has forgotten
\* and a miner takes later cannot be known by anybody (bothLost: until then)
RestoreAll ==
  /\ restores < MaxRestore /\ status = "processing" /\ restores' = restores + 1
  /\ \A t \in air : t \in pool \/ depth[t] > 0 \/ \E s \in air : Conflict(s, t) /\ (s \in pool \/ depth[s] > 0)
  /\ attempts' = {} /\ coin' = "-" /\ journal' = <<>> /\ worker' = [w \in Workers |-> Idle] /\ epoch' = 0 /\ compared' = FALSE
  /\ avail' = Start - Amount - FeeMax /\ held' = Amount + FeeMax /\ cost' = 0 /\ outbound' = 0 /\ coins' = Start
  /\ booked' = [fee |-> 0, step |-> "none"]
  /\ bothLost' = TRUE
  /\ UNCHANGED <<status, chain, crashes, stopped>>
SignerForgets == /\ ~On("journal_is_durable") /\ journal # <<>> /\ crashes < MaxCrash /\ journal' = <<>> /\ crashes' = crashes + 1
                 /\ UNCHANGED <<rows, worker, compared, chain, ledger, restores, stopped, bothLost>>

(* ----- outcome, by evidence ----- *)
Complete == \E t \in attempts :
  /\ status = "processing" /\ depth[t] >= 1 /\ status' = "completed"
  /\ avail' = avail + held - Amount - Fee(t) /\ held' = 0
  /\ outbound' = outbound - (Amount + Fee(t)) - (IF On("books_difference") THEN booked.fee - Fee(t) ELSE 0)
  /\ coins' = coins + (IF On("books_difference") THEN booked.fee - Fee(t) ELSE 0)
  /\ booked' = [fee |-> Fee(t), step |-> "final"]
  /\ UNCHANGED <<coin, epoch, attempts, worker, journal, compared, chain, cost, counts, stopped>>
\* another of its transactions became final: the difference is the service's
TrueUp == \E t \in attempts :
  /\ On("true_up_at_final") /\ status = "completed" /\ depth[t] = 2 /\ booked.fee # Fee(t)
  /\ coins' = coins + booked.fee - Fee(t) /\ cost' = cost - (booked.fee - Fee(t))
  /\ booked' = [booked EXCEPT !.fee = Fee(t)]
  /\ UNCHANGED <<rows, worker, journal, compared, chain, avail, held, outbound, counts, stopped>>
TakenForGood == /\ depth["X"] = 2 /\ \A t \in attempts : Spends(t) = "u1"
                /\ (On("any_taker_is_proof") \/ taker = "stranger")
Fail == /\ status = "processing" /\ attempts # {}
        /\ TakenForGood \/ (~On("silence_is_unknown") /\ \A t \in attempts : depth[t] = 0)
        /\ status' = "failed" /\ avail' = avail + held /\ held' = 0
        /\ LET gone == IF depth["X"] > 0 THEN Amount + 1 ELSE 0 IN
           coins' = coins + outbound - gone /\ cost' = cost + gone /\ outbound' = 0
        /\ booked' = [fee |-> 0, step |-> "none"]
        /\ UNCHANGED <<coin, epoch, attempts, worker, journal, compared, chain, counts, stopped>>
Displace == /\ On("displaced") /\ status = "completed" /\ TakenForGood
            /\ status' = "displaced" /\ avail' = avail + Amount + booked.fee /\ cost' = cost + Amount + booked.fee
            /\ UNCHANGED <<coin, epoch, attempts, worker, journal, compared, chain, held, coins, outbound, booked, counts, stopped>>

(* ----- the chain ----- *)
CanMine(t) == depth[t] = 0 /\ (\A s \in Tx : Conflict(s, t) => depth[s] = 0) /\ (Spends(t) = "u1" => depth["X"] = 0)
Mine(t) == /\ t \in air /\ CanMine(t) /\ depth' = [depth EXCEPT ![t] = 1]
           /\ pool' = {s \in pool : s # t /\ ~Conflict(s, t)}
           /\ UNCHANGED <<rows, worker, journal, compared, air, taker, reorgs, ledger, counts, stopped>>
Bury(t) == /\ depth[t] = 1 /\ depth' = [depth EXCEPT ![t] = 2]
           /\ UNCHANGED <<rows, worker, journal, compared, air, pool, taker, reorgs, ledger, counts, stopped>>
MineX == /\ ~bothLost /\ depth["X"] = 0 /\ taker = "none" /\ \A t \in {"T1", "T2"} : depth[t] = 0
         /\ taker' \in (IF attempts = {} THEN {"stranger"} ELSE {"stranger", "ours"})
         /\ depth' = [depth EXCEPT !["X"] = 1] /\ pool' = pool \ {"T1", "T2"}
         /\ UNCHANGED <<rows, worker, journal, compared, air, reorgs, ledger, counts, stopped>>
Reorg(t) == /\ ~bothLost /\ depth[t] = 1 /\ reorgs < MaxReorg /\ reorgs' = reorgs + 1 /\ depth' = [depth EXCEPT ![t] = 0]
            /\ taker' = IF t = "X" THEN "none" ELSE taker
            /\ UNCHANGED <<rows, worker, journal, compared, air, pool, ledger, counts, stopped>>
Forget == /\ pool # {} /\ crashes < MaxCrash /\ pool' = {} /\ crashes' = crashes + 1
          /\ ~bothLost
          /\ UNCHANGED <<rows, worker, journal, compared, air, depth, taker, reorgs, ledger, restores, stopped, bothLost>>

Next == \/ Form \/ Cancel \/ Compare \/ Resend \/ RestoreDatabase \/ RestoreAll \/ SignerForgets
        \/ Complete \/ TrueUp \/ Fail \/ Displace \/ MineX \/ Forget
        \/ \E w \in Workers : Lease(w) \/ Sign(w) \/ GiveUp(w) \/ Store(w) \/ Send(w) \/ Crash(w)
        \/ \E t \in Tx : Mine(t)
        \/ \E t \in Tx \cup {"X"} : Bury(t) \/ Reorg(t)
Fair == /\ WF_vars(Form) /\ WF_vars(Compare) /\ WF_vars(Resend) /\ WF_vars(Complete) /\ WF_vars(Fail)
        /\ \A w \in Workers : WF_vars(Lease(w)) /\ WF_vars(Sign(w)) /\ WF_vars(Store(w)) /\ WF_vars(Send(w))
        /\ \A t \in Tx : WF_vars(t \in pool /\ Mine(t))
        /\ \A t \in Tx \cup {"X"} : WF_vars(Bury(t))
Spec == Init /\ [][Next]_vars /\ Fair

(* ----- what must hold ----- *)
PaidOnce == Cardinality({t \in Tx : depth[t] > 0}) <= 1
SignedConflicts == \A s, t \in Signed : s = t \/ Conflict(s, t)
FailedStays == status \in {"failed", "displaced"} => \A t \in Tx : depth[t] = 0
StoredFirst == [][air' # air => (air' \ air) \subseteq attempts]_vars
Conservation == coins + outbound + cost = avail + held
NonNegative == avail >= 0 /\ held >= 0 /\ outbound >= 0
HeldIsOpen == (status = "processing") = (held > 0)
Out(t) == IF depth[t] = 2 THEN Amount + Fee(t) ELSE 0
AtRest == (\A t \in Tx \cup {"X"} : depth[t] # 1) /\ ~ENABLED TrueUp /\ ~ENABLED Displace /\ \A t \in attempts : ~CanMine(t)
BooksAreChain == (status # "processing" /\ AtRest) =>
                 /\ outbound = 0
                 /\ (status = "completed" => coins = Start - Out("T1") - Out("T2") - Out("N"))
CompletedArrives == (status = "completed" /\ AtRest) => ~(depth["X"] = 2 /\ \A t \in attempts : Spends(t) = "u1")
DeadIsProven == (status = "processing" /\ attempts # {} /\ depth["X"] = 2 /\ \A t \in attempts : Spends(t) = "u1") => ENABLED Fail
Ends == (status = "processing") ~> (status # "processing" \/ epoch = MaxLease \/ stopped)
=============================================================================
