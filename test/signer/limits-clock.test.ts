// The signer's limits when the system's clock was fast for a while: what it has dated in the future is counted, and not until that date.
import { afterEach, beforeEach, expect, it } from 'vitest';
import type { SignedTransaction } from '../../src/core/signer-wire.ts';
import type { Signing } from '../../src/signer/signing.ts';
import { openTestSigner, requestFor, type TestSigner, WHOLE } from './setup.ts';

const HOUR_MS = 3_600_000;
const YEAR_MS = 365 * 24 * HOUR_MS;
/** One payout of the test, and not two. */
const LIMITS = { BTC: { payout: null, hour: WHOLE / 5n, day: WHOLE / 2n } };
let at: TestSigner;
let signing: Signing;
beforeEach(async () => {
  at = await openTestSigner({ limits: LIMITS });
  signing = await at.start();
});
afterEach(() => at.close());

async function sign(): Promise<SignedTransaction> {
  const payout = await at.payout({ batchId: await at.batch() });
  return signing.sign(requestFor([payout], [at.input(WHOLE)]));
}
const refused = { name: 'SigningRefused', rule: 'limit' };
function pass(ms: number): void {
  at.clock.nowMs += ms;
  at.clock.steadyMs += ms;
}

it('what left while the clock was fast counts for an hour and a day from when that is noticed', async () => {
  at.clock.nowMs += YEAR_MS;
  await sign();
  at.clock.nowMs -= YEAR_MS;
  await expect(sign()).rejects.toMatchObject(refused);
  pass(HOUR_MS - 1);
  await expect(sign()).rejects.toMatchObject(refused);
  pass(1);
  await sign();
  for (let n = 0; n < 2; n++) {
    pass(HOUR_MS);
    await sign();
  }
  pass(HOUR_MS);
  await expect(sign()).rejects.toMatchObject({ ...refused, message: expect.stringContaining('in a day') });
  pass(20 * HOUR_MS);
  // the first has left the day, whatever its date is
  await sign();
});

it('a signer that was started again counts it for as long anew', async () => {
  at.clock.nowMs += YEAR_MS;
  await sign();
  at.clock.nowMs -= YEAR_MS;
  await expect(sign()).rejects.toMatchObject(refused);
  pass(HOUR_MS / 2);
  signing = await at.start();
  await expect(sign()).rejects.toMatchObject(refused);
  pass(HOUR_MS - 1);
  await expect(sign()).rejects.toMatchObject(refused);
  pass(1);
  await sign();
});

it('a clock that goes back and forth gives nothing back', async () => {
  await sign();
  for (const ms of [-YEAR_MS, YEAR_MS, -HOUR_MS / 2, HOUR_MS / 2 - 1, -YEAR_MS, YEAR_MS + 25 * HOUR_MS]) {
    at.clock.nowMs += ms;
    at.clock.steadyMs += 1;
    await expect(sign()).rejects.toMatchObject(refused);
  }
});

it('a clock that jumps ahead gives nothing back, whether or not something was refused before', async () => {
  for (const first of [false, true, false, true]) {
    await sign();
    if (first) await expect(sign()).rejects.toMatchObject(refused);
    at.clock.nowMs += 25 * HOUR_MS;
    await expect(sign()).rejects.toMatchObject(refused);
    pass(HOUR_MS - 1);
    await expect(sign()).rejects.toMatchObject(refused);
    pass(1);
  }
  await expect(sign()).rejects.toMatchObject({ ...refused, message: expect.stringContaining('in a day') });
});

it('nor does one that jumps ahead after a signer has begun and before it is asked', async () => {
  await sign();
  signing = await at.start();
  at.clock.nowMs += 25 * HOUR_MS;
  await expect(sign()).rejects.toMatchObject(refused);
  pass(HOUR_MS);
  await sign();
});
