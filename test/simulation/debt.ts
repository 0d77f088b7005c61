// One course of events that is too rare by chance, at the end of each seed's random moves: a payment is booked and paid out, its blocks are
// removed and no node shows it any more, so the merchant owes it after ten minutes; then it is back, and repays.
import { mineBlocks } from './chain-moves.ts';
import { type Coin, MINUTE } from './law.ts';
import { buy, type Counter, judge, look, putAside } from './service-moves.ts';

const BLOCKS = 6;

/** Plays it on one chain, with what the random moves have left there. */
export async function oweAndRepay(counter: Counter, coin: Coin): Promise<void> {
  const { world, model, note } = counter;
  const node = world.node(coin);
  const merchant = counter.merchants[0];
  if (merchant === undefined) return;
  node.setTrouble({ down: false, fault: null, left: null });
  const lookAgain = async (): Promise<void> => {
    await look(counter, coin);
    await judge(counter);
  };
  await world.pollRates();
  await lookAgain();
  const purchase = await buy({ world, model }, { coin, merchant, cents: 50_00n });
  const tx = node.pay([{ script: purchase.script, minor: purchase.amountDue }]);
  if (tx === null) return;
  model.send(coin, tx, [{ purchase, amount: purchase.amountDue }]);
  note(`${purchase.id} is booked, paid out, lost and back`);
  mineBlocks({ ...counter, coin }, BLOCKS);
  await lookAgain();
  await putAside(world, { merchant, coin, percent: 100, nonce: -1 });
  node.reorg(BLOCKS, { drop: false });
  node.deny(tx, true);
  model.moved(coin);
  await lookAgain();
  for (const ms of [4 * MINUTE, 7 * MINUTE]) {
    world.wait(ms);
    await lookAgain();
  }
  node.deny(tx, false);
  model.moved(coin);
  mineBlocks({ ...counter, coin }, BLOCKS);
  await lookAgain();
}
