// What the worker's jobs tell an operator: once when trouble begins or changes, and again now and then while it lasts.

/** Receives what a job has to say: an Alarm, or an error of the program. */
export type Report = (job: string, error: unknown) => void;

const ALARM_AGAIN_MS = 600_000;

/** Something that an operator should know and that is no fault of the program: where it was noticed says nothing. */
export class Alarm extends Error {}

const MOST_NAMED = 10;

/** The first of what is told, and how many more there are: a person reads it, and whoever sends many entries in one file writes none of our log. */
export function listed(told: readonly string[], between: string): string {
  const more = told.length - MOST_NAMED;
  return more > 0 ? [...told.slice(0, MOST_NAMED), `and ${more} more`].join(between) : told.join(between);
}

const MOST_FAULTS = 1_000;

/**
 * Logs what fails again and again: when it begins or fails in another way, and now and then while it lasts. Of very many things that fail only
 * the newest are remembered.
 */
export function createFaults(report: Report): Report {
  const told = new Map<string, { readonly message: string; readonly againMs: number }>();
  return (what, error) => {
    const message = error instanceof Error ? error.message : String(error);
    const before = told.get(what);
    const nowMs = performance.now();
    if (before !== undefined && before.message === message && nowMs < before.againMs) return;
    told.delete(what);
    told.set(what, { message, againMs: nowMs + ALARM_AGAIN_MS });
    for (const oldest of told.keys()) {
      if (told.size <= MOST_FAULTS) break;
      told.delete(oldest);
    }
    report(what, error);
  };
}

const MOST_KINDS = 100;
/** Addresses of nodes, their ports, and other whole numbers. */
const NUMBERS = /\b\d+(?:\.\d+){3}(?::\d+)?\b|:\d+\b|\b\d+\b/g;

/**
 * Logs a problem when it begins or changes, and again now and then while it lasts; '' = no problem. Problems that change places, until there is none,
 * are logged once each: a node that is slow is late with one look, and has not answered at the next.
 */
export function createAlarm(job: string, report: Report): (now: string) => void {
  const againMs = new Map<string, number>();
  return (now) => {
    if (now === '') return againMs.clear();
    // heights that change are no news; that it is another node is
    const kind = now.replace(NUMBERS, (one) => (/^\d+$/.test(one) ? '#' : one));
    if (performance.now() <= (againMs.get(kind) ?? Number.NEGATIVE_INFINITY)) return;
    report(job, new Alarm(now));
    if (againMs.size >= MOST_KINDS) againMs.clear();
    againMs.set(kind, performance.now() + ALARM_AGAIN_MS);
  };
}
