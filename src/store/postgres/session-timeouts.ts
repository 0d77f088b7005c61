// What the sessions of a pool are waiting for, and since when: a server that is there but does not answer is given up. One timer serves all
// sessions, since a timer for each statement would cost more memory than the statement.
import type pg from 'pg';

export type SessionTimeouts = {
  /** From now on this session waits for one more answer, for `answerMs` at most (default what the pool allows). */
  asked(client: pg.ClientBase, answerMs?: number): void;
  /** An answer, or its failure, has come: the next one, where it waits for several, has its time from now on. */
  answered(client: pg.ClientBase): void;
  close(): void;
};

const TICKS = 10;

/** Breaks the connection of every session that has waited for one answer for `withinMs`, or its own `answerMs` (up to a tenth of `withinMs` more): its statement then fails. */
export function openSessionTimeouts(withinMs: number): SessionTimeouts {
  const tickMs = withinMs / TICKS;
  let tick = 0;
  /** How many answers each waits for, for how many ticks at most for one, and up to which tick for the next. */
  type Waiting = { open: number; ticks: number; until: number };
  const waiting = new Map<pg.ClientBase, Waiting>();
  let timer: NodeJS.Timeout | undefined;
  function look(): void {
    if (waiting.size === 0) {
      clearInterval(timer);
      timer = undefined;
    }
    tick++;
    for (const [client, { until }] of waiting) {
      if (tick <= until) continue;
      waiting.delete(client);
      breakConnection(client);
    }
  }
  return {
    asked(client, answerMs = withinMs) {
      const before = waiting.get(client);
      const ticks = Math.max(before?.ticks ?? 0, Math.ceil(answerMs / tickMs));
      // a session answers one after the other: what is asked behind others does not keep those waiting for longer
      waiting.set(client, { open: (before?.open ?? 0) + 1, ticks, until: before?.until ?? tick + ticks });
      timer ??= setInterval(look, tickMs).unref();
    },
    answered(client) {
      const of = waiting.get(client);
      if (of === undefined) return;
      of.open--;
      of.until = tick + of.ticks;
      if (of.open === 0) waiting.delete(client);
    },
    close: () => clearInterval(timer),
  };
}

/** `end` would wait for the answers that do not come. Every statement that waits fails with the connection. */
function breakConnection(client: pg.ClientBase): void {
  (client as unknown as { readonly connection: { readonly stream: { destroy(): void } } }).connection.stream.destroy();
}
