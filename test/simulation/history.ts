// One seed of the simulation: five chain histories, one on each chain, in one service. Random moves first; then all trouble ends, blocks
// come until everything is final, the clock runs on for days, and the service must agree with the model.

import { CODES, type Code, HOUR, MINUTE } from './behaviour.ts';
import { CHAIN_MOVES, calmDown, markStart } from './chain-moves.ts';
import { bookedThoughSpent, bookedTooEarly, type Checked, evidence, newChecks, wrongAtRest } from './checks.ts';
import { oweAndRepay } from './debt.ts';
import { newModel } from './model.ts';
import { randomOf } from './random.ts';
import { lookAtAll, SERVICE_MOVES, type ServiceMoveContext } from './service-moves.ts';
import type { SimulatedService } from './simulated-service.ts';

const WEIGHTS: Record<keyof typeof CHAIN_MOVES | keyof typeof SERVICE_MOVES, number> = {
  create: 60,
  pay: 110,
  payInBlock: 15,
  payByCoinbase: 1,
  replace: 30,
  malleate: 30,
  doubleSpend: 14,
  mine: 110,
  mineSome: 20,
  reorg: 40,
  otherNameInReorg: 14,
  otherAmountInReorg: 8,
  deepReorg: 1.5,
  rewind: 8,
  hide: 22,
  show: 18,
  nodeDown: 12,
  locks: 10,
  lookHere: 170,
  lookOnly: 25,
  bothWorkers: 15,
  dying: 25,
  restart: 6,
  newPrice: 12,
  goneForAWhile: 14,
  seconds: 50,
  minutes: 40,
  hours: 5,
  days: 1.5,
  cancel: 10,
  accept: 14,
  acceptExcess: 8,
  decline: 8,
  spend: 12,
};
export const HISTORIES_IN_A_SEED = CODES.length;
const STEPS = 26;

export type SeedResult = { readonly seed: number; readonly wrong: readonly string[]; readonly log: readonly string[] };

/** Runs one seed. `wrong` is empty when all is right; `log` is what happened. */
export async function runSeed(service: SimulatedService, seed: number): Promise<SeedResult> {
  const random = randomOf(seed);
  const model = newModel(service);
  const checks = await newChecks(service, model);
  const log: string[] = [];
  const merchants = await Promise.all([
    service.addMerchant('accept', 100),
    service.addMerchant('review', random.one([0, 100, 500])),
    service.addMerchant('accept', random.one([0, 250])),
  ]);
  const contextOf = (currency: Code): ServiceMoveContext => ({
    service,
    model,
    random,
    currency,
    merchants,
    note: (text) => log.push(`    ${text}`),
    afterJudge: () => bookedTooEarly(checks),
    afterLook: () => bookedThoughSpent(checks),
  });
  for (const currency of CODES) markStart(service, currency);
  await lookAtAll(contextOf('BTC'));
  for (const currency of CODES) await SERVICE_MOVES.create(contextOf(currency));

  for (let step = 0; step < STEPS * CODES.length; step++) {
    const currency = random.one(CODES);
    const name = random.weighted(WEIGHTS);
    log.push(`${step} ${new Date(service.now()).toISOString().slice(5, 19)} ${currency} ${name}`);
    await (name in CHAIN_MOVES
      ? CHAIN_MOVES[name as keyof typeof CHAIN_MOVES](contextOf(currency))
      : SERVICE_MOVES[name as keyof typeof SERVICE_MOVES](contextOf(currency)));
    service.wait(random.whole(0, 4_000));
    if (checks.wrong.length > 0) break;
  }
  if (checks.wrong.length === 0) await oweAndRepay(contextOf('BTC'), CODES[seed % CODES.length] as Code);
  if (checks.wrong.length === 0) await comeToRest(contextOf, checks);
  checks.wrong.push(...service.troubles.splice(0));
  if (checks.wrong.length > 0) log.push('', ...(await evidence(checks)));
  return { seed, wrong: checks.wrong, log };
}

async function comeToRest(contextOf: (currency: Code) => ServiceMoveContext, checks: Checked): Promise<void> {
  const { service } = contextOf('BTC');
  for (const currency of CODES) calmDown(contextOf(currency));
  await lookAtAll(contextOf('BTC'));
  for (const ms of [20 * MINUTE, 25 * HOUR, 25 * HOUR, 25 * HOUR, 25 * HOUR, 25 * HOUR]) {
    service.wait(ms);
    await service.restart(0); // its look-up rests by the wall clock after a slow one
    await lookAtAll(contextOf('BTC'));
  }
  await wrongAtRest(checks);
}
