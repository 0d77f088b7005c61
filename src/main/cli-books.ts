// What a command needs of the service: its database (joined or started), and the verbs' context. Used by the cli-*.ts that touch the books.
import type { Context } from '../flow/context.ts';
import type { SignInContext } from '../flow/token-pair.ts';
import { type Opened, open } from './opened.ts';

const OPTIONS = { applicationName: 'bursar command', maxConnections: 2 } as const;

/** Runs the work on the service's books; the embedded database is started before and stopped after it when nobody else uses it. */
export async function withBooks<T>(work: (ctx: Context, config: Opened['config']) => Promise<T>): Promise<T> {
  const { config, database } = await open();
  try {
    // most of the program: loaded only when there is something to do
    const { wireBooks } = await import('./wire.ts');
    const wired = wireBooks(config, OPTIONS);
    try {
      return await work(wired.ctx, config);
    } finally {
      await wired.close();
    }
  } finally {
    await database.close();
  }
}

/** The same with the nodes; in the sandbox these are there while it runs. */
export async function withNodes<T>(work: (ctx: Context) => Promise<T>): Promise<T> {
  const { config, database } = await open();
  try {
    const { wire } = await import('./wire.ts');
    const wired = await wire(config, { ...OPTIONS, sandboxWithinMs: 0 });
    try {
      return await work(wired.ctx);
    } finally {
      await wired.close();
    }
  } finally {
    await database.close();
  }
}

/** The same for merchants and users. */
export async function withSignIns<T>(work: (ctx: SignInContext) => Promise<T>): Promise<T> {
  const { config, database } = await open();
  try {
    const { wireSignIn } = await import('./wire.ts');
    const wired = wireSignIn(config, OPTIONS);
    try {
      return await work(wired.ctx);
    } finally {
      await wired.close();
    }
  } finally {
    await database.close();
  }
}
