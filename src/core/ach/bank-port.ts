// Our bank, as far as payouts need it: it takes files, says whether it has one, and reports what became of their entries.

/** A file by its name (<yyyy-mm-dd>-<modifier>) and its bytes, which never change. */
export type BankFile = { readonly name: string; readonly bytes: Uint8Array; readonly sha256: Uint8Array };

/** `refused`: the bank executes nothing of it, and never will. */
export type BankVerdict = { readonly state: 'refused'; readonly reason: string };

/** It lies where the bank takes it from, and the bank has not taken it yet; for how long, by the clock of the disk. */
export type BankWaiting = { readonly state: 'waiting'; readonly forMs: number };

/** What a bank has reported; each until it was acknowledged, in its order. */
export type BankReport =
  /**
   * A NACHA file with returns or notices of change. `leftOut`, of a copy only: what names the entries in it of which it books nothing, because a
   * person was asked about them, or they waited for a rate.
   */
  | { readonly id: string; readonly kind: 'nacha'; readonly content: string; readonly leftOut?: readonly string[] }
  /**
   * The bank has put something down that is no report it may book, for example too large; `reason` in words. `mayReturn`: nobody could read it,
   * and it may tell of any return.
   */
  | { readonly id: string; readonly kind: 'unreadable'; readonly reason: string; readonly mayReturn?: true }
  /** Something is being written about a file: nobody can say what yet. */
  | { readonly id: string; readonly kind: 'begun'; readonly file: string }
  /** A whole file has reached the bank before: it has, and executes, the first. */
  | { readonly id: string; readonly kind: 'had'; readonly file: string }
  /** A whole file is refused, later than its answer. */
  | { readonly id: string; readonly kind: 'refused'; readonly file: string; readonly reason: string }
  /** The days in which entries of a file come back have ended. */
  | { readonly id: string; readonly kind: 'over'; readonly file: string };

export type BankNews = {
  /** The bank asked for what waits at this time, besides the ends of its business days; null = it did not. */
  readonly cutOffMs: number | null;
  readonly reports: BankReports;
};
/** One after the other: they may be large, and many. */
export type BankReports = Iterable<BankReport> | AsyncIterable<BankReport>;

/** A file of ours by its name; `atMs`: when it was handed over, or made where nobody knows whether it was. */
export type DatedFile = { readonly name: string; readonly atMs: number };

/** Every call may throw BankTrouble: then it is unknown what happened. None inside a database transaction. */
export type BankPort = {
  /** Gives a file to the bank. `duplicate`: it has had it before. */
  handOver(file: BankFile): Promise<{ readonly state: 'accepted' | 'duplicate' } | BankWaiting | BankVerdict>;
  /** Whether the bank has a file. Only asked when no call of ours that hands it over is under way. */
  ask(file: BankFile): Promise<{ readonly state: 'accepted' | 'never' } | BankWaiting | BankVerdict>;
  news(): Promise<BankNews>;
  /** Every file that was handed over to it, whatever we remember. */
  had(): Promise<readonly { readonly name: string; readonly sha256: Uint8Array }[]>;
  /**
   * Those of these files, which were handed over, of which the bank knows nothing: what it says about others counts for nothing then, because
   * it is not the one that was asked before. A bank that is a witness forgets none.
   * @param files with the moment from which the bank may have had each
   */
  forgets(files: readonly DatedFile[], nowMs: number): Promise<readonly string[]>;
  /** The bytes of one of them. */
  contentOf(file: { readonly name: string; readonly sha256: Uint8Array }): Promise<Uint8Array>;
  /** Whether `had` is the bank's own word: a list on our own disks may have been put back together with our database. */
  readonly isWitness: boolean;
  acknowledge(reportId: string): Promise<void>;
};

/** The copies of all files in our own folder, and of what the bank has reported: a database that was put back is completed from them. */
export type KeptFiles = {
  /** Writes a copy that is on disk when it resolves; false when there is another file of this name. */
  keep(file: BankFile): Promise<boolean>;
  /** The names of all copies. */
  names(): Promise<readonly string[]>;
  read(name: string): Promise<Uint8Array>;
  /** What names its payouts in a copy. */
  references(name: string): Promise<readonly string[]>;
  /** Writes a report, as {@link KeptFiles.keep}; one of this id that is there stays. */
  keepReport(report: BankReport): Promise<void>;
  /** All reports, oldest first. */
  reports(): Promise<BankReports>;
};

/** The bank cannot be reached, or its answer was lost. */
export class BankTrouble extends Error {
  override readonly name = 'BankTrouble';
}
