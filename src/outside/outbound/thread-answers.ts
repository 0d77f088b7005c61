// The other end of a thread that answers questions (thread.ts).
import { parentPort, workerData } from 'node:worker_threads';
import { type Answered, type Given, type Told, together } from './thread.ts';
import { type Work, workIn } from './thread-work.ts';

/** What the thread was given to begin with, and where it says for whom it works. */
export function given<Data>(): { readonly data: Data; readonly work: Work } {
  const { data, work } = workerData as Given;
  return { data: data as Data, work: workIn(work) };
}

/** @param answerTo never throws; its signal says that nobody waits any more */
export function answerQuestions<Question, Answer>(answerTo: (question: Question, signal: AbortSignal) => Promise<Answer>): void {
  const port = parentPort;
  if (port === null) throw new Error('this program runs in a thread');
  const waitedFor = new Map<number, AbortController>();
  const tell = together<Answered<Answer>>((all) => port.postMessage(all));
  function hear({ id, question }: Told<Question>): void {
    if (question === undefined) {
      waitedFor.get(id)?.abort();
      return;
    }
    const limit = new AbortController();
    waitedFor.set(id, limit);
    void answerTo(question, limit.signal).then((answer) => {
      waitedFor.delete(id);
      tell({ id, answer });
    });
  }
  port.on('message', (all: readonly Told<Question>[]) => {
    for (const one of all) hear(one);
  });
}
