// The life of one process of the service: it says when it is ready, stops in order when it is told to or when its parent is gone, and
// tells a refusal in one clear line. Every process entry of src/main runs inside it; src/main/child.ts is its other end.
import { setTimeout as delay } from 'node:timers/promises';
import { addVariables, isStartedByNpm } from './config/environment.ts';
import { lineOf, StartRefused } from './start-refused.ts';

/** What a process says to the one that started it. */
export type Word =
  | { readonly say: 'ready'; readonly note: string }
  | { readonly say: 'refused'; readonly line: string }
  | { readonly say: 'answer'; readonly answer: unknown };

/**
 * What its supervisor says to a process: begin, with these variables of the environment; answer a question; the whole group is stopping,
 * wait for your turn; it is your turn.
 */
export type Order =
  | { readonly begin: Readonly<Record<string, string>> }
  | { readonly question: string }
  | { readonly stop: 'hold' | 'now' };

/** What a running process gives back: how it stops, and what to say when it is ready (such as its address). */
export type Running = {
  readonly note: string;
  stop(): Promise<void>;
  /** What its supervisor may ask it while it runs. */
  answer?(question: string): Promise<unknown>;
};

const STOP_WITHIN_MS = 4500;
/** A signal that went to the whole group has reached the supervisor, and its word us, before this. */
const HOLD_WITHIN_MS = 300;
const SUPERVISED = '--supervised';
const LOAD_ONLY = '--load-only';
const ORPHANED = 'ends because the process that started it is gone';

/** The arguments with which a supervisor starts a process of the group. */
export const SUPERVISED_ARGUMENTS: readonly string[] = [SUPERVISED];

/** The argument with which a program only loads itself and ends: what it compiled is kept for the next one (NODE_COMPILE_CACHE). */
export const LOAD_ONLY_ARGUMENTS: readonly string[] = [LOAD_ONLY];
export const isLoadOnly = (): boolean => process.argv.includes(LOAD_ONLY);

/** Whether this process belongs to a group: its supervisor has migrated, keeps the terminal, and hears what it says. */
export const isSupervised = (): boolean => process.connected && process.argv.includes(SUPERVISED);

const PARENT_LOOK_EVERY_MS = 500;
const START_IS_OVER_MS = 3_000;

/** Calls back once when npm, which started us, is gone: it passes SIGTERM on, but cannot when it is killed. Without npm never. */
export function onNpmGone(callback: () => void): void {
  if (!isStartedByNpm()) return;
  const parent = process.ppid;
  const timer = setInterval(() => {
    if (process.ppid === parent) return;
    clearInterval(timer);
    callback();
  }, PARENT_LOOK_EVERY_MS);
  timer.unref();
}

/** What a start has left behind (the source of every program, most of all) is given back once, since a process that rests may never collect it. */
export function restAfterStart(): void {
  const collect = globalThis.gc;
  if (collect !== undefined) setTimeout(() => collect(), START_IS_OVER_MS).unref();
}

/**
 * Runs `start` as this process's whole purpose. Exit code 0 after an orderly stop, 1 after a refusal or a crash. Under a supervisor it
 * begins when that says so (a program is loaded while others make ready what it needs), and
 * Ctrl-C is the supervisor's business, and so is every signal that goes to the whole group: it stops us when nobody needs us any more. A
 * process whose parent is gone (the IPC channel to it closes) stops by itself.
 */
export async function runProcess(name: string, start: () => Promise<Running>): Promise<void> {
  if (isLoadOnly()) process.exit(0);
  const supervised = isSupervised();
  let running: Running | null = null;
  let stopping = false;
  let isHeld = false;

  async function stop(): Promise<void> {
    if (stopping) return;
    stopping = true;
    setTimeout(() => process.exit(1), STOP_WITHIN_MS).unref();
    try {
      await running?.stop();
      process.exit(0);
    } catch (error) {
      console.error(`${name}: did not stop in order: ${(error as Error).stack}`);
      process.exit(1);
    }
  }

  // the terminal that read us may be gone: that is no reason to die
  for (const stream of [process.stdout, process.stderr]) stream.on('error', () => undefined);
  for (const signal of ['SIGTERM', 'SIGHUP'] as const) {
    process.on(signal, () => {
      if (!supervised) void stop();
      else void delay(HOLD_WITHIN_MS).then(() => (isHeld ? undefined : stop()));
    });
  }
  const begun = supervised ? obey() : Promise.resolve();
  function obey(): Promise<void> {
    return new Promise((begin) => {
      process.on('message', (order: Order) => {
        if ('begin' in order) {
          addVariables(order.begin);
          begin();
        } else if ('question' in order) {
          // one that cannot be answered is a fault like any other: it ends us
          void running?.answer?.(order.question).then((answer) => tell({ say: 'answer', answer }));
        } else {
          isHeld = true;
          if (order.stop === 'now') void stop();
        }
      });
    });
  }
  process.on('SIGINT', () => {
    if (!supervised) void stop();
  });
  const orphaned = (): void => {
    if (stopping) return;
    sayLast(`${name}: ${ORPHANED}`);
    void stop();
  };
  process.on('disconnect', orphaned);
  if (!supervised) onNpmGone(orphaned);
  process.on('uncaughtException', (error) => {
    console.error(`${name}: ${error.stack ?? String(error)}`);
    process.exit(1);
  });
  // whoever started it was gone before it listened
  if (process.argv.includes(SUPERVISED) && !supervised) {
    sayLast(`${name}: ${ORPHANED}`);
    process.exit(1);
  }

  try {
    await begun;
    running = await start();
    if (stopping) return await running.stop().then(() => process.exit(0));
    restAfterStart();
    if (supervised) tell({ say: 'ready', note: running.note });
    else console.log(`${name}: ready ${running.note}`.trim());
  } catch (error) {
    if (stopping) process.exit(0);
    const line = lineOf(`${name} does not start`, error);
    // what fits into one line is the group's last word
    if (supervised && (error instanceof StartRefused || !line.includes('\n'))) tell({ say: 'refused', line });
    else console.error(line);
    // a message that is still in the channel would be lost by process.exit
    setTimeout(() => process.exit(1), 20);
  }
}

function tell(word: Word): void {
  if (process.connected) process.send?.(word);
}

// What fails now fails because the others are gone: it would only hide the reason.
function sayLast(line: string): void {
  console.error(line);
  for (const stream of [process.stdout, process.stderr]) stream.write = () => true;
}
