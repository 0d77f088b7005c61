// Reads `/stream_events` (server-sent events, WHATWG HTML §9.2): the messages of one connection.
import { CommandFailed } from '../output.ts';
import { refusalIn, send } from './api-client.ts';
import type { Session } from './session.ts';

export type Message = {
  /** The cursor from here on. */
  readonly id: string;
  readonly event: string;
  /** Null: a cursor alone. */
  readonly data: string | null;
};
export type Filter = { readonly events: readonly string[] | null; readonly object: string | null };

const PATH = '/stream_events';
/** A cursor alone. */
const POSITION = 'position';
/** The server says every 15 seconds that it lives. */
const SILENT_MS = 45_000;

/**
 * Yields what one connection tells, until it ends: it ends silently where the connection was lost.
 * @param after the last cursor; null = from now on
 * @param stop ends it
 * @throws CallRefused; CommandFailed when no server answers
 */
export async function* streamOnce(
  session: Session,
  { events, object }: Filter,
  after: string | null,
  stop?: AbortSignal,
): AsyncGenerator<Message> {
  const leaving = new AbortController();
  let silence: NodeJS.Timeout | null = null;
  const listen = (): void => {
    if (silence !== null) clearTimeout(silence);
    silence = setTimeout(() => leaving.abort(), SILENT_MS).unref();
  };
  const signal = stop === undefined ? leaving.signal : AbortSignal.any([leaving.signal, stop]);
  try {
    listen();
    const headers = { 'content-type': 'application/json', ...(after === null ? {} : { 'last-event-id': after }) };
    const body = JSON.stringify({ access_token: session.token(), events, object });
    const response = await send(session.url, PATH, { headers, body, signal });
    if (!response.ok) throw await refusalIn(PATH, response);
    if (response.body === null) throw new CommandFailed(`${PATH} answered nothing`);
    yield* messages(lost(response.body, listen));
  } finally {
    if (silence !== null) clearTimeout(silence);
    leaving.abort();
  }
}

/** What arrives, until the connection breaks. */
async function* lost(body: AsyncIterable<Uint8Array>, onBytes: () => void): AsyncGenerator<Uint8Array> {
  try {
    for await (const bytes of body) {
      onBytes();
      yield bytes;
    }
  } catch (error) {
    // whatever fetch calls it, the connection is gone
    if (!(error instanceof TypeError) && (error as Error).name !== 'AbortError') throw error;
  }
}

async function* messages(body: AsyncIterable<Uint8Array>): AsyncGenerator<Message> {
  const decoder = new TextDecoder();
  let rest = '';
  let id = '';
  for await (const bytes of body) {
    const blocks = (rest + decoder.decode(bytes, { stream: true })).split('\n\n');
    rest = blocks.pop() ?? '';
    for (const block of blocks) {
      let event = 'message';
      const data: string[] = [];
      for (const line of block.split('\n')) {
        // a value may hold U+2028, which JSON leaves as it is and a dot takes for the end of a line
        const [, name = '', value = ''] = /^([^:]*):? ?(.*)$/s.exec(line) ?? [];
        if (name === 'id') id = value;
        else if (name === 'event') event = value;
        else if (name === 'data') data.push(value);
      }
      if (data.length > 0) yield { id, event, data: event === POSITION ? null : data.join('\n') };
    }
  }
}
