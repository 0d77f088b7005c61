// Is a history of statuses one that the specification allows? Every step an arrow of the table, and each rule only when its reason is there
// as the model knows it.

import { DAY, isArrow, MINUTE } from './behaviour.ts';
import type { Life } from './endings.ts';
import type { Model, Purchase } from './model.ts';

type Step = Life['steps'][number];

/** The steps that the table has no arrow for, or for which the reason is missing. */
export function wrongSteps(model: Model, purchase: Purchase, { steps, status }: Life): string[] {
  const found: string[] = [];
  const sent = model.sent.filter((one) => one.outputs.some((output) => output.purchase === purchase));
  const right = sent.filter((one) => one.currency === purchase.currency);
  const others = sent.filter((one) => one.currency !== purchase.currency);
  const shaken = right.some((one) => !one.calm) || others.some((one) => !one.calm);
  const { words, merchant, windowEnd, createdAt } = purchase;
  let succeededAt = 0;
  const reasons: Record<number, (step: Step, before: readonly string[]) => boolean> = {
    2: () => right.length > 0,
    4: () => right.length > 0,
    6: ({ at }) => at > windowEnd + MINUTE && right.length > 0,
    7: ({ at }) => at >= windowEnd,
    8: ({ at }) => at >= createdAt + DAY,
    9: () => right.length > 0,
    10: () => right.length > 0,
    11: (_, before) =>
      merchant.policy === 'accept' && !before.includes('cancelled') && !before.includes('declined') && right.length > 0,
    12: () => words.accepted,
    13: () => false,
    14: () => words.declined,
    15: () => shaken,
    17: () => shaken,
    18: () => others.length > 0,
    19: ({ at }) => at >= succeededAt + DAY,
    20: () => words.cancelled,
    22: () => right.length > 0,
    24: ({ at }) => at > windowEnd + DAY && model.lowest(purchase.currency) < purchase.price,
  };
  if (steps[0]?.status !== 'started') found.push('its history does not begin with started');
  if (steps.at(-1)?.status !== status) found.push(`its history ends in ${steps.at(-1)?.status}, it is ${status}`);
  for (const [n, step] of steps.entries()) {
    const from = steps[n - 1];
    if (from === undefined) continue;
    const arrow = `${from.status} > ${step.status}`;
    if (step.rule === null || !isArrow(step.rule, from.status, step.status))
      found.push(`rule ${step.rule} has no arrow ${arrow}`);
    else if (
      reasons[step.rule]?.(
        step,
        steps.slice(0, n).map((one) => one.status),
      ) === false
    ) {
      found.push(`${arrow} by rule ${step.rule} without its reason`);
    }
    if (from.status === 'confirmed' && step.status === 'succeeded') succeededAt = step.at;
    if (step.at < from.at) found.push(`${arrow} goes back in time`);
  }
  return found;
}
