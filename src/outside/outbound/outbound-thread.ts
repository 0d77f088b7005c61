// Makes outbound calls in a thread of their own. A server that a stranger runs decides in part what is computed here for it, above all by its
// certificates, and a single piece of that may take as long as it likes: it must not hold up what watches chains, pays out or answers merchants.
import type { Outbound, OutboundRequest, OutboundResult } from '../../core/outbound.ts';
import { type OutboundSettings, policyOf, urlProblem } from './policy.ts';
import { openThread } from './thread.ts';

/** What the thread is asked: to make a call, or where a host leads (`Outbound.addressProblemOf`). */
export type Question =
  | { readonly ask: 'call'; readonly request: Omit<OutboundRequest, 'signal'> }
  | { readonly ask: 'address'; readonly url: string };
type Answered = Extract<OutboundResult, { readonly kind: 'answered' }>;
/** As it comes from the thread: to copy a small piece of memory of its own is dearer than to make a text of it, one character for each byte. */
type Sent = Exclude<OutboundResult, Answered> | (Omit<Answered, 'body'> & { readonly body: string });
/** The result of a call, or what is wrong with an address. */
export type Answer = Sent | string | null;

/** What the thread sends for a result. */
export function sentAs(result: OutboundResult): Sent {
  return result.kind === 'answered' ? { ...result, body: Buffer.from(result.body).toString('latin1') } : result;
}

function receivedAs(sent: Sent): OutboundResult {
  return sent.kind === 'answered' ? { ...sent, body: Buffer.from(sent.body, 'latin1') } : sent;
}

const PROGRAM = new URL('./outbound-thread-program.ts', import.meta.url);
/** Of what is no body: those are bounded by how many calls there are at a time. */
const LIMITS = { maxOldGenerationSizeMb: 128, maxYoungGenerationSizeMb: 12 };
/** After the time that a call has. */
const STUCK_AFTER_MS = 10_000;
/** A name is looked up for as long as name servers take. */
const ADDRESS_WITHIN_MS = 60_000;

/** As `createOutbound`. The thread is there from the first call on: many processes never make one. */
export function createOutboundThread(settings: OutboundSettings): Outbound {
  const policy = policyOf(settings);
  const thread = openThread<Question, Answer>(PROGRAM, settings, LIMITS);
  const problemOf = (text: string): string | null => urlProblem(policy, text);
  return {
    problemOf,
    async addressProblemOf(url) {
      const problem = problemOf(url);
      if (problem !== null) return problem;
      const answer = thread.ask({ ask: 'address', url }, ADDRESS_WITHIN_MS) as Promise<string | null>;
      return answer.catch(() => null);
    },
    async call({ signal, ...request }) {
      const began = performance.now();
      try {
        const within = request.withinMs + STUCK_AFTER_MS;
        return receivedAs((await thread.ask({ ask: 'call', request }, within, signal)) as Sent);
      } catch (error) {
        const tookMs = Math.round(performance.now() - began);
        return { kind: 'failed', failure: 'connection_failed', reason: (error as Error).message, tookMs, isOurs: true };
      }
    },
    close: () => thread.close(),
  };
}
