// A session that only listens to notifications and comes back by itself after the connection broke. Called by connect.ts; it has a timer of
// its own because a database that is gone cannot be waited for in any other way.
import pg from 'pg';

/** Opens the session; `onLost` is told when messages may have been missed (broken, and once it is back). */
export async function openListener(
  config: pg.ClientConfig,
  channels: readonly string[],
  onMessage: (channel: string, payload: string) => void,
  onLost: () => void,
): Promise<() => Promise<void>> {
  let client: pg.Client | null = null;
  let closed = false;
  async function open(): Promise<void> {
    const next = new pg.Client({ ...config, keepAlive: true });
    next.on('notification', (message) => onMessage(message.channel, message.payload ?? ''));
    next.on('error', () => undefined);
    try {
      await next.connect();
      for (const channel of channels) await next.query(`listen ${channel}`);
    } catch (error) {
      next.end().catch(() => undefined);
      throw error;
    }
    client = next;
    // only now: an attempt that failed ends too, and is not to be followed by two
    next.on('end', () => {
      if (closed) return;
      onLost();
      void reopen();
    });
    if (closed) await next.end();
  }
  async function reopen(): Promise<void> {
    while (!closed) {
      try {
        await open();
        onLost();
        return;
      } catch {
        await new Promise((resolve) => {
          setTimeout(resolve, 500).unref();
        });
      }
    }
  }
  await open();
  return async () => {
    closed = true;
    await client?.end();
  };
}
