// A client of the stream of events, written from docs/behaviour.md §8 and the standard of server-sent events alone.

export type Message = { readonly id: string; readonly event: string; readonly data: string };
export type OpenStream = Awaited<ReturnType<typeof openStream>>;

/** Opens a stream; `messages` grows as it tells. @param body null = it is opened with GET, as a checkout page does */
export async function openStream(
  base: string,
  body: object | null,
  headers: Record<string, string> = {},
  path = '/stream_events',
) {
  const leaving = new AbortController();
  const response = await fetch(base + path, {
    ...(body === null ? { headers } : posting(body, headers)),
    signal: leaving.signal,
  });
  const messages: Message[] = [];
  const beats: Message[] = [];
  const waiting = new Set<() => void>();
  let cursor = '';
  let isOver = false;
  const wake = () => {
    for (const one of waiting) one();
  };

  function take(block: string): void {
    let event = 'message';
    let id = cursor;
    const data: string[] = [];
    for (const line of block.split('\n')) {
      const [, name = '', value = ''] = /^([^:]*):? ?(.*)$/.exec(line) ?? [];
      if (name === 'id') id = value;
      else if (name === 'event') event = value;
      else if (name === 'data') data.push(value);
    }
    // some clients pass over an id without data
    if (data.length > 0) cursor = id;
    if (data.length === 0 || event === 'position') return;
    const told = { id: cursor, event, data: data.join('\n') };
    if (event === 'beat') beats.push(told);
    else messages.push(told);
  }
  async function read(): Promise<void> {
    let rest = '';
    const decoder = new TextDecoder();
    for await (const bytes of response.body ?? []) {
      const blocks = (rest + decoder.decode(bytes, { stream: true })).split('\n\n');
      rest = blocks.pop() ?? '';
      for (const block of blocks) take(block);
      wake();
    }
  }
  const reading = (response.status === 200 ? read() : Promise.resolve())
    .catch(() => undefined)
    .finally(() => {
      isOver = true;
      wake();
    });
  /** Resolves once this is so; the test's own limit ends it otherwise. */
  async function until(isSo: () => boolean): Promise<void> {
    while (!isSo()) {
      const { promise, resolve } = Promise.withResolvers<void>();
      waiting.add(resolve);
      await promise;
      waiting.delete(resolve);
    }
  }
  return {
    response,
    messages,
    /** Signs of life of the stream of a checkout page. */
    beats,
    cursor: () => cursor,
    // biome-ignore lint/suspicious/noExplicitAny: whatever was told, for the test to look at
    events: (): any[] => messages.filter(({ event }) => event !== 'end').map(({ data }) => JSON.parse(data)),
    /** Resolves when a cursor is known, or the stream is over. */
    begun: () => until(() => cursor !== '' || isOver),
    /** Resolves when its cursor is another one than this, or the stream is over. */
    moved: (from: string) => until(() => cursor !== from || isOver),
    count: (n: number) => until(() => messages.length >= n || isOver),
    beaten: (n: number) => until(() => beats.length >= n || isOver),
    over: () => reading,
    async close(): Promise<void> {
      leaving.abort();
      await reading;
    },
  };
}

function posting(body: object, headers: Record<string, string>): RequestInit {
  return { method: 'POST', headers: { 'content-type': 'application/json', ...headers }, body: JSON.stringify(body) };
}
