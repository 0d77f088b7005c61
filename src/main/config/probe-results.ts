// What `bursar config check --nodes` says of one thing that it asked.

export type Probe = {
  readonly what: string;
  readonly ok: boolean;
  /** It would keep a start from becoming ready. */
  readonly stops: boolean;
  readonly says: string;
};

/** A probe that found nothing wrong. */
export const fine = (what: string, says: string): Probe => ({ what, ok: true, stops: false, says });
/**
 * A probe that found something.
 * @param stops whether a start would fail because of it
 */
export const wrong = (what: string, says: string, stops = false): Probe => ({ what, ok: false, stops, says });
