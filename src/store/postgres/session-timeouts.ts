// What the sessions of a pool are waiting for, and since when: a server that is there but does not answer is given up. One timer serves all
// sessions, since a timer for each statement would cost more memory than the statement.
import type pg from 'pg';

export type SessionTimeouts = {
  /** From now on this session waits for an answer. */
  asked(client: pg.ClientBase): void;
  /** The answer, or its failure, has come. */
  answered(client: pg.ClientBase): void;
  close(): void;
};

/** For a pool whose statements may take any time. */
export const PATIENT: SessionTimeouts = { asked: () => undefined, answered: () => undefined, close: () => undefined };

const TICKS = 10;

/** Breaks the connection of every session that has waited for one answer for `withinMs` (up to a tenth more): its statement then fails. */
export function openSessionTimeouts(withinMs: number): SessionTimeouts {
  let tick = 0;
  const since = new Map<pg.ClientBase, number>();
  let timer: NodeJS.Timeout | undefined;
  function look(): void {
    if (since.size === 0) {
      clearInterval(timer);
      timer = undefined;
    }
    tick++;
    for (const [client, askedAt] of since) {
      if (tick - askedAt <= TICKS) continue;
      since.delete(client);
      // it waits for an answer, so the driver breaks the connection instead of saying goodbye
      (client as pg.Client).end().catch(() => undefined);
    }
  }
  return {
    asked(client) {
      since.set(client, tick);
      timer ??= setInterval(look, withinMs / TICKS).unref();
    },
    answered: (client) => void since.delete(client),
    close: () => clearInterval(timer),
  };
}
