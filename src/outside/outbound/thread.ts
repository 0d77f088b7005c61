// A thread that answers questions: whatever it computes, this one goes on. It starts with the first question, and again where it has ended.
import { type ResourceLimits, Worker } from 'node:worker_threads';

/** A process or a machine that was stopped meets its timers first, and then what was answered meanwhile. */
const HEARD_WITHIN_MS = 1_000;

/** It ended before it answered, or does not answer any more. */
export class ThreadEnded extends Error {}

export type Thread<Question, Answer> = {
  /**
   * @param signal tells the thread that nobody waits for the answer any more; it still answers
   * @param withinMs whoever has not answered by then never does: the thread is ended
   * @throws ThreadEnded
   */
  ask(question: Question, withinMs: number, signal?: AbortSignal): Promise<Answer>;
  close(): Promise<void>;
};

/**
 * Messages one by one cost more than what they ask for: what is sent in one turn of the event loop goes together.
 * @returns sends one more
 */
export function together<Message>(send: (messages: readonly Message[]) => void): (message: Message) => void {
  let messages: Message[] = [];
  return (message) => {
    if (messages.push(message) > 1) return;
    setImmediate(() => {
      const all = messages;
      messages = [];
      send(all);
    });
  };
}

/** What goes to the thread: a question, or word that nobody waits for its answer. */
export type Told<Question> =
  | { readonly id: number; readonly question: Question }
  | { readonly id: number; readonly question?: never };
/** What comes back. */
export type Answered<Answer> = { readonly id: number; readonly answer: Answer };

type Waiting<Answer> = { hear(answer: Answer): void; fail(reason: ThreadEnded): void };
type Started<Question, Answer> = {
  readonly worker: Worker;
  readonly waiting: Map<number, Waiting<Answer>>;
  tell(what: Told<Question>): void;
};

/**
 * @param program the file that it runs, which calls `answerQuestions`
 * @param data what the program gets to begin with
 */
export function openThread<Question, Answer>(program: URL, data: unknown, limits: ResourceLimits): Thread<Question, Answer> {
  let ids = 0;
  let current: Started<Question, Answer> | null = null;

  function start(): Started<Question, Answer> {
    const worker = new Worker(program, { workerData: data, resourceLimits: limits });
    const tell = together<Told<Question>>((all) => worker.postMessage(all));
    const started: Started<Question, Answer> = { worker, waiting: new Map(), tell };
    let why = 'the thread ended';
    worker
      .on('message', (all: readonly Answered<Answer>[]) => {
        for (const { id, answer } of all) started.waiting.get(id)?.hear(answer);
      })
      .on('error', (error: Error) => {
        why = `the thread ended: ${error.message}`;
      })
      .on('exit', () => void end(started, why))
      // what is asked keeps the process alive, an idle thread does not
      .unref();
    return started;
  }
  async function end(ended: Started<Question, Answer>, why: string): Promise<void> {
    if (current === ended) current = null;
    for (const one of ended.waiting.values()) one.fail(new ThreadEnded(why));
    await ended.worker.terminate();
  }

  return {
    ask(question, withinMs, signal) {
      current ??= start();
      const asked = current;
      const id = ids++;
      return new Promise<Answer>((resolve, reject) => {
        const giveUp = (): void => asked.tell({ id });
        let late = setTimeout(() => {
          late = setTimeout(() => void end(asked, 'the thread does not answer'), HEARD_WITHIN_MS);
        }, withinMs);
        function over(): void {
          clearTimeout(late);
          asked.waiting.delete(id);
          signal?.removeEventListener('abort', giveUp);
        }
        asked.waiting.set(id, {
          hear(answer) {
            over();
            resolve(answer);
          },
          fail(reason) {
            over();
            reject(reason);
          },
        });
        asked.tell({ id, question });
        if (signal?.aborted === true) giveUp();
        else signal?.addEventListener('abort', giveUp, { once: true });
      });
    },
    async close() {
      if (current !== null) await end(current, 'the thread was closed');
    },
  };
}
