// One course of events that is too rare by chance, at the end of each seed's random moves: a payment is booked and paid out, its blocks are
// removed and no node shows it any more, so the merchant owes it after ten minutes; then it is back, and repays.

import { type Code, MINUTE } from './behaviour.ts';
import { mineBlocks } from './chain-moves.ts';
import { buy, judge, look, putAside, type ServiceMoveContext } from './service-moves.ts';

const BLOCKS = 6;

/** Plays it on one chain, with what the random moves have left there. */
export async function oweAndRepay(context: ServiceMoveContext, currency: Code): Promise<void> {
  const { service, model, note } = context;
  const node = service.node(currency);
  const merchant = context.merchants[0];
  if (merchant === undefined) return;
  node.setTrouble({ down: false, fault: null, left: null });
  const lookAgain = async (): Promise<void> => {
    await look(context, currency);
    await judge(context);
  };
  await service.pollRates();
  await lookAgain();
  const purchase = await buy({ service, model }, { currency, merchant, cents: 50_00n });
  const tx = node.pay([{ script: purchase.script, minor: purchase.amountDue }]);
  if (tx === null) return;
  model.send(currency, tx, [{ purchase, amount: purchase.amountDue }]);
  note(`${purchase.id} is booked, paid out, lost and back`);
  mineBlocks({ ...context, currency }, BLOCKS);
  await lookAgain();
  await putAside(service, { merchant, currency, percent: 100, nonce: -1 });
  node.reorg(BLOCKS, { drop: false });
  node.deny(tx, true);
  model.moved(currency);
  await lookAgain();
  for (const ms of [4 * MINUTE, 7 * MINUTE]) {
    service.wait(ms);
    await lookAgain();
  }
  node.deny(tx, false);
  model.moved(currency);
  mineBlocks({ ...context, currency }, BLOCKS);
  await lookAgain();
}
