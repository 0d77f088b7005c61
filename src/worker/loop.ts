// The worker's loop: runs each job of a table again and again, each in its own rhythm, and at once when somebody hurries it. A job that
// fails is told and tried again; it never stops the others. The only place of the service with timers besides the outside.

export type Job = {
  readonly name: string;
  /** Pause between the end of a run and the next, a tenth more or less. */
  readonly everyMs: number;
  /** Whether it is hurried too when everything that someone waits for is hurried. */
  readonly urgent: boolean;
  /**
   * Answers true when there is more to do at once.
   * @param hurried whether somebody waits for what it does
   */
  run(hurried?: boolean): Promise<boolean>;
};

export type Loop = {
  /** Lets a job run now, or again as soon as it is through; without a name every urgent one. */
  hurry(name?: string): void;
  /** Waits for the runs under way and starts no more. */
  stop(): Promise<void>;
};

const FIRST_RETRY_MS = 500;
const LONGEST_RETRY_MS = 15_000;
/** Jobs of one rhythm that were hurried together would go on together, and each burst of them opens as many sessions of the database. */
const SPREAD = 0.1;

/** Starts every job at once; they run side by side. */
export function startLoop(jobs: readonly Job[], onTrouble: (job: string, error: unknown) => void): Loop {
  let stopped = false;
  const wakes = new Map<string, () => void>();
  const hurried = new Set<string>();

  /** Ends early when the job is hurried, then or meanwhile. */
  function pause(name: string, ms: number): Promise<void> {
    if (stopped || hurried.has(name)) return Promise.resolve();
    return new Promise((resolve) => {
      const done = () => {
        clearTimeout(timer);
        wakes.delete(name);
        resolve();
      };
      const timer = setTimeout(done, ms);
      wakes.set(name, done);
    });
  }

  async function repeat(job: Job): Promise<void> {
    let failures = 0;
    while (!stopped) {
      let more = false;
      try {
        more = await job.run(hurried.delete(job.name));
        failures = 0;
      } catch (error) {
        failures++;
        onTrouble(job.name, error);
      }
      if (failures > 0) await pause(job.name, Math.min(LONGEST_RETRY_MS, FIRST_RETRY_MS * 2 ** Math.min(failures - 1, 10)));
      else if (!more) await pause(job.name, job.everyMs * (1 + SPREAD * (2 * Math.random() - 1)));
      else await new Promise((resolve) => setImmediate(resolve));
    }
  }

  const running = jobs.map((job) => repeat(job));
  return {
    hurry(name) {
      for (const job of jobs) {
        if (name === undefined ? !job.urgent : job.name !== name) continue;
        hurried.add(job.name);
        wakes.get(job.name)?.();
      }
    },
    async stop() {
      stopped = true;
      for (const wake of [...wakes.values()]) wake();
      await Promise.all(running);
    },
  };
}
