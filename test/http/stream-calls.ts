// What the tests of the stream of events share: an API, streams that are closed after each test, and changes that make events.
import { afterAll, afterEach, beforeAll, expect } from 'vitest';
import { type OpenStream, openStream } from '../support/event-stream.ts';
import { type ApiOptions, type ApiServer, makeApi } from './api-server.ts';

/** Called once while the file of tests is read. */
export function useStreams(options: ApiOptions = {}) {
  const ready = {} as { api: ApiServer };
  const opened: OpenStream[] = [];
  beforeAll(async () => {
    ready.api = await makeApi(options);
  });
  afterEach(async () => {
    await Promise.all(opened.splice(0).map((one) => one.close()));
  });
  afterAll(async () => {
    expect(ready.api.bugs).toEqual([]);
    await ready.api.end();
  });

  return Object.assign(ready, {
    /** Resolves when the stream has begun, or was refused. */
    async open(body: object = {}, headers: Record<string, string> = {}, username = 'shop'): Promise<OpenStream> {
      const { api } = ready;
      const stream = await openStream(api.base, { access_token: await api.tokenOf(username), ...body }, headers);
      opened.push(stream);
      await stream.begun();
      return stream;
    },
    async started(username = 'shop'): Promise<string> {
      const body = { amount: '25.00', crypto_selected: 'BTC' };
      return (await ready.api.call('/create_transaction', body, {}, username)).json.transaction_id;
    },
    cancel: (transaction_id: string) => ready.api.call('/cancel_transaction', { transaction_id }),
  });
}
