// The worker's jobs of payouts for a test that runs them itself.
import type { Job } from '../../src/worker/loop.ts';
import type { Telling } from '../../src/worker/payouts/driver-options.ts';

/** Notes what the jobs tell an operator. @param onFault absent: what fails is thrown, and ends the run as the death of a worker would */
export function tellingTo(
  told: string[],
  onFault: Telling['onFault'] = (_what, error) => {
    throw error;
  },
): Telling {
  return { onTrouble: (what) => void told.push(what), onFault };
}

/** One job whose run is a look, and then a run of each currency's job, one after the other. */
export function oneAfterTheOther([look, ...rails]: readonly Job[]): Job {
  if (look === undefined) throw new Error('there are no jobs');
  return {
    ...look,
    async run() {
      await look.run();
      for (const rail of rails) await rail.run();
      return false;
    },
  };
}
