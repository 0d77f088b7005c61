// One process of the group as its supervisor holds it: started, watched, started again when it dies (not too often), stopped. Used by
// src/main/start.ts.
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { type Identity, identityOf } from './process-identity.ts';
import { LOAD_ONLY_ARGUMENTS, type Order, SUPERVISED_ARGUMENTS, type Word } from './process-life.ts';
import { StartRefused } from './start-refused.ts';

export type ChildOptions = {
  readonly name: string;
  /** File name of the entry in src/main. */
  readonly entry: string;
  /** Asked at every start of it. */
  readonly environment: () => NodeJS.ProcessEnv;
  /** Heap limit and such, for node itself. */
  readonly nodeFlags?: readonly string[];
  /** It ended although nobody stopped it; it is being started again. */
  readonly onRestart: (line: string) => void;
  /** It dies, or refuses to start again, too often: the group cannot go on. */
  readonly onGiveUp: (line: string) => void;
  /** Another process carries its name now. */
  readonly onChange: () => void;
};

export type Child = {
  readonly name: string;
  /** Lets it begin its work, now and after every new start, with these variables in its environment; until then it is only loaded. */
  begin(variables: Readonly<Record<string, string>>): void;
  /** What it answers, one question at a time; once it is ready, and if it has to be started again in between, then after that. */
  ask(question: string): Promise<unknown>;
  /** Resolves with what it said when it was ready for the first time; rejects with StartRefused when it refused or ended before. */
  readonly ready: Promise<string>;
  identity(): Identity | null;
  /** From now on its end is no surprise: it is not started again. It goes on until it is stopped, also when a signal of the whole group reaches it. */
  letGo(): void;
  /** Stops it in order; after `graceMs` it is killed. */
  stop(graceMs: number): Promise<void>;
};

const MOST_DEATHS = 5;
const WITHIN_MS = 60_000;

/** Runs a process that only loads its program; resolves when it has ended, however. */
export async function loadOnly({ entry, nodeFlags }: Pick<ChildOptions, 'entry' | 'nodeFlags'>): Promise<void> {
  const path = fileURLToPath(new URL(entry, import.meta.url));
  const child = fork(path, LOAD_ONLY_ARGUMENTS, { execArgv: [...(nodeFlags ?? [])], stdio: 'ignore' });
  await once(child, 'exit').catch(() => undefined);
}

export function startChild(options: ChildOptions): Child {
  const { name, onRestart, onGiveUp } = options;
  let current: ChildProcess | null = null;
  let exited: Promise<void> = Promise.resolve();
  let stopping = false;
  // what it said when it was ready; null before that
  let note: string | null = null;
  let begun: Readonly<Record<string, string>> | null = null;
  let pending: NodeJS.Timeout | null = null;
  const deaths: number[] = [];
  let asked: { readonly question: string; readonly resolve: (answer: unknown) => void } | null = null;
  let settle: { resolve: (note: string) => void; reject: (error: Error) => void };
  const ready = new Promise<string>((resolve, reject) => {
    settle = { resolve, reject };
  });
  ready.catch(() => undefined); // whoever awaits it hears it; a stop in between is nobody's error

  function launch(): void {
    const child = fork(fileURLToPath(new URL(options.entry, import.meta.url)), SUPERVISED_ARGUMENTS, {
      env: options.environment(),
      execArgv: [...(options.nodeFlags ?? [])],
      stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
    });
    current = child;
    let refusal: string | null = null;
    child.on('message', (word: Word) => {
      if (word.say === 'refused') refusal = word.line;
      else if (word.say === 'answer') answered(word.answer);
      else if (note !== null && word.note !== note)
        onGiveUp(`${name} came back as "${word.note}" and was "${note}": the others cannot find it`);
      else {
        note = word.note;
        settle.resolve(word.note);
        // one that was asked and died is asked again
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

  function died(refusal: string | null, how: string): void {
    if (note === null) {
      settle.reject(new StartRefused(refusal ?? `${name} ended before it was ready (${how})`));
      return;
    }
    // what is refused at a second start (a database that is being started again too) may be there at the third
    const why = refusal ?? how;
    const now = performance.now();
    deaths.push(now);
    const recent = deaths.filter((at) => now - at < WITHIN_MS).length;
    if (recent > MOST_DEATHS) {
      onGiveUp(`${name} died ${recent} times within a minute (last: ${why})`);
      return;
    }
    // at once the first time, but not before a signal that went to the whole group has reached us too; a process that dies again and
    // again must not eat the machine
    pending = setTimeout(
      () => {
        if (stopping) return;
        onRestart(`${name} died (${why}); starting it again`);
        launch();
      },
      recent === 1 ? 30 : 200 * recent,
    );
  }

  function answered(answer: unknown): void {
    asked?.resolve(answer);
    asked = null;
  }

  function order(word: Order): void {
    if (current?.connected === true) current.send(word, () => undefined);
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
    async stop(graceMs) {
      stopping = true;
      if (pending !== null) clearTimeout(pending);
      if (current === null) return;
      order({ stop: 'now' });
      // one that cannot hear yet ends by this
      current.kill('SIGTERM');
      const killer = setTimeout(() => current?.kill('SIGKILL'), graceMs);
      await exited;
      clearTimeout(killer);
    },
  };
}
