// What the thread of outbound calls runs (outbound-thread.ts).
import { workerData } from 'node:worker_threads';
import { createOutbound } from './outbound.ts';
import { type Answer, type Question, sentAs } from './outbound-thread.ts';
import { type OutboundSettings, policyOf } from './policy.ts';
import { answerQuestions } from './thread-answers.ts';

const outbound = createOutbound(policyOf(workerData as OutboundSettings));

answerQuestions<Question, Answer>(async (question, signal) => {
  if (question.ask === 'address') return outbound.addressProblemOf(question.url);
  return sentAs(await outbound.call({ ...question.request, signal }));
});
