// `bursar payout give-up`: what a payout's transaction spends was taken out of its block, and nothing shows whether it can be mined again.
import { userInfo } from 'node:os';
import type { Command } from 'commander';
import { giveUpPayout, newestToGiveUp } from '../../flow/payouts/give-up.ts';
import { payingPortOf } from '../../worker/chain/context.ts';
import { CommandFailed, evidenceOf, leaf, print } from './output.ts';
import { withNodes } from './service-access.ts';

type Options = { readonly json?: boolean; readonly evidence: string };

/** Adds `payout give-up` to the group `payout`. */
export function addGiveUp(payout: Command): void {
  leaf(
    payout,
    'give-up <payout_id>',
    'Gives up a payout, and all that leave with it, whose transaction spends what a reorganisation has taken out of every block for good.',
  )
    .requiredOption('--evidence <text>', 'what shows that it can be mined no more; kept with the payout')
    .action(giveUp);
}

async function giveUp(payoutId: string, { json, evidence }: Options): Promise<void> {
  const text = evidenceOf(evidence);
  const given = await withNodes(async (ctx) => {
    const { currency, raw } = await newestToGiveUp(ctx, payoutId);
    // the same bytes as ever: a node that has what they spend takes them
    const answer = await payingPortOf(ctx, currency).send(raw);
    if (answer.state !== 'inputs_missing')
      throw new CommandFailed(
        `our nodes do not say that what it spends is gone: ${'reason' in answer ? answer.reason : answer.state}`,
      );
    return giveUpPayout(ctx, { payoutId, by: `operator ${userInfo().username}`, evidence: text });
  });
  const { batchId, currency, payoutIds, outputs, decidedBy } = given;
  print(json, { batch_id: batchId, currency, payout_ids: payoutIds, outputs, decided_by: decidedBy }, [
    `${payoutIds.join(', ')} fail with block ${decidedBy} of ${currency}, unless a block has ${outputs.join(', ')} until then.`,
    'When bursar audit is green, bursar audit --clear lets payouts go on.',
  ]);
}
