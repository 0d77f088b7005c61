// Open checkout pages that are told of changes (server-sent events, WHATWG HTML §9.2). One reading a second looks at all of them: a confirmation or a partial
// payment is no event of ours, and a customer must see it. It has its own timer, because a page that waits gives no event to react to.
import type { ServerResponse } from 'node:http';
import { Refusal } from '../../core/refusal.ts';
import { type Checkout, readCheckouts } from '../../flow/transactions/checkouts.ts';
import type { ServerContext } from '../server-context.ts';
import { createPlaces, type PlaceLimits } from '../stream-places.ts';
import { change } from './page.ts';
import type { Language } from './words/languages.ts';

/** Of one address there may be many: a whole shop may be behind it. */
const PLACES: PlaceLimits = { ofAll: 1_000, ofOne: 100 };
const LOOK_MS = 1_000;
/** A page that hears nothing for longer asks anew (browser/checkout.js). */
const HEARTBEAT_MS = 10_000;
/** A clock that moves by more than this against the process's own was set. */
const CLOCK_SET_MS = 1_000;
/** How long a browser waits before it comes back. */
const COME_BACK_MS = 2_000;

type Stream = {
  readonly transactionId: string;
  readonly address: string;
  readonly language: Language;
  readonly response: ServerResponse;
  /** Of what it was told last: see {@link whatChanges}. */
  shown: string;
  /** Ends it, and gives its place back. */
  readonly leave: () => void;
};

export type CheckoutStreams = {
  /** Takes a place for this address; returns what gives it back. Refused as by {@link createPlaces}, and while the server closes. */
  reserve(address: string): () => void;
  /** Tells what is there now, and then each change, until the client goes or the server closes; the head of the answer is written. */
  start(
    checkout: Checkout,
    of: Pick<Stream, 'address' | 'language' | 'response'> & { readonly gone: AbortSignal; readonly release: () => void },
  ): void;
};

/** None is open when it is made. */
export function createCheckoutStreams(context: ServerContext): CheckoutStreams {
  const streams = new Set<Stream>();
  const takePlace = createPlaces(context.checkoutLimits ?? PLACES, 'checkout pages of an address', endOneOf);
  let timer: NodeJS.Timeout | null = null;
  let isReading = false;
  let heartbeatMs = performance.now();
  let aheadMs = context.now() - performance.now();

  function reserve(address: string): () => void {
    if (context.closing.aborted) throw new Refusal('overloaded');
    return takePlace(address);
  }

  /** The one that has been open for longest; its page comes back by itself, and asks without a stream where there is no place. */
  function endOneOf(address: string): boolean {
    const oldest = [...streams].find((stream) => stream.address === address);
    oldest?.leave();
    return oldest !== undefined;
  }

  async function look(): Promise<void> {
    if (isReading) return;
    isReading = true;
    try {
      const found = await readCheckouts(context.ctx, [...new Set([...streams].map(({ transactionId }) => transactionId))]);
      for (const stream of streams) {
        const checkout = found.get(stream.transactionId);
        if (checkout !== undefined) tell(stream, checkout);
      }
      beat();
    } catch (error) {
      context.report({ requestId: 'none', path: '/pay', error }, 'open checkout pages could not be told');
    } finally {
      isReading = false;
    }
  }

  function tell(stream: Stream, checkout: Checkout): void {
    const shown = whatChanges(checkout);
    // whoever has not taken the last one gets the newest when it has
    if (shown === stream.shown || stream.response.writableLength > 0) return;
    stream.shown = shown;
    stream.response.write(`event: change\ndata: ${JSON.stringify(change(checkout, stream.language))}\n\n`);
  }

  /** Tells the time, as an event and not as a comment: a page hears no comments, and must know that it still hears. */
  function beat(): void {
    const nowMs = performance.now();
    const now = context.now();
    const isClockSet = Math.abs(now - nowMs - aheadMs) > CLOCK_SET_MS;
    if (nowMs - heartbeatMs < HEARTBEAT_MS && !isClockSet) return;
    heartbeatMs = nowMs;
    aheadMs = now - nowMs;
    const told = `event: beat\ndata: ${JSON.stringify({ now })}\n\n`;
    for (const { response } of streams) if (response.writableLength === 0) response.write(told);
  }

  context.closing.addEventListener('abort', () => {
    for (const { response } of streams) response.end();
  });

  return {
    reserve,
    start(checkout, { address, language, response, gone, release }) {
      const stream: Stream = { transactionId: checkout.transactionId, address, language, response, shown: '', leave };
      streams.add(stream);
      timer ??= setInterval(() => void look(), LOOK_MS).unref();
      function leave(): void {
        if (!streams.delete(stream)) return;
        response.end();
        release();
        if (streams.size > 0 || timer === null) return;
        clearInterval(timer);
        timer = null;
      }
      response.once('close', leave);
      gone.addEventListener('abort', leave);
      if (gone.aborted || response.closed || context.closing.aborted) return leave();
      response.write(`retry: ${COME_BACK_MS}\n\n`);
      tell(stream, checkout);
    },
  };
}

/** Everything in a screen that can become another: what it is made of is fixed when the transaction is created. */
function whatChanges({ screen, status, isWatched, receivedMinor, awaitedMinor, confirmations, payments }: Checkout): string {
  const each = payments.map(({ txid, minor, isGone }) => `${txid} ${minor} ${isGone}`);
  return [screen, status, isWatched, receivedMinor, awaitedMinor, confirmations, ...each].join(' ');
}
