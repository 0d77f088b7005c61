// The log of a process while its database is gone or lacks a resource: one line when that begins and one when it is over, however many jobs
// and calls fail meanwhile. Everything else is logged as it comes.
import type { Database } from '../../store/postgres/connect.ts';

type Log = { error(fields: object, message: string): void; info(fields: object, message: string): void };

/** PostgreSQL unreachable, shutting down, recovering or read-only (a standby); class 08: the connection broke; class 53: no disk, memory or sessions left. */
const GONE =
  /^(EAI_AGAIN|ECONNREFUSED|ECONNRESET|EHOSTUNREACH|ENETUNREACH|ENOENT|ENOTFOUND|EPIPE|ETIMEDOUT|25006|57P0[1-3]|08\w{3}|53\w{3})$/;
/** The driver's messages, which have no code, for a session that broke, was closed or does not answer. */
const LOST =
  /^(Connection terminated|timeout expired|timeout exceeded when trying to connect|Query read timeout|the database does not answer|Client (has encountered a connection error|was closed))/;
const LOOK_EVERY_MS = 1_000;
const QUIET_MS = 16_000;

/** What an error says about a database that is gone or lacks a resource; null for every other error. */
export function outageOf(error: unknown): string | null {
  if (!(error instanceof Error)) return null;
  const { code, syscall, message } = error as Error & { code?: unknown; syscall?: unknown };
  // a file of ours that is missing is not the database's socket
  if (code === 'ENOENT' && syscall !== 'connect') return null;
  if (typeof code === 'string' && GONE.test(code)) return message === '' ? code : message;
  return LOST.test(message) ? message : null;
}

export type OutageLog = {
  /** Logs what went wrong; a database that is gone only once. */
  report(fields: object & { readonly error?: unknown; readonly err?: unknown }, message: string): void;
  close(): void;
};

/** @param db probed once a second during an outage, until it answers and nothing has failed for as long as a job waits before its next try */
export function createOutageLog(db: Pick<Database, 'query'>, log: Log): OutageLog {
  let outage: { readonly sinceMs: number; lastMs: number; failures: number } | null = null;
  let timer: NodeJS.Timeout | null = null;

  async function look(): Promise<void> {
    const answers = await db.query({ text: 'select 1' }).then(
      () => true,
      () => false,
    );
    if (outage === null) return;
    if (answers && performance.now() - outage.lastMs > QUIET_MS) {
      const seconds = Math.round((outage.lastMs - outage.sinceMs) / 1_000);
      log.info({ seconds, failures: outage.failures }, 'the database can be used again');
      outage = null;
    } else timer = setTimeout(() => void look(), LOOK_EVERY_MS).unref();
  }

  return {
    report(fields, message) {
      const reason = outageOf(fields.error ?? fields.err);
      if (reason === null) {
        log.error(fields, message);
        return;
      }
      const nowMs = performance.now();
      if (outage !== null) {
        outage.lastMs = nowMs;
        outage.failures += 1;
        return;
      }
      outage = { sinceMs: nowMs, lastMs: nowMs, failures: 1 };
      log.error({ reason }, 'the database cannot be used: everything that needs it waits and continues by itself');
      timer = setTimeout(() => void look(), LOOK_EVERY_MS).unref();
    },
    close() {
      outage = null;
      if (timer !== null) clearTimeout(timer);
    },
  };
}
