// What the thread of outbound calls runs (outbound-thread.ts).
import { merchantCosts } from './merchant-costs.ts';
import { createOutbound } from './outbound.ts';
import { type Answer, NOBODY, type Question, sentAs, type ThreadData } from './outbound-thread.ts';
import { policyOf } from './policy.ts';
import { answerQuestions, given } from './thread-answers.ts';

const { data, work } = given<ThreadData>();
const costs = merchantCosts(data.isForAll);
const outbound = createOutbound(policyOf(data.settings), {
  compute: (merchantId, part) => work.do(merchantId ?? NOBODY, part),
  took(merchantId, cpuMs) {
    if (merchantId !== null) costs.took(merchantId, cpuMs);
  },
  isOver: (merchantId) => merchantId !== null && costs.isOver(merchantId),
});

answerQuestions<Question, Answer>(async (question, signal) => {
  if (question.ask === 'address') return outbound.addressProblemOf(question.url);
  const { merchantId } = question.request;
  if (merchantId !== null) costs.call(merchantId);
  const sent = sentAs(await outbound.call({ ...question.request, signal }));
  return merchantId !== null && costs.wereDear(merchantId) ? { ...sent, wasDear: true } : sent;
});
