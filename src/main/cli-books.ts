// What a command needs of the service: its database (joined or started), and the verbs' context. Used by the cli-*.ts that touch the books.
import type { Context } from '../flow/context.ts';
import type { SignInContext } from '../flow/token-pair.ts';
import { type Opened, open } from './opened.ts';
import type { Wired } from './wire.ts';

const OPTIONS = { applicationName: 'bursar command', maxConnections: 2 } as const;

type Program = typeof import('./wire.ts');

/** Opens the database, wires what the command needs to it, and closes both again, whatever becomes of the work. */
async function withWired<C, T>(
  wireIt: (program: Program, config: Opened['config']) => Wired<C> | Promise<Wired<C>>,
  work: (ctx: C, config: Opened['config']) => Promise<T>,
): Promise<T> {
  const { config, database } = await open();
  try {
    // most of the program: loaded only when there is something to do
    const wired = await wireIt(await import('./wire.ts'), config);
    try {
      return await work(wired.ctx, config);
    } finally {
      await wired.close();
    }
  } finally {
    await database.close();
  }
}

/** Runs the work on the service's books; the embedded database is started before and stopped after it when nobody else uses it. */
export function withBooks<T>(work: (ctx: Context, config: Opened['config']) => Promise<T>): Promise<T> {
  return withWired(({ wireBooks }, config) => wireBooks(config, OPTIONS), work);
}

/** The same with the nodes; in the sandbox these are there while it runs. */
export function withNodes<T>(work: (ctx: Context) => Promise<T>): Promise<T> {
  return withWired(({ wire }, config) => wire(config, { ...OPTIONS, sandboxWithinMs: 0 }), work);
}

/** The same for merchants and users. */
export function withSignIns<T>(work: (ctx: SignInContext) => Promise<T>): Promise<T> {
  return withWired(({ wireSignIn }, config) => wireSignIn(config, OPTIONS), work);
}
