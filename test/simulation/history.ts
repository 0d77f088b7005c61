// One seed of the simulation: five chain histories, one on each chain, in one service. Random moves first; then all trouble ends, blocks
// come until everything is final, the clock runs on for days, and the service must agree with the model.

import { CHAIN_MOVES, calmDown, markGround } from './chain-moves.ts';
import { chanceOf } from './chance.ts';
import { bookedThoughSpent, bookedTooEarly, type Checked, evidence, newChecks, wrongAtRest } from './checks.ts';
import { oweAndRepay } from './debt.ts';
import { COINS, type Coin, HOUR, MINUTE } from './law.ts';
import { newModel } from './model.ts';
import { type Counter, lookAtAll, SERVICE_MOVES } from './service-moves.ts';
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
export const HISTORIES_IN_A_SEED = COINS.length;
const STEPS = 26;

export type Told = { readonly seed: number; readonly wrong: readonly string[]; readonly story: readonly string[] };

/** Runs one seed. `wrong` is empty when all is right; `story` is what happened. */
export async function runSeed(world: SimulatedService, seed: number): Promise<Told> {
  const chance = chanceOf(seed);
  const model = newModel(world);
  const checks = await newChecks(world, model);
  const story: string[] = [];
  const merchants = await Promise.all([
    world.addMerchant('accept', 100),
    world.addMerchant('review', chance.one([0, 100, 500])),
    world.addMerchant('accept', chance.one([0, 250])),
  ]);
  const counter = (coin: Coin): Counter => ({
    world,
    model,
    chance,
    coin,
    merchants,
    note: (text) => story.push(`    ${text}`),
    afterJudge: () => bookedTooEarly(checks),
    afterLook: () => bookedThoughSpent(checks),
  });
  for (const coin of COINS) markGround(world, coin);
  await lookAtAll(counter('BTC'));
  for (const coin of COINS) await SERVICE_MOVES.create(counter(coin));

  for (let step = 0; step < STEPS * COINS.length; step++) {
    const coin = chance.one(COINS);
    const name = chance.weighted(WEIGHTS);
    story.push(`${step} ${new Date(world.now()).toISOString().slice(5, 19)} ${coin} ${name}`);
    await (name in CHAIN_MOVES
      ? CHAIN_MOVES[name as keyof typeof CHAIN_MOVES](counter(coin))
      : SERVICE_MOVES[name as keyof typeof SERVICE_MOVES](counter(coin)));
    world.wait(chance.whole(0, 4_000));
    if (checks.wrong.length > 0) break;
  }
  if (checks.wrong.length === 0) await oweAndRepay(counter('BTC'), COINS[seed % COINS.length] as Coin);
  if (checks.wrong.length === 0) await comeToRest(counter, checks);
  checks.wrong.push(...world.troubles.splice(0));
  if (checks.wrong.length > 0) story.push('', ...(await evidence(checks)));
  return { seed, wrong: checks.wrong, story };
}

async function comeToRest(counter: (coin: Coin) => Counter, checks: Checked): Promise<void> {
  const { world } = counter('BTC');
  for (const coin of COINS) calmDown(counter(coin));
  await lookAtAll(counter('BTC'));
  for (const ms of [20 * MINUTE, 25 * HOUR, 25 * HOUR, 25 * HOUR, 25 * HOUR, 25 * HOUR]) {
    world.wait(ms);
    await world.restart(0); // its look-up rests by the wall clock after a slow one
    await lookAtAll(counter('BTC'));
  }
  await wrongAtRest(checks);
}
