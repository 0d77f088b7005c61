// A program as that of the thread of outbound calls, in which to call one name takes for ever: which certificates do so nobody knows beforehand.
import type { Outbound } from '../../src/core/outbound.ts';
import { callInTurn } from '../../src/outside/outbound/calls-in-turn.ts';
import { createOutbound } from '../../src/outside/outbound/outbound.ts';
import {
  type Answer,
  inSecondThread,
  type Question,
  sentAs,
  type ThreadData,
} from '../../src/outside/outbound/outbound-thread.ts';
import { ANYWHERE } from '../../src/outside/outbound/policy.ts';
import { answerQuestions, given } from '../../src/outside/outbound/thread-answers.ts';

const { data, work } = given<ThreadData>();
const made = createOutbound(ANYWHERE);
const here: Pick<Outbound, 'call'> = {
  call: async (request) =>
    new URL(request.url).pathname === '/too-much'
      ? { kind: 'failed', failure: 'failed_here', reason: 'he took too much', tookMs: 0 }
      : made.call(request),
};
const outbound = data.isForAll ? here : inSecondThread(here);
const atOnce = { begin: (_: bigint, piece: () => void) => piece() };
answerQuestions<Question, Answer>(async (question) => {
  if (question.ask === 'address') return null;
  const { url, merchantId } = question.request;
  if (new URL(url).pathname === '/for-ever')
    work.do(merchantId ?? 0n, () => {
      for (;;);
    });
  if (new URL(url).pathname === '/throw')
    return new Promise(() =>
      setImmediate(() => {
        throw new Error('a fault of its own');
      }),
    );
  const sent = sentAs(await callInTurn(outbound, atOnce, question.request));
  return new URL(url).pathname === '/too-much' ? { ...sent, wasDear: true } : sent;
});
