// Each protection of the model of payouts on Ethereum's chain is a guard in the code, and a test that fails without it.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';

const ROOT = join(import.meta.dirname, '../../..');
const PAYOUTS = 'test/nodes/evm-payouts.test.ts';
const NONCES = 'test/nodes/evm-nonces.test.ts';
const DRIVER = 'src/worker/payouts/evm/driver.ts';
const PROGRESS = 'src/flow/evm/progress.ts';

type Held = { readonly guard: readonly [file: string, text: string]; readonly test: readonly [file: string, title: string] };

const TABLE: Readonly<Record<string, Held>> = {
  // nothing is sent that is not stored
  commit_before_send: { guard: [DRIVER, 'if (newest === undefined) return RETRY_MS;'], test: [NONCES, 'commit_before_send: '] },
  // a replacement has the nonce of what it replaces
  same_nonce: {
    guard: ['src/signer/rules.ts', 'shares no input with this one'],
    test: ['test/signer/evm.test.ts', 'same_nonce: '],
  },
  // not seen is not failed
  timeout_is_unknown: {
    guard: ['src/flow/payouts/batch-progress.ts', 'fail() : sendAgain(ctx, sql, batch)'],
    test: [PAYOUTS, 'timeout_is_unknown: '],
  },
  // what failed, or was taken by another transaction, counts only when its block is final
  fail_at_final: {
    guard: [PROGRESS, "if (!isFinal(mined.height)) return 'waiting';"],
    test: [PAYOUTS, 'fail_at_final: '],
  },
  // what a node says of a nonce decides nothing: the blocks that were read here do
  ask_same_head: {
    guard: [DRIVER, "if (answer.state === 'inputs_missing') await reachable(() => findAtNonce(ctx, lane, batch));"],
    test: [NONCES, 'ask_same_head: '],
  },
  // no nonce is left out: the next one is reserved when the one before has its signature
  burn_nonce: {
    guard: ['src/flow/evm/batches.ts', 'open.count >= MOST_OPEN || open.hasUnsigned'],
    test: [NONCES, 'burn_nonce: '],
  },
  // what a replacement costs more than its payout allows is the service's
  house_pays_lane: {
    guard: ['src/core/payouts/gas.ts', 'least(first.fee, mulDivUp(first.fee, gasPaid'],
    test: [PAYOUTS, 'house_pays_lane, '],
  },
};

test.each(Object.entries(TABLE))('%s is guarded, and its test is there', (_name, { guard, test: [file, title] }) => {
  expect(readFileSync(join(ROOT, guard[0]), 'utf8')).toContain(guard[1]);
  expect(readFileSync(join(ROOT, file), 'utf8')).toContain(title);
});
