// One process of the group from the supervisor's side: started, watched, restarted when it dies (not too often), stopped.
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { pauseMs } from './disk-space.ts';
import { type Identity, identityOf } from './identity.ts';
import { LOAD_ONLY_ARGUMENTS, type Message, type Order, SUPERVISED_ARGUMENTS } from './life.ts';
import { StartRefused } from './start-refused.ts';

export type ChildOptions = {
  readonly name: string;
  /** File name of the entry in src/main. */
  readonly entry: string;
  /** Called at each of its starts. */
  readonly environment: () => NodeJS.ProcessEnv;
  /** Heap limit and other flags of node itself. */
  readonly nodeFlags?: readonly string[];
  /** It ended although nobody stopped it, and is being restarted. */
  readonly onRestart: (line: string) => void;
  /** The others can do without it for a while: however often it dies, it is started again, after pauses that grow. */
  readonly isSpared?: true;
  /** It dies, or refuses to start again, too often: the group cannot continue. */
  readonly onGiveUp: (line: string) => void;
  /** Whether a death says nothing about the process now (the disk is full): it is started again however often it dies. */
  readonly isExcused: () => boolean;
  /** The process has a new pid. */
  readonly onChange: () => void;
};

export type Child = {
  readonly name: string;
  /** Makes it begin its work, now and after every restart, with these variables in its environment; until then it is only loaded. */
  begin(variables: Readonly<Record<string, string>>): void;
  /** Its answer, one question at a time; sent once it is ready, and again if it is restarted before it answers. */
  ask(question: string): Promise<unknown>;
  /** Resolves with what it reported when it was first ready; rejects with StartRefused when it refused or ended before. */
  readonly ready: Promise<string>;
  identity(): Identity | null;
  /** From now on its end is expected: it is not restarted. It runs until it is stopped, even when a signal to the whole group reaches it. */
  letGo(): void;
  /** Stops it in order; kills it after `graceMs`. */
  stop(graceMs: number): Promise<void>;
  /** Ends it at once. */
  kill(): void;
};

type Refusal = Extract<Message, { say: 'refused' }>;

const MOST_DEATHS = 5;
const WITHIN_MS = 60_000;

/** Runs a process that only loads its program; resolves when it has ended, however. */
export async function loadOnly({ entry, nodeFlags }: Pick<ChildOptions, 'entry' | 'nodeFlags'>): Promise<void> {
  const path = fileURLToPath(new URL(`../${entry}`, import.meta.url));
  const child = fork(path, LOAD_ONLY_ARGUMENTS, { execArgv: [...(nodeFlags ?? [])], stdio: 'ignore' });
  await once(child, 'exit').catch(() => undefined);
}

/**
 * Starts a process and keeps it running. One that ends before it was ready is not started again ({@link Child.ready} rejects); later it is,
 * until it dies more than five times in a minute: then the group gives up, or, of a spared one, the pauses grow.
 */
export function startChild(options: ChildOptions): Child {
  const { name, onRestart, onGiveUp } = options;
  let current: ChildProcess | null = null;
  let exited: Promise<void> = Promise.resolve();
  let stopping = false;
  // what it reported when it was ready; null before that
  let note: string | null = null;
  let begun: Readonly<Record<string, string>> | null = null;
  let pending: NodeJS.Timeout | null = null;
  let deaths: number[] = [];
  // how often in a row it was started again although it had died too often
  let beyond = 0;
  let asked: { readonly question: string; readonly resolve: (answer: unknown) => void } | null = null;
  let settle: { resolve: (note: string) => void; reject: (error: Error) => void };
  const ready = new Promise<string>((resolve, reject) => {
    settle = { resolve, reject };
  });
  ready.catch(() => undefined); // the error goes to whoever awaits it; a stop in between is no error

  function launch(): void {
    const child = fork(fileURLToPath(new URL(`../${options.entry}`, import.meta.url)), SUPERVISED_ARGUMENTS, {
      env: options.environment(),
      execArgv: [...(options.nodeFlags ?? [])],
      stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
    });
    current = child;
    let refusal: Refusal | null = null;
    child.on('message', (message: Message) => {
      if (message.say === 'refused') refusal = message;
      else if (message.say === 'answer') answered(message.answer);
      else if (note !== null && message.note !== note)
        onGiveUp(`${name} came back as "${message.note}" and was "${note}": the others cannot find it`);
      else {
        note = message.note;
        settle.resolve(message.note);
        // a process that died before answering is asked again
        if (asked !== null) order({ question: asked.question });
      }
    });
    child.on('error', () => undefined);
    if (begun !== null) order({ begin: begun });
    exited = new Promise((resolve) => {
      child.once('exit', (code, signal) => {
        current = null;
        resolve();
        if (!stopping) died(refusal, signal ?? `exit ${code}`);
      });
    });
    options.onChange();
  }

  function died(refusal: Refusal | null, how: string): void {
    if (note === null) {
      settle.reject(new StartRefused(refusal?.line ?? `${name} ended before it was ready (${how})`));
      return;
    }
    // what refuses a second start may be gone at the third
    const why = refusal?.line ?? how;
    const now = performance.now();
    // a database that recovers or is started again says nothing about this process
    const waits = refusal?.isDatabaseGone === true;
    const isExcused = waits || options.isExcused();
    deaths = deaths.filter((at) => now - at < WITHIN_MS);
    if (!isExcused) deaths.push(now);
    const tooOften = deaths.length > MOST_DEATHS ? `${name} died ${deaths.length} times within a minute (last: ${why})` : null;
    if (tooOften !== null && options.isSpared === undefined) {
      onGiveUp(tooOften);
      return;
    }
    if (tooOften !== null && beyond === 0)
      onRestart(`problem: ${tooOften}; from now on it is started again after pauses, and the others go on without it`);
    const isSlow = isExcused || tooOften !== null;
    const pause = isSlow ? pauseMs(beyond) : deaths.length === 1 ? 30 : 200 * deaths.length;
    beyond = isSlow ? beyond + 1 : 0;
    // at once the first time, but not before a signal to the whole group has reached us too; a process that keeps dying must not use up the
    // machine
    pending = setTimeout(() => {
      if (stopping) return;
      onRestart(
        waits ? `${name} waits for the database (${why}); starting it again` : `${name} died (${why}); starting it again`,
      );
      launch();
    }, pause);
  }

  function answered(answer: unknown): void {
    asked?.resolve(answer);
    asked = null;
  }

  function order(message: Order): void {
    if (current?.connected === true) current.send(message, () => undefined);
  }

  launch();
  return {
    name,
    ready,
    begin(variables) {
      begun = variables;
      order({ begin: begun });
    },
    async ask(question) {
      await ready;
      return new Promise((resolve) => {
        asked = { question, resolve };
        order({ question });
      });
    },
    identity: () => (current?.pid === undefined ? null : identityOf(current.pid)),
    letGo() {
      stopping = true;
      order({ stop: 'hold' });
    },
    kill: () => void current?.kill('SIGKILL'),
    async stop(graceMs) {
      stopping = true;
      if (pending !== null) clearTimeout(pending);
      if (current === null) return;
      order({ stop: 'now' });
      // a process that cannot receive messages yet ends by this
      current.kill('SIGTERM');
      const killer = setTimeout(() => current?.kill('SIGKILL'), graceMs);
      await exited;
      clearTimeout(killer);
    },
  };
}
