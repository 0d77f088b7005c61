// One round of the walk in which a copy of the database, of the signer's folder, or of both is put back, sometimes twice: what has left meanwhile is
// told, and leaves no second time.
import { execFileSync } from 'node:child_process';
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { storedClusterFolder } from '../../src/main/postgres/cluster-paths.ts';
import type { Random } from '../simulation/random.ts';
import type { Service } from '../support/service.ts';
import { allIsSeen, earn, giveBack, type Merchant, type Scene } from './customers.ts';
import { askAgain, comeToRest, compare, endHeld } from './ending.ts';
import type { ModelCopy, Payout, Purchase } from './model.ts';
import { createOperator } from './operator.ts';
import { type Outcome, openRound, type Round } from './round.ts';
import { jump, nodesAreBack } from './trouble.ts';

const STEPS = { before: 3, since: 3, after: 2 };
const KINDS = { database: 40, 'database and signer': 40, signer: 20 };

export type Restorable = {
  readonly folder: string;
  readonly scene: Scene;
  readonly service: () => Service;
  readonly second: () => number | null;
  /** Ends the service, does this, and starts it again. */
  readonly restarted: (meanwhile: () => void) => Promise<void>;
};

/** A merchant asks again for what its service does not know any more; of a Lightning address nothing says which payment was which. */
const isAskedAgain =
  (random: Random, isKnown: (purchase: Purchase) => boolean) =>
  ({ mayFail, method, hash, internalTo }: Payout): boolean =>
    !mayFail.has('cancelled') &&
    (method !== 'lightning' || hash !== null) &&
    (internalTo === null || isKnown(internalTo)) &&
    random.percent(80);

type GivenBack = ReturnType<ModelCopy['putBack']>['givenBack'];
async function giveBackAgain(merchant: Merchant, givenBack: GivenBack): Promise<void> {
  const { log, random } = merchant;
  for (const { purchase, part, destination } of givenBack) {
    if (random.percent(20)) continue;
    const { status, json } = await giveBack(merchant, purchase, { part, destination });
    log.push(`${purchase.id}: reimburse ${part} again: ${status} ${JSON.stringify(json.error)}`);
    if (status === 200) purchase.reimbursement = { part, destination, isBack: false };
  }
}

/** Copies, and what puts them back. */
async function copied({ folder, scene, restarted }: Restorable, { random, note, all }: Round) {
  const kind = random.weighted(KINDS);
  const places = [
    ...(kind === 'signer' ? [] : [storedClusterFolder(folder)]),
    ...(kind === 'database' ? [] : [join(folder, 'signer')]),
  ];
  const models: ModelCopy[] = [];
  await restarted(() => {
    note(`a copy of ${kind} is made`);
    for (const place of places) execFileSync('cp', ['-a', place, `${place}-copy`]);
    if (kind !== 'signer') models.push(...scene.merchants.map(({ model }) => model.copy()));
  });
  const isKnown = (purchase: Purchase): boolean => models.some((copy) => copy.knows(purchase));
  return {
    async putBack(): Promise<void> {
      await restarted(() => {
        note(`${kind} is put back`);
        for (const place of places) {
          rmSync(place, { recursive: true });
          execFileSync('cp', ['-a', `${place}-copy`, place]);
        }
        // as the guide to restoring says: with it addresses would be given a second time
        if (kind !== 'database') rmSync(join(folder, 'signer', 'given-addresses.json'), { force: true });
      });
      const givenBack = new Map<Merchant, GivenBack>();
      const held: string[] = [];
      for (const [at, copy] of models.entries()) {
        const merchant = scene.merchants[at] as Merchant;
        const since = copy.putBack(isAskedAgain(merchant.random, isKnown));
        givenBack.set(merchant, since.givenBack);
        held.push(...since.forgotten.flatMap(({ hash }) => hash ?? []));
      }
      // some do at once, others once the operator has looked
      if (random.percent(60)) {
        note('merchants ask again at once');
        await all((merchant) => askAgain(scene, merchant));
      }
      await all((merchant) => giveBackAgain(merchant, givenBack.get(merchant) ?? []));
      // nobody asks for them any more, and whoever holds one takes or refuses it in the end
      for (const hash of held) await endHeld(scene, random, hash);
    },
    remove(): void {
      for (const place of places) rmSync(`${place}-copy`, { recursive: true });
    },
  };
}

/** Walks one seed for each merchant of the scene. */
export async function walkRestored(walk: Restorable, first: number): Promise<Outcome> {
  const { folder, scene, service, second } = walk;
  const round = openRound(scene, first, { service, second });
  const { random, note, wrong } = round;
  const operator = createOperator(scene, folder, note);
  async function steps(count: number): Promise<void> {
    for (let at = 0; at < count; at++) {
      await round.step(at);
      if (random.percent(50)) await nodesAreBack(scene);
    }
    await nodesAreBack(scene);
  }
  async function mayJump(): Promise<void> {
    if (!random.percent(35)) return;
    await allIsSeen(scene);
    await jump(round.world);
  }
  await round.all((merchant) => earn(scene, merchant));
  await steps(STEPS.before);
  await allIsSeen(scene);
  const copy = await copied(walk, round);
  await steps(STEPS.since);
  await mayJump();
  await delay(random.whole(0, 1_500));
  await copy.putBack();
  await mayJump();
  if (random.percent(50)) await steps(STEPS.after);
  if (random.percent(30)) {
    if (random.percent(50)) await operator.work();
    await copy.putBack();
  }
  copy.remove();
  wrong.push(...(await comeToRest(scene, () => operator.work())));
  note('all is at rest');
  wrong.push(...(await compare(scene)));
  return round.end(folder);
}
