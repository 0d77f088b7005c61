// For how long a payout waits for a request to pay that was not answered, by our clock and by that of the node.
import { expect, test } from 'vitest';
import type { LightningPayment } from '../../src/store/lightning/payment-rows.ts';
import { whileUnanswered } from '../../src/worker/payouts/lightning/hanging.ts';

const SECOND = 1_000;
const payment = (unansweredUntilMs: number | null) => ({ unansweredUntilMs }) as LightningPayment;
const UNTIL = 1_000_000;
const later = (ms: number, saidMs?: number) =>
  whileUnanswered(payment(UNTIL), UNTIL + ms, saidMs === undefined ? undefined : UNTIL + saidMs);

test('one that may still arrive waits for a minute after the end of the request, and for the clock of the node', () => {
  expect(whileUnanswered(payment(null), UNTIL, UNTIL)).toBeNull();
  expect(later(0)).toEqual({ againMs: 61 * SECOND });
  expect(later(60 * SECOND)).toEqual({ againMs: SECOND });
  expect(later(60 * SECOND + 1)).toBeNull();
  expect(later(40 * SECOND, 10 * SECOND)).toEqual({ againMs: 21 * SECOND });
  expect(later(60 * SECOND, 10 * SECOND)).toEqual({ againMs: SECOND });
  expect(later(61 * SECOND, 10 * SECOND)).toEqual({
    againMs: SECOND,
    trouble: expect.stringContaining('clock is 51 seconds behind'),
  });
  expect(later(61 * SECOND, 10 * SECOND + 1)).toBeNull();
});
