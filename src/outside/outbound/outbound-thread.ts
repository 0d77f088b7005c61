// Makes outbound calls in threads of their own. A server that a stranger runs decides in part what is computed here for it, above all by its
// certificates, and a single piece of that may take as long as it likes: it must not hold up what watches chains, pays out or answers merchants.
// Nor may it hold up other merchants' calls again and again: whose server did so is called from a second thread.
import { FAILED_HERE, type Outbound, type OutboundResult } from '../../core/outbound.ts';
import { type CallRequest, NOBODY } from './calls-in-turn.ts';
import { dearMerchants } from './dear-merchants.ts';
import { type OutboundSettings, policyOf, urlProblem } from './policy.ts';
import { openThread, type ThreadEnded } from './thread.ts';

/** What the thread gets to begin with. */
export type ThreadData = {
  readonly settings: OutboundSettings;
  /** Whether it is the one that all share: whoever takes much of it goes on in the other one. */
  readonly isForAll: boolean;
};
/** What the thread is asked: to make a call, or where a host leads (`Outbound.addressProblemOf`). */
export type Question =
  | { readonly ask: 'call'; readonly request: Omit<CallRequest, 'signal'> }
  | { readonly ask: 'address'; readonly url: string };
type Answered = Extract<OutboundResult, { readonly kind: 'answered' }>;
/** As it comes from the thread: to copy a small piece of memory of its own is dearer than to make a text of it, one character for each byte. */
type Sent = Exclude<OutboundResult, Answered> | (Omit<Answered, 'body'> & { readonly body: string });
/** The result of a call, with word of it where the merchant's servers took much of the thread, or what is wrong with an address. */
export type Answer = (Sent & { readonly wasDear?: true }) | string | null;

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

const RESTING = {
  kind: 'failed',
  failure: 'connection_failed',
  reason: 'a server of this merchant takes too long to compute with',
} as const;

/** Calls in the thread of those who are dear. There is no third one: whoever takes too much of this one too has not failed here. */
export function inSecondThread({ call }: Pick<Outbound, 'call'>): Pick<Outbound, 'call'> {
  return {
    async call(request) {
      const result = await call(request);
      return result.kind === 'failed' && result.failure === FAILED_HERE ? { ...result, failure: RESTING.failure } : result;
    },
  };
}

/**
 * As `createOutbound`. A thread is there from its first call on: many processes never make one.
 * @param file what the threads run
 */
export function createOutboundThread(settings: OutboundSettings, file = PROGRAM): Outbound {
  const policy = policyOf(settings);
  const merchants = dearMerchants();
  function open(isForAll: boolean) {
    const data: ThreadData = { settings, isForAll };
    const program = { file, data, limits: LIMITS };
    return openThread<Question, Answer>(program, {
      stuck: (whom, exited) => void (whom !== NOBODY && merchants.addStuck(whom, exited)),
      failed: (whom) => void (whom !== NOBODY && merchants.add(whom)),
    });
  }
  const [ofMost, ofDear] = [open(true), open(false)];
  const threadOf = (merchantId: bigint | null) => (merchantId !== null && merchants.isDear(merchantId) ? ofDear : ofMost);
  const problemOf = (text: string): string | null => urlProblem(policy, text);
  async function callOnce({ signal, ...request }: CallRequest): Promise<OutboundResult> {
    const { merchantId, withinMs } = request;
    if (merchantId !== null && merchants.isResting(merchantId)) return { ...RESTING, tookMs: 0 };
    const began = performance.now();
    try {
      const answer = await threadOf(merchantId).ask({ ask: 'call', request }, withinMs + STUCK_AFTER_MS, signal);
      const { wasDear, ...sent } = answer as Exclude<Answer, string | null>;
      if (wasDear === true && merchantId !== null) merchants.add(merchantId);
      return receivedAs(sent);
    } catch (error) {
      const { message: reason, whom } = error as ThreadEnded;
      const failure = whom !== null && whom === merchantId ? 'connection_failed' : FAILED_HERE;
      return { kind: 'failed', failure, reason, tookMs: Math.round(performance.now() - began) };
    }
  }
  return {
    problemOf,
    async addressProblemOf(url) {
      const problem = problemOf(url);
      if (problem !== null) return problem;
      const answer = ofMost.ask({ ask: 'address', url }, ADDRESS_WITHIN_MS) as Promise<string | null>;
      return answer.catch(() => null);
    },
    async call(request) {
      const first = await callOnce(request);
      // what was under way for others when a thread ended is none of their servers' doing, nor do they wait for the next attempt
      const withinMs = request.withinMs - first.tookMs;
      if (first.kind === 'answered' || first.failure !== FAILED_HERE || withinMs <= 0) return first;
      const again = await callOnce({ ...request, withinMs, wholeMs: request.withinMs });
      const tookMs = first.tookMs + again.tookMs;
      // the first may have begun, and what was sent may have arrived
      return again.kind === 'answered' ? { ...again, tookMs } : { ...again, tookMs, hasNotBegun: false };
    },
    async close() {
      await Promise.all([ofMost.close(), ofDear.close()]);
    },
  };
}
