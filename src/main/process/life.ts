// The life of one process of the service: it reports when it is ready, stops in order when asked to or when its parent is gone, and prints
// a refusal as one clear line. src/main/process/child.ts is the other end of the protocol.
import { setTimeout as delay } from 'node:timers/promises';
import { addVariables, isStartedByNpm } from '../config/process-environment.ts';
import { outageOf } from './outage-log.ts';
import { lineOf, StartRefused } from './start-refused.ts';

/** What a process sends to the one that started it. */
export type Message =
  | { readonly say: 'ready'; readonly note: string }
  | { readonly say: 'refused'; readonly line: string; readonly isDatabaseGone: boolean }
  | { readonly say: 'answer'; readonly answer: unknown };

/**
 * What the supervisor sends to a process: begin, with these variables of the environment; answer a question; the whole group is stopping,
 * wait for your turn; it is your turn.
 */
export type Order =
  | { readonly begin: Readonly<Record<string, string>> }
  | { readonly question: string }
  | { readonly stop: 'hold' | 'now' };

/** What a running process provides: how to stop it, and what to report when it is ready (such as its address). */
export type Running = {
  readonly note: string;
  stop(): Promise<void>;
  /** Answers a question of the supervisor while it runs. */
  answer?(question: string): Promise<unknown>;
};

const STOP_WITHIN_MS = 4500;
/** A signal to the whole group has reached the supervisor, and its message us, within this time. */
const HOLD_WITHIN_MS = 300;
const SUPERVISED = '--supervised';
const LOAD_ONLY = '--load-only';
const ORPHANED = 'ends because the process that started it is gone';

/** The arguments with which a supervisor starts a process of the group. */
export const SUPERVISED_ARGUMENTS: readonly string[] = [SUPERVISED];

/** The argument with which a program only loads itself and ends: its compiled code is kept for the next start (NODE_COMPILE_CACHE). */
export const LOAD_ONLY_ARGUMENTS: readonly string[] = [LOAD_ONLY];
/** Whether this process shall only load its code and end (see {@link LOAD_ONLY_ARGUMENTS}). */
export const isLoadOnly = (): boolean => process.argv.includes(LOAD_ONLY);

/** Whether this process belongs to a group: its supervisor has migrated, owns the terminal, and receives its reports. */
export const isSupervised = (): boolean => process.connected && process.argv.includes(SUPERVISED);

const PARENT_LOOK_EVERY_MS = 500;
const FIRST_LOOK_EVERY_MS = 3_000;
const REST_LOOK_EVERY_MS = 60_000;

/** Calls back once when npm, which started us, is gone: it passes SIGTERM on, but cannot when it is killed. Never calls back without npm. */
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

/** How much a process may have grown before a collection is worth its pause, and how little it must be doing then. */
const WORTH_BYTES = 8 * 2 ** 20;
const IDLE_UTILIZATION = 0.05;

/**
 * Frees what a start (mostly the source of every program), and later what each busy time has left in memory, and gives it back to the
 * system: an idle process may never do so by itself. It pauses a process for a tenth of a second, up to half a second after a start, so it
 * waits until there is next to nothing to do.
 */
export function collectAtRest(): void {
  const collect = globalThis.gc;
  if (collect === undefined) return;
  let leftBytes = 0;
  let before = performance.eventLoopUtilization();
  const look = (): void => {
    const now = performance.eventLoopUtilization();
    const { utilization } = performance.eventLoopUtilization(now, before);
    before = now;
    if (utilization < IDLE_UTILIZATION && process.memoryUsage.rss() > leftBytes + WORTH_BYTES) {
      collect({ type: 'major', flavor: 'last-resort', execution: 'sync' });
      leftBytes = process.memoryUsage.rss();
    }
    setTimeout(look, leftBytes === 0 ? FIRST_LOOK_EVERY_MS : REST_LOOK_EVERY_MS).unref();
  };
  setTimeout(look, FIRST_LOOK_EVERY_MS).unref();
}

/** What ends what a start has opened so far; null before it has opened anything. */
let leaveOpened: (() => Promise<void>) | null = null;

/** Names what ends what a start has opened, for a process that is told to stop before it runs: a start may wait for others for long. */
export function whileStarting(leave: () => Promise<void>): void {
  leaveOpened = leave;
}

/**
 * Runs `start` as this process's whole purpose. Exit code 0 after an orderly stop, 1 after a refusal or a crash. Under a supervisor it
 * begins on the supervisor's order (the program is loaded while others prepare what it needs), and the supervisor handles Ctrl-C and every
 * other signal to the whole group: it stops us when no other process needs us any more. A process whose parent is gone (the IPC channel to
 * it closes) stops by itself.
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
      await (running === null ? leaveOpened?.() : running.stop());
      process.exit(0);
    } catch (error) {
      console.error(`${name}: did not stop in order: ${(error as Error).stack}`);
      process.exit(1);
    }
  }

  // the terminal that read our output may be gone: no reason to die
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
          // a question that cannot be answered is an error like any other: it ends us
          void running?.answer?.(order.question).then((answer) => send({ say: 'answer', answer }));
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
  // the process that started it was gone before it listened
  if (process.argv.includes(SUPERVISED) && !supervised) {
    sayLast(`${name}: ${ORPHANED}`);
    process.exit(1);
  }

  try {
    await begun;
    running = await start();
    if (stopping) return;
    collectAtRest();
    if (supervised) send({ say: 'ready', note: running.note });
    else console.log(`${name}: ready ${running.note}`.trim());
  } catch (error) {
    if (stopping) return;
    const outage = outageOf(error) ?? outageOf((error as Error).cause);
    const what = `${name} does not start`;
    const line = outage === null || error instanceof StartRefused ? lineOf(what, error) : `${what}: ${outage}`;
    // a reason that fits into one line is the group's last output
    if (supervised && (error instanceof StartRefused || !line.includes('\n')))
      send({ say: 'refused', line, isDatabaseGone: outage !== null });
    else console.error(line);
    // process.exit would lose a message that is still in the channel
    setTimeout(() => process.exit(1), 20);
  }
}

function send(message: Message): void {
  if (process.connected) process.send?.(message);
}

// What fails now fails because the others are gone: it would only hide the reason.
function sayLast(line: string): void {
  console.error(line);
  for (const stream of [process.stdout, process.stderr]) stream.write = () => true;
}
