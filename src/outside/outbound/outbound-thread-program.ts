// What the thread of outbound calls runs (outbound-thread.ts).
import { callInTurn, NOBODY } from './calls-in-turn.ts';
import { merchantCosts } from './merchant-costs.ts';
import { createOutbound } from './outbound.ts';
import { type Answer, inSecondThread, type Question, sentAs, type ThreadData } from './outbound-thread.ts';
import { policyOf } from './policy.ts';
import { answerQuestions, given } from './thread-answers.ts';
import { fairTurns } from './turns.ts';

const { data, work } = given<ThreadData>();
const costs = merchantCosts(data.isForAll);
const turns = fairTurns();
const outbound = createOutbound(policyOf(data.settings), {
  inTurn: (merchantId, piece) => turns.take(merchantId ?? NOBODY, piece),
  compute: (merchantId, part) => work.do(merchantId ?? NOBODY, part),
  took(merchantId, cpuMs) {
    if (merchantId !== null) costs.took(merchantId, cpuMs);
  },
  isOver: (merchantId) => merchantId !== null && costs.isOver(merchantId),
});

const calls = data.isForAll ? outbound : inSecondThread(outbound);

/** Each is told once. */
const faults = new Set<string>();
const MOST_FAULTS = 100;
// What is thrown to nobody belongs to one connection, or one call, whose time will be over: a server that brings it about is to end no other call
process.on('uncaughtException', (error: unknown) => {
  const fault = error instanceof Error ? (error.stack ?? error.message) : String(error);
  if (faults.has(fault) || faults.size === MOST_FAULTS) return;
  faults.add(fault);
  console.error(`outbound calls: a fault of this program, which ended at most one of them: ${fault}`);
});

answerQuestions<Question, Answer>(async (question, signal) => {
  if (question.ask === 'address') return outbound.addressProblemOf(question.url);
  const { merchantId } = question.request;
  if (merchantId !== null) costs.call(merchantId);
  const sent = sentAs(await callInTurn(calls, turns, { ...question.request, signal }));
  return merchantId !== null && costs.wereDear(merchantId) ? { ...sent, wasDear: true } : sent;
});
