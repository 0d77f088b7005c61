// What the sessions of a pool are waiting for, and since when: a server that is there but does not answer is given up. One clock that ticks
// for all of them, since a timer for each statement costs more memory than what it guards. Called by connect.ts; it has a timer of its own
// because a database that says nothing cannot be waited for in any other way.
import type pg from 'pg';

export type Overdue = {
  /** From now on this session waits for an answer. */
  asked(client: pg.ClientBase): void;
  /** It came, or its failure did. */
  answered(client: pg.ClientBase): void;
  close(): void;
};

/** For a pool whose statements may take as long as they want. */
export const PATIENT: Overdue = { asked: () => undefined, answered: () => undefined, close: () => undefined };

const TICKS = 10;

/** Breaks the connection of every session that has waited for one answer for `withinMs` (up to a tenth more): what it asked for fails. */
export function openOverdue(withinMs: number): Overdue {
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
      // it waits for an answer, so the driver does not say goodbye but breaks the connection
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
