// One round of the walk: many seeds side by side in one service, each a merchant of its own, while the world around them is in trouble.
import { randomOf } from '../simulation/random.ts';
import type { Service } from '../support/service.ts';
import { control, createCaller } from './caller.ts';
import { allIsSeen, earn, type Merchant, newKey, type Scene } from './customers.ts';
import { comeToRest, compare } from './ending.ts';
import { newModel, type Prices } from './model.ts';
import { type Outcome, openRound } from './round.ts';
import { jump, nodesAreBack } from './trouble.ts';

const STEPS = 9;
const PASSWORD = 'walk-walk-walk';

export type Walk = {
  readonly service: () => Service;
  readonly folder: string;
  readonly scene: Scene;
  readonly second: () => number | null;
};

export async function openWalk(base: () => string, merchants: number): Promise<Scene> {
  async function made(at: number): Promise<Merchant> {
    const username = `walker-${at}`;
    const added = await control(base(), 'merchant', { username, password: PASSWORD });
    if (added.status !== 200) throw new Error(`${username} answered ${added.status} ${JSON.stringify(added.json)}`);
    const caller = createCaller(base, username, PASSWORD);
    const needsApproval = at % 4 === 0;
    if (needsApproval) await caller.ask('/set_settings', { payout_approval_above: '120.00', idempotency_key: newKey() });
    return { name: username, caller, model: newModel(), log: [], needsApproval, random: randomOf(at), automatic: null };
  }
  const all: Merchant[] = [];
  // one after the other: passwords take their time
  for (let at = 0; at < merchants; at++) all.push(await made(at));
  const { rates } = (await all[0]!.caller.get('/get_rates')) as { rates: Record<string, { usd: string }> };
  const prices = Object.fromEntries(Object.entries(rates).map(([currency, { usd }]) => [currency, usd])) as Prices;
  return { base, prices, merchants: all };
}

/** Some are paid out by themselves, once a day has passed. */
async function setAutomatic({ base }: Scene, merchant: Merchant): Promise<void> {
  merchant.automatic = null;
  if (!merchant.random.percent(15)) return;
  merchant.automatic = (await control(base(), 'address', { currency: 'BTC' })).json.address as string;
  const settings = { enabled: true, method: 'bitcoin', destination: merchant.automatic, threshold: '0.005', leave: '0.001' };
  await merchant.caller.ask('/set_payout_settings', { ...settings, idempotency_key: newKey() });
}

/** Walks one seed for each merchant of the scene. */
export async function walk({ service, folder, scene, second }: Walk, first: number): Promise<Outcome> {
  const round = openRound(scene, first, { service, second });
  const { random, world, note, wrong } = round;
  for (const merchant of scene.merchants) await setAutomatic(scene, merchant);
  await round.all((merchant) => earn(scene, merchant));
  for (let at = 0; at < STEPS; at++) {
    await round.step(at);
    if (!random.percent(50)) continue;
    await nodesAreBack(scene);
    if (random.percent(60)) continue;
    await allIsSeen(scene);
    await jump(world);
  }
  await nodesAreBack(scene);
  await allIsSeen(scene);
  note('trouble is over');
  wrong.push(...(await comeToRest(scene)));
  note('all is at rest');
  wrong.push(...(await compare(scene)));
  return round.end(folder);
}
