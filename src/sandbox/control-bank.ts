// The controls about the bank: /sandbox/bank, and /sandbox/receive of dollars.
import { readBankAccount } from '../core/ach/bank-account.ts';
import { formatAmount, sum } from '../core/money.ts';
import { type Body, bad, ControlRefusal, impossible, oneOf, optionalText, requiredText } from './control-fields.ts';
import type { ControlContext } from './service-side.ts';

const ACTIONS = ['settle', 'return', 'noc', 'lose_answer'] as const;
/** How long a control waits until the service has handed over what waits, and until it has read what the bank says. */
const READ_MS = 60_000;
/** What a look does not hand over may wait for the signer, for a moment, or for a person; nobody waits for a person here. */
const HANDED_OVER_MS = 10_000;
/** Without those of disputes about returns. */
const RETURN_CODE = /^R(0[1-9]|[1-5]\d|60|7[89]|8[0-5])$/;
const CHANGE_CODE = /^C(0[1-9]|1[0-4])$/;

/** POST /sandbox/bank */
export async function bankControl(context: ControlContext, body: Body): Promise<unknown> {
  const action = oneOf(body, 'action', ACTIONS);
  if (action === undefined || action === null)
    throw new ControlRefusal(400, 'missing_field', `action is required: one of ${ACTIONS.join(', ')}`, 'action');
  const { bank } = context;
  if (action === 'settle') {
    await handOver(context);
    const files = bank.settle();
    await read(context);
    return { action, files };
  }
  if (action === 'lose_answer') {
    bank.setTrouble({ ...bank.trouble(), fault: 'lose_answers', left: 1 });
    return { action };
  }
  return answerEntry(context, action, body);
}

async function answerEntry(context: ControlContext, action: 'return' | 'noc', body: Body): Promise<unknown> {
  const payoutId = requiredText(body, 'payout_id');
  const code = optionalText(body, 'code') ?? (action === 'return' ? 'R03' : 'C01');
  const isCode = action === 'return' ? RETURN_CODE : CHANGE_CODE;
  if (!isCode.test(code))
    throw bad('code', action === 'return' ? 'must be a return code such as R03' : 'must be a change code such as C01');
  const before = await context.service.findBankEntry(payoutId);
  if (before === null) throw new ControlRefusal(404, 'payout_not_found', 'payout_id names no payout', 'payout_id');
  if (before.trace === null) await handOver(context);
  const trace = before.trace ?? (await context.service.findBankEntry(payoutId))?.trace ?? null;
  if (trace === null) throw impossible('payout_id: this payout is in no bank file');
  if (!context.bank.answer(trace, code))
    throw impossible('payout_id: the bank does not have this entry, or has sent it back already');
  await read(context);
  return { action, trace };
}

/** The service hands over what waits, as at the end of a business day. */
async function handOver(context: ControlContext): Promise<void> {
  context.bank.cutOff();
  await read(context);
  await context.service.untilHandedOver(HANDED_OVER_MS);
}

async function read(context: ControlContext): Promise<void> {
  if (!(await context.service.untilBankRead(READ_MS)))
    throw impossible(`the service has not looked at the bank within ${READ_MS / 1000} s; it will do so by itself`);
}

/** POST /sandbox/receive of USD */
export function receivedInBank(context: ControlContext, body: Body): unknown {
  const account = readBankAccount(requiredText(body, 'address'));
  if ('problem' in account) throw bad('address', `must be a bank account: ${account.problem}`);
  const arrived = context.bank.received(account);
  return {
    received: formatAmount(sum(arrived.map(({ cents }) => cents)), 'USD'),
    payments: arrived.map(({ trace, cents }) => ({ txid: trace, amount: formatAmount(cents, 'USD'), confirmations: 1 })),
  };
}
