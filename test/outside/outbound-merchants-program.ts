// A program as that of the thread of outbound calls, in which to call one name takes for ever: which certificates do so nobody knows beforehand.
import { createOutbound } from '../../src/outside/outbound/outbound.ts';
import { type Answer, type Question, sentAs } from '../../src/outside/outbound/outbound-thread.ts';
import { ANYWHERE } from '../../src/outside/outbound/policy.ts';
import { answerQuestions, given } from '../../src/outside/outbound/thread-answers.ts';

const { work } = given();
const outbound = createOutbound(ANYWHERE);
answerQuestions<Question, Answer>(async (question) => {
  if (question.ask === 'address') return null;
  const { url, merchantId } = question.request;
  if (new URL(url).pathname === '/for-ever')
    work.do(merchantId ?? 0n, () => {
      for (;;);
    });
  if (new URL(url).pathname === '/too-much')
    return { kind: 'failed', failure: 'failed_here', reason: 'he took too much', tookMs: 0, wasDear: true };
  if (new URL(url).pathname === '/throw')
    return new Promise(() =>
      setImmediate(() => {
        throw new Error('a fault of its own');
      }),
    );
  return sentAs(await outbound.call(question.request));
});
