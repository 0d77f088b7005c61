// The worker's loop: runs each job of a table again and again, each at its own interval, and at once when there is something for it to do.
// A job that fails is logged and tried again; it never stops the others. Besides outside/ this is the only code of the worker with timers.

export type Job = {
  readonly name: string;
  /**
   * Pause between the end of a run and the next, a tenth more or less; null = after its first run it waits until it is woken. A function is
   * asked after each run and its result used as it is (infinite = until it is woken); its parameter, from 0 to 1, spreads jobs with the
   * same interval.
   */
  readonly everyMs: number | null | ((chance: number) => number);
  /** Whether hurrying every urgent job includes this one. */
  readonly urgent: boolean;
  /** The others begin when each job of this kind has run once: a start is over when they have. */
  readonly isFirst?: true;
  /**
   * Resolves to true when there is more to do at once.
   * @param hurried whether a caller waits for its result
   * @param wake makes another job run
   */
  run(hurried?: boolean, wake?: (name: string) => void): Promise<boolean>;
};

export type Loop = {
  /** Makes a job run now, or again as soon as its present run ends; without a name every urgent one. */
  hurry(name?: string): void;
  /** Makes a job run now, or again as soon as its present run ends, although nobody waits for it. */
  wake(name: string): void;
  /** Waits for the present runs and starts no more. */
  stop(): Promise<void>;
};

const FIRST_RETRY_MS = 500;
const LONGEST_RETRY_MS = 15_000;
/** A node that does not answer holds up the others for no longer than this. */
const FIRST_WITHIN_MS = 1_000;
/** Jobs with the same interval that were hurried together would stay together, and each burst of them would open as many database sessions. */
const SPREAD = 0.1;

/** A timer that is given more is over at once: a time that lies weeks ahead, or that a clock set back has put there, would keep a job running. */
const LONGEST_TIMER_MS = 2 ** 31 - 1;

const finiteOrNull = (ms: number): number | null => (Number.isFinite(ms) ? ms : null);

/** Starts every job, after those that are first; they run side by side. */
export function startLoop(jobs: readonly Job[], onTrouble: (job: string, error: unknown) => void): Loop {
  let stopped = false;
  const wakes = new Map<string, () => void>();
  /** Jobs that have something to do, and whether a caller waits for them. */
  const called = new Map<string, boolean>();

  /** Ends early when the job is woken, now or meanwhile. */
  function pause(name: string, ms: number | null): Promise<void> {
    if (stopped || called.has(name)) return Promise.resolve();
    return new Promise((resolve) => {
      const done = () => {
        clearTimeout(timer);
        wakes.delete(name);
        resolve();
      };
      const timer = ms === null ? undefined : setTimeout(done, Math.min(ms, LONGEST_TIMER_MS));
      wakes.set(name, done);
    });
  }

  function call(name: string, isHurried: boolean): void {
    called.set(name, isHurried || called.get(name) === true);
    wakes.get(name)?.();
  }
  const wake = (name: string): void => {
    if (jobs.some((job) => job.name === name)) call(name, false);
  };

  const unrun = new Set(jobs.filter((job) => job.isFirst === true));
  let letOthersBegin = (): void => undefined;
  const othersMayBegin = new Promise<void>((resolve) => {
    letOthersBegin = resolve;
  });
  const firstAreLate = setTimeout(letOthersBegin, FIRST_WITHIN_MS);
  function noteRun(job: Job): void {
    if (unrun.delete(job) && unrun.size === 0) letOthersBegin();
  }
  if (unrun.size === 0) letOthersBegin();

  async function repeat(job: Job): Promise<void> {
    if (job.isFirst !== true) await othersMayBegin;
    let failures = 0;
    while (!stopped) {
      let more = false;
      try {
        const hurried = called.get(job.name) === true;
        called.delete(job.name);
        more = await job.run(hurried, wake);
        failures = 0;
      } catch (error) {
        failures++;
        onTrouble(job.name, error);
      }
      noteRun(job);
      if (failures > 0) await pause(job.name, Math.min(LONGEST_RETRY_MS, FIRST_RETRY_MS * 2 ** Math.min(failures - 1, 10)));
      else if (!more) await pause(job.name, restOf(job));
      else await new Promise((resolve) => setImmediate(resolve));
    }
  }

  function restOf({ everyMs }: Job): number | null {
    if (typeof everyMs === 'function') return finiteOrNull(everyMs(Math.random()));
    return everyMs === null ? null : everyMs * (1 + SPREAD * (2 * Math.random() - 1));
  }

  const running = jobs.map((job) => repeat(job));
  return {
    hurry(name) {
      for (const job of jobs) {
        if (name === undefined ? job.urgent : job.name === name) call(job.name, true);
      }
    },
    wake,
    async stop() {
      stopped = true;
      clearTimeout(firstAreLate);
      letOthersBegin();
      for (const wake of [...wakes.values()]) wake();
      await Promise.all(running);
    },
  };
}
