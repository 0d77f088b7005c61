// The session on which a process receives all its notifications; it reconnects by itself. It has its own timer because there is no other
// way to wait for a database that is gone, and none to learn of an end that nobody tells: what stands between may have forgotten a connection
// on which nothing is said, and then nothing would ever be heard again.
import pg from 'pg';

/**
 * Listens from the moment it resolves until the function it resolves with is called. `onLost` runs when messages may have been missed (when
 * the session broke, and again once it is back).
 */
export type Listen = (
  channels: readonly string[],
  onMessage: (channel: string, payload: string) => void,
  onLost: () => void,
) => Promise<() => Promise<void>>;

type Listener = {
  readonly channels: readonly string[];
  readonly onMessage: (channel: string, payload: string) => void;
  readonly onLost: () => void;
};

const AGAIN_MS = 500;

/**
 * `listen` opens the session with the first listener, and closes it after the last; `reopen` gives it up for a new one: it may lead to a
 * server that is not ours any more.
 * @param options.silentMs how often the server is asked for a sign of life; a session that has given none by the next time is given up
 * @param options.onBroken runs when the session broke
 */
export function openListening(
  config: pg.ClientConfig,
  { silentMs, onBroken }: { readonly silentMs: number; readonly onBroken: () => void },
): { readonly listen: Listen; reopen(): void } {
  const listeners = new Set<Listener>();
  let session: { readonly client: pg.Client; readonly channels: Set<string> } | null = null;
  let signs: NodeJS.Timeout | undefined;
  let broken = false;
  let turn: Promise<unknown> = Promise.resolve();

  /** One opening at a time. */
  function inTurn<T>(work: () => Promise<T>): Promise<T> {
    const mine = turn.then(work);
    turn = mine.catch(() => undefined);
    return mine;
  }

  function reportLost(): void {
    for (const { onLost } of [...listeners]) onLost();
  }

  /** Makes the session listen on all wanted channels; opens it when there is none. */
  async function listenToAll(): Promise<void> {
    const before = session;
    const { client, channels } = before ?? { client: await opened(), channels: new Set<string>() };
    try {
      for (const channel of new Set([...listeners].flatMap(({ channels }) => channels))) {
        if (channels.has(channel)) continue;
        await client.query(`listen ${channel}`);
        channels.add(channel);
      }
    } catch (error) {
      client.end().catch(() => undefined);
      throw error;
    }
    if (before !== null) return;
    // only now: a failed attempt emits 'end' too, and must not start a second reconnect
    session = { client, channels };
    client.on('end', () => ended(client));
    askForSigns(client);
    if (listeners.size === 0) await leave();
    else if (broken) reportLost();
    broken = false;
  }

  function askForSigns(client: pg.Client): void {
    clearInterval(signs);
    let isAsked = false;
    signs = setInterval(() => {
      if (isAsked) return reopen();
      isAsked = true;
      client.query('select 1').then(
        () => {
          isAsked = false;
        },
        () => undefined,
      );
    }, silentMs).unref();
  }

  function ended(client: pg.Client): void {
    if (session?.client !== client) return;
    session = null;
    clearInterval(signs);
    broken = true;
    onBroken();
    reportLost();
    void comeBack();
  }

  async function opened(): Promise<pg.Client> {
    const client = new pg.Client({ ...config, keepAlive: true });
    client.on('notification', ({ channel, payload = '' }) => {
      for (const one of [...listeners]) if (one.channels.includes(channel)) one.onMessage(channel, payload);
    });
    client.on('error', () => undefined);
    try {
      await client.connect();
      return client;
    } catch (error) {
      client.end().catch(() => undefined);
      throw error;
    }
  }

  async function comeBack(): Promise<void> {
    while (listeners.size > 0) {
      try {
        await inTurn(listenToAll);
        return;
      } catch {
        await new Promise((resolve) => {
          setTimeout(resolve, AGAIN_MS).unref();
        });
      }
    }
  }

  async function leave(): Promise<void> {
    const leaving = session;
    session = null;
    clearInterval(signs);
    await leaving?.client.end();
  }

  function reopen(): void {
    if (session === null) return;
    const { client } = session;
    ended(client);
    client.end().catch(() => undefined);
  }

  async function listen(
    channels: readonly string[],
    onMessage: (channel: string, payload: string) => void,
    onLost: () => void,
  ): Promise<() => Promise<void>> {
    const mine: Listener = { channels, onMessage, onLost };
    listeners.add(mine);
    try {
      await inTurn(listenToAll);
    } catch (error) {
      listeners.delete(mine);
      throw error;
    }
    return async () => {
      listeners.delete(mine);
      if (listeners.size === 0) await leave();
    };
  }
  return { listen, reopen };
}
