// `bursar chain write-off`: units of a token, or ether, that are gone from an address of ours although nothing of ours has taken them are booked as lost.
import { userInfo } from 'node:os';
import type { Command } from 'commander';
import { formatAmount, negated } from '../../core/money.ts';
import { addressProblem } from '../../outside/evm/address.ts';
import { writeOffAt } from '../../worker/payouts/evm/write-off.ts';
import { CommandFailed, calledWrongly, evidenceOf, leaf, print } from './output.ts';
import { withNodes } from './service-access.ts';

type Options = { readonly json?: boolean; readonly takeBack?: boolean; readonly evidence: string };

/** Adds `chain write-off` to the group `chain`. */
export function addWriteOff(chain: Command): void {
  leaf(
    chain,
    'write-off <address>',
    "Books what is gone of a token from an address of ours on Ethereum's chain as the service's loss: its issuer has destroyed it, as two nodes show alike and none denies (bursar audit, EVM-1); and of ether, where code has sent it that its key has authorized. What the address has sent, and did something else than it asks for, counts as done (INV-10).",
  )
    .requiredOption('--evidence <text>', 'what is known of it; kept with what the nodes say')
    .option('--take-back', 'books back what was written off and is there again (EVM-2), and writes nothing off')
    .action(write);
}

async function write(address: string, { json, takeBack = false, evidence }: Options): Promise<void> {
  const problem = addressProblem(address);
  if (problem !== null) throw calledWrongly(`address: ${problem}`);
  const asked = { address, takesBack: takeBack, by: `operator ${userInfo().username}`, evidence: evidenceOf(evidence) };
  const done = await withNodes((ctx) => writeOffAt(ctx, asked)).catch((error: unknown) => {
    if (error instanceof Error && error.name === 'NodeTrouble')
      throw new CommandFailed(`address: no node says what ${address} holds: ${error.message}`, 'currency_unavailable');
    throw error;
  });
  const written = done.flatMap(({ currency, written: all }) => all.map((one) => ({ ...one, currency })));
  const ended = done.flatMap((one) => one.ended ?? []);
  const value = written.map((one) => ({ ...one, amount: formatAmount(one.amount, one.currency) }));
  print(json, { address: address.toLowerCase(), written_off: value, counted_as_moved: ended }, [
    ...ended.map((txid) => `${txid} counts as moved whole: what of it has not arrived at an address of ours is missing there.`),
    ...written.map(({ address: at, amount, currency }) =>
      amount > 0n
        ? `${formatAmount(amount, currency)} ${currency} at ${at} are written off, as the service's loss.`
        : `${formatAmount(negated(amount), currency)} ${currency} at ${at} are there again, and are written off no more.`,
    ),
    ...(written.length === 0 ? [`Nothing more is missing at ${address}.`] : []),
    'When bursar audit is green, bursar audit --clear lets payouts go on.',
  ]);
}
