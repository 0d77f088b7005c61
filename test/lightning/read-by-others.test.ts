// The node's list of payments is read by several: each minute, before what it has is looked at, and by other workers. What nobody here has asked for stops payouts
// within a minute, whoever has read it. On the simulated node.
import { afterEach, beforeEach, expect, test } from 'vitest';
import { openBreakers } from '../../src/store/ledger/breakers.ts';
import { createPaymentComparison, readSent, type SentPayments } from '../../src/worker/lightning/sent-comparison.ts';
import { at, close, engine, invoice, open, outgoing } from './funded-payouts.ts';

let sent: SentPayments;
let minute: () => Promise<boolean>;
beforeEach(async () => {
  await open();
  sent = { node: () => at.paying.node(), payments: (after) => at.paying.payments(after) };
  minute = createPaymentComparison(at.ctx, sent);
  expect(await minute()).toBe(false);
});
afterEach(close);

/** A thief has the node pay. */
function paid(): string {
  const { request, hash } = invoice();
  outgoing().send(request, 0n, 10_000n);
  return hash;
}
const stopped = async () => (await openBreakers(at.ctx.db)).flatMap(({ findings }) => findings.map((one) => one.split(' ')[5]));

test('what another has read before it', async () => {
  const hash = paid();
  await readSent(at.ctx, sent, engine.node().identity);
  expect(await stopped()).toEqual([]);
  await minute();
  expect(await stopped()).toEqual([`${hash},`]);
});

test('what a reading has seen that did not come to its end', async () => {
  const hash = paid();
  let hasBroken = false;
  const breaks = async (after: bigint) => {
    const page = await at.paying.payments(after);
    if (page.length === 0) throw Object.assign(new Error('it does not answer'), { fault: 'node' });
    return page;
  };
  const first = createPaymentComparison(at.ctx, {
    ...sent,
    payments: (after) => (hasBroken ? at.paying.payments(after) : breaks(after)),
  });
  expect(await first()).toBe(false);
  expect(await stopped()).toEqual([]);
  hasBroken = true;
  await first();
  expect(await stopped()).toEqual([`${hash},`]);
});

test('what a worker before this one has read', async () => {
  const hash = paid();
  await readSent(at.ctx, sent, engine.node().identity);
  await createPaymentComparison(at.ctx, sent)();
  expect(await stopped()).toEqual([`${hash},`]);
});
