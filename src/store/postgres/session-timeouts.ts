// What the sessions of a pool are waiting for, and since when: a server that is there but does not answer is given up. One timer serves all
// sessions, since a timer for each statement would cost more memory than the statement.
import type pg from 'pg';

export type SessionTimeouts = {
  /** From now on this session waits for an answer, for `answerMs` at most (default what the pool allows). */
  asked(client: pg.ClientBase, answerMs?: number): void;
  /** The answer, or its failure, has come. */
  answered(client: pg.ClientBase): void;
  close(): void;
};

const TICKS = 10;

/** Breaks the connection of every session that has waited for one answer for `withinMs`, or its own `answerMs` (up to a tenth of `withinMs` more): its statement then fails. */
export function openSessionTimeouts(withinMs: number): SessionTimeouts {
  const tickMs = withinMs / TICKS;
  let tick = 0;
  /** The tick up to which each may wait. */
  const until = new Map<pg.ClientBase, number>();
  let timer: NodeJS.Timeout | undefined;
  function look(): void {
    if (until.size === 0) {
      clearInterval(timer);
      timer = undefined;
    }
    tick++;
    for (const [client, last] of until) {
      if (tick <= last) continue;
      until.delete(client);
      // it waits for an answer, so the driver breaks the connection instead of saying goodbye
      (client as pg.Client).end().catch(() => undefined);
    }
  }
  return {
    asked(client, answerMs = withinMs) {
      until.set(client, tick + Math.ceil(answerMs / tickMs));
      timer ??= setInterval(look, tickMs).unref();
    },
    answered: (client) => void until.delete(client),
    close: () => clearInterval(timer),
  };
}
