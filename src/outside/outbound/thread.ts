// A thread that answers questions: whatever it computes, this one goes on. It starts with the first question, and again where it has ended.
import { setTimeout as delay } from 'node:timers/promises';
import { isMainThread, type ResourceLimits, Worker } from 'node:worker_threads';
import { isUnderWay, type SeenWork, seenWork, sharedWork } from './thread-work.ts';

/** A process or a machine that was stopped meets its timers first, and then what was answered meanwhile. */
const HEARD_WITHIN_MS = 1_000;
/** A thread that was met in one and the same piece of work at so many looks is ended. Each is a turn of the event loop: one that was stopped has one. */
const LOOKS = 3;
const LOOK_EVERY_MS = 1_000;
const CLOSED = 'the thread was closed';
/** In which a thread that is closed comes back: nothing interrupts what native code computes, and whoever closes has more to do. */
const CLOSED_WITHIN_MS = 1_000;
/** A thread that is met in a piece of work when the process ends is given so long to come back from it. */
const EXIT_WITHIN_MS = 100;

/** What the threads of this process work at that have not exited. */
const running = new Set<SeenWork>();
let isExitHeard = false;
/** The end of a process waits for its threads, also for what cannot be interrupted: there is one other way to end then. */
function hearExit(): void {
  if (isExitHeard || !isMainThread) return;
  isExitHeard = true;
  process.on('exit', () => void ([...running].some(isStuck) && process.kill(process.pid, 'SIGKILL')));
}
function isStuck(work: SeenWork): boolean {
  const piece = work.piece();
  if (!isUnderWay(piece)) return false;
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, EXIT_WITHIN_MS);
  return work.piece() === piece;
}

/** It ended before it answered, or does not answer any more. */
export class ThreadEnded extends Error {
  /** For whom the piece of work was from which it did not come back; null where it ended otherwise. */
  readonly whom: bigint | null;
  constructor(message: string, whom: bigint | null) {
    super(message);
    this.whom = whom;
  }
}

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
  readonly work: SeenWork;
  readonly waiting: Map<number, Waiting<Answer>>;
  tell(what: Told<Question>): void;
};

/** What a thread is given to begin with. */
export type Given = { readonly data: unknown; readonly work: SharedArrayBuffer };
type Program = {
  /** The file that it runs, which calls `answerQuestions`. */
  readonly file: URL;
  /** What the program gets to begin with. */
  readonly data: unknown;
  readonly limits: ResourceLimits;
};

/** Hears why a thread did not come to its end. */
export type Lost = {
  /** For whom the piece of work is from which it does not come back, and when it has. */
  stuck(whom: bigint, exited: Promise<void>): void;
  /** For whom it worked last before it failed: most often, not always, for whom it failed. */
  failed(whom: bigint): void;
};

/** A thread for one program, which starts with the first question. */
export function openThread<Question, Answer>({ file, data, limits }: Program, lost: Lost): Thread<Question, Answer> {
  let ids = 0;
  let current: Started<Question, Answer> | null = null;
  let isClosed = false;

  function start(): Started<Question, Answer> {
    const work = sharedWork();
    const given: Given = { data, work };
    const worker = new Worker(file, { workerData: given, resourceLimits: limits });
    const tell = together<Told<Question>>((all) => worker.postMessage(all));
    const started: Started<Question, Answer> = { worker, work: seenWork(work), waiting: new Map(), tell };
    hearExit();
    running.add(started.work);
    let why = 'the thread ended';
    const looking = whenStuck(started.work, () => stopWaiting(started, 'the thread does not come back'));
    worker
      .on('message', (all: readonly Answered<Answer>[]) => {
        for (const { id, answer } of all) started.waiting.get(id)?.hear(answer);
      })
      .on('error', (error: Error) => {
        why = `the thread ended: ${error.message}`;
      })
      .on('exit', () => {
        clearInterval(looking);
        running.delete(started.work);
        if (current !== started) return;
        void end(started, why, null);
        const whom = started.work.whom();
        if (whom !== null) lost.failed(whom);
      })
      // what is asked keeps the process alive, an idle thread does not
      .unref();
    return started;
  }
  async function end(ended: Started<Question, Answer>, why: string, whom: bigint | null): Promise<void> {
    if (current === ended) current = null;
    for (const one of ended.waiting.values()) one.fail(new ThreadEnded(why, whom));
    await ended.worker.terminate();
  }
  function stopWaiting(stuck: Started<Question, Answer>, why: string): void {
    const whom = isUnderWay(stuck.work.piece()) ? stuck.work.whom() : null;
    const exited = end(stuck, why, whom);
    if (whom !== null) lost.stuck(whom, exited);
  }

  return {
    ask(question, withinMs, signal) {
      if (isClosed) return Promise.reject(new ThreadEnded(CLOSED, null));
      current ??= start();
      const asked = current;
      const id = ids++;
      return new Promise<Answer>((resolve, reject) => {
        const giveUp = (): void => asked.tell({ id });
        let late = setTimeout(() => {
          late = setTimeout(() => stopWaiting(asked, 'the thread does not answer'), HEARD_WITHIN_MS);
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
      isClosed = true;
      if (current === null) return;
      const late = new AbortController();
      const exited = end(current, CLOSED, null).then(() => late.abort());
      await Promise.race([exited, delay(CLOSED_WITHIN_MS, null, { signal: late.signal }).catch(() => null)]);
    },
  };
}

/** Calls `stuck` when a thread does not come back from a piece of work. */
function whenStuck(work: SeenWork, stuck: () => void): NodeJS.Timeout {
  let [last, looks] = [0n, 0];
  return setInterval(() => {
    const piece = work.piece();
    looks = isUnderWay(piece) && piece === last ? looks + 1 : 1;
    last = piece;
    if (looks === LOOKS) stuck();
  }, LOOK_EVERY_MS).unref();
}
