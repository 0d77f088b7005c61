// The times of the rules (behaviour §3): the payment window, its grace, and for how long a payment may be gone.

export const MINUTE_MS = 60_000;
/** The payment window, from a transaction's creation on. */
export const WINDOW_MS = 15 * MINUTE_MS;
export const HOUR_MS = 3_600_000;
/** A payment seen up to this long after the window's end is on time. */
export const GRACE_MS = 60_000;
/** After an outage of ours a payment is on time when its block or the mempool shows it by this long after the window's end. */
export const OUTAGE_GRACE_MS = 2 * HOUR_MS;
/** A booked payment that is neither in the mempool nor in the chain for this long is lost (rule 17). */
export const BOOKED_GONE_MS = 10 * MINUTE_MS;
/** An unbooked payment that is out of the mempool for this long is withdrawn (rule 15). */
export const UNBOOKED_GONE_MS = 72 * HOUR_MS;
/** An unpaid transaction is looked for on the chain once more this long after its creation (rule 8). */
export const LOOKUP_AFTER_MS = 24 * HOUR_MS;
/** A payment whose block is dated more than this long after the window's end is judged by rule 24. */
export const LATE_BLOCK_AFTER_MS = 24 * HOUR_MS;
