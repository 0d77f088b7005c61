// What a command needs of the service: its database (joined or started) and the context of the operations.
import type { Context } from '../../flow/context.ts';
import type { SignInContext } from '../../flow/sign-in/token-pair.ts';
import { type Opened, open } from '../process/setup.ts';
import { prepareSeals } from '../wiring/credential-key.ts';
import type { Wired } from '../wiring/wire.ts';

const OPTIONS = { applicationName: 'bursar command', maxConnections: 2 } as const;

/**
 * Opens the database, connects what the command needs to it, and closes both again however the work ends. Most of the program is loaded
 * only when it is needed.
 */
async function withWired<C, T>(
  wireIt: (config: Opened['config']) => Promise<Wired<C>>,
  work: (ctx: C, config: Opened['config']) => Promise<T>,
): Promise<T> {
  const { config, database } = await open();
  try {
    const wired = await wireIt(config);
    try {
      return await work(wired.ctx, config);
    } finally {
      await wired.close();
    }
  } finally {
    await database.close();
  }
}

/** Runs the work on the service's books; the embedded database is started before and stopped after it when no other process uses it. */
export function withBooks<T>(work: (ctx: Context, config: Opened['config']) => Promise<T>): Promise<T> {
  return withWired(async (config) => (await import('../wiring/wire.ts')).wireBooks(config, OPTIONS), work);
}

/** The same with the nodes; the sandbox's exist only while it runs. */
export function withNodes<T>(work: (ctx: Context, config: Opened['config']) => Promise<T>): Promise<T> {
  return withWired(async (config) => (await import('../wiring/nodes.ts')).wire(config, { ...OPTIONS, sandboxWithinMs: 0 }), work);
}

/** The same for merchants and users. */
export function withSignIns<T>(work: (ctx: SignInContext) => Promise<T>): Promise<T> {
  return withForeignSeals(async (ctx, config) => {
    await prepareSeals(config, ctx);
    return work(ctx);
  });
}

/** The same where another key may have sealed them. */
export function withForeignSeals<T>(work: (ctx: SignInContext, config: Opened['config']) => Promise<T>): Promise<T> {
  return withWired(async (config) => (await import('../wiring/wire.ts')).wireSignIn(config, OPTIONS), work);
}
