// Opens a stream of events (behaviour §8): where it begins is settled before the head of the answer, so that nothing which happens after that is
// missed.
import type { BodyOf } from '../../contract/fields.ts';
import type { STREAM_API } from '../../contract/webhook-api.ts';
import { cursorAt, positionOf } from '../../flow/events/stream.ts';
import { type EventStreams, placeAt } from '../event-streams.ts';
import type { StreamCall } from '../operation.ts';
import { singleHeader } from '../single-headers.ts';
import { goneSignal } from './wait.ts';

const HEADERS = {
  'content-type': 'text/event-stream; charset=utf-8',
  'cache-control': 'no-store',
  // proxies must not collect it (nginx)
  'x-accel-buffering': 'no',
};
/** How long a client waits before it comes back. */
const COME_BACK_MS = 1_000;

type Fields = BodyOf<(typeof STREAM_API)['streamEvents']['fields']>;

/** @returns the handler of `/stream_events` */
export function streamHandler(streams: EventStreams): (call: StreamCall, fields: Fields) => Promise<void> {
  return async ({ ctx, context, request, caller, token, begin }, fields) => {
    const { merchantId } = caller;
    const cursor = lastEventId(singleHeader(request.raw, 'last-event-id')) ?? fields.starting_after;
    const known = cursor === null ? null : await positionOf(ctx, merchantId, cursor);
    const free = streams.reserve(merchantId);
    let isFollowed = false;
    const release = (): void => {
      free();
      if (isFollowed) context.eventTail.leave(merchantId);
    };
    try {
      const settled = await context.eventTail.join(merchantId);
      isFollowed = true;
      const from = cursor ?? (await cursorAt(ctx, merchantId, settled));
      const gone = goneSignal(request.raw.socket);
      const response = begin(HEADERS);
      response.write(`retry: ${COME_BACK_MS}\n${placeAt(from)}`);
      const types = fields.events === null ? null : new Set<string>(fields.events);
      const filter = { merchantId, types, object: fields.object };
      streams.start({ filter, caller, token, requestId: request.id, response, gone, position: known ?? settled }, release);
    } catch (error) {
      release();
      throw error;
    }
  };
}

/** Null where there is none; an empty one is that of a client which has seen none. */
const lastEventId = (header: string | undefined): string | null => (header === undefined || header === '' ? null : header);
