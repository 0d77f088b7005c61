// Several workers whose clocks differ look at one node in turn: for none of them it was started by the look of another. On a simulated node with a clock that the
// test moves.
import { afterEach, beforeEach, expect, test } from 'vitest';
import { createLnd } from '../../src/outside/lightning/lnd.ts';
import { createLndPayer } from '../../src/outside/lightning/lnd-payer.ts';
import { type SimulatedEngine, simulatedEngine } from '../support/lightning-engines.ts';
import { type LightningPayouts, openLightningPayouts, paidIn } from '../support/lightning-payouts.ts';

const [SECOND, MINUTE] = [1_000, 60_000];
/** The true time, and by how much the clocks of the worker that looks and of the database are off: all were moved by as much as the true one is ahead of this process. */
const time = { trueMs: 0, offMs: 0, databaseMs: 0 };
const clock = { now: () => time.trueMs + time.offMs, movedMs: () => time.trueMs + time.databaseMs - Date.now() };
let engine: SimulatedEngine;
let at: LightningPayouts;
beforeEach(async () => {
  Object.assign(time, { trueMs: Date.now(), offMs: 0, databaseMs: 0 });
  engine = await simulatedEngine(() => time.trueMs);
  const port = createLnd(async () => engine.target(), { chain: 'regtest' });
  at = await openLightningPayouts(
    port,
    createLndPayer(async () => engine.payTarget()),
    clock,
  );
  await at.work();
  await at.look();
  await paidIn(at, engine, 500_00n);
});
afterEach(async () => {
  await at.close();
  await engine.close();
});

/** A look of a worker, so much after the last one. */
async function look(offMs: number, laterMs: number, node = at.paying.node): Promise<void> {
  time.trueMs += laterMs;
  time.offMs = offMs;
  await at.look({ node });
}

test.each([11 * SECOND, -11 * SECOND, 55 * SECOND])(
  'what failed is given back, where one of two is off by %d ms',
  async (offMs) => {
    await look(0, 3 * 60 * MINUTE);
    const to = engine.node().outgoing.invoice({ amountMsat: 1_000_000n, expirySeconds: 3_600, behaviour: 'hold' });
    const { id } = await at.request(to.request, '0.00001');
    await look(0, 0);
    await look(offMs, 10 * SECOND);
    expect((await at.payment(id)).payment_index).not.toBeNull();
    engine.node().outgoing.resolve(to.hash, false);
    for (let turn = 0; turn < 3; turn++) {
      await look(0, 10 * SECOND);
      await look(offMs, 10 * SECOND);
    }
    expect(await at.payout(id)).toMatchObject({ status: 'failed' });
  },
);

/** A payout that the node calls failed, and what it says after its machine was put back with its memory: it counts a quarter of an hour less than it should. */
async function putBack() {
  await look(0, 3 * 60 * MINUTE);
  const to = engine.node().outgoing.invoice({ amountMsat: 1_000_000n, expirySeconds: 3_600, behaviour: 'hold' });
  const { id } = await at.request(to.request, '0.00001');
  await at.look();
  engine.node().outgoing.resolve(to.hash, false);
  const node = async () => {
    const said = await at.paying.node();
    return { ...said, channels: said.channels.map((one) => ({ ...one, countedMs: one.countedMs - 15 * MINUTE })) };
  };
  return { id, node };
}
const WAITS = { status: 'processing', heldReason: null };

test('who is there is believed no sooner by one that is ahead, after the machine of the node was put back', async () => {
  const { id, node } = await putBack();
  await look(0, 10 * SECOND, node);
  await look(55 * SECOND, 75 * SECOND, node);
  expect(await at.payout(id)).toMatchObject(WAITS);
  await look(55 * SECOND, 61 * SECOND, node);
  expect(await at.payout(id)).toMatchObject({ status: 'failed' });
});

test('a database that was put back with the node hides nothing of that', async () => {
  const { id, node } = await putBack();
  // as much as the node counts less: our clock is ahead of it
  time.databaseMs = -15 * MINUTE;
  await look(0, 10 * SECOND, node);
  expect(await at.payout(id)).toMatchObject(WAITS);
});
