// A thread that runs the program of the tests, and whom it was lost for.
import { openThread } from '../../src/outside/outbound/thread.ts';
import { closing } from './outbound-servers.ts';
import type { Question } from './thread-program.ts';

export function thread() {
  const limits = { maxOldGenerationSizeMb: 32, maxYoungGenerationSizeMb: 4 };
  const file = new URL('./thread-program.ts', import.meta.url);
  const [stuck, failed]: [{ whom: bigint; exited: Promise<void> }[], bigint[]] = [[], []];
  const opened = openThread<Question, string>(
    { file, data: 'what it was given', limits },
    { stuck: (whom, exited) => void stuck.push({ whom, exited }), failed: (whom) => void failed.push(whom) },
  );
  closing.push(() => opened.close());
  return { ...opened, stuck, failed };
}
