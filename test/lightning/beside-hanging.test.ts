// Invoices whose recipients hold the payment: each keeps the look at it for seconds, and what is asked for meanwhile does not stand behind it.
import { afterEach, beforeEach, expect, test } from 'vitest';
import { AMOUNT, at, close, invoice, open, outgoing, pass } from './funded-payouts.ts';

beforeEach(() => open());
afterEach(close);

test('what is asked for while a payment hangs is left to the next look, which begins all of it side by side', async () => {
  await at.request(invoice('hold').request, AMOUNT);
  const looking = at.look();
  pass(1);
  for (let n = 0; n < 6; n++) await at.request(invoice('hold').request, AMOUNT);
  await looking;
  expect(outgoing().listed()).toHaveLength(1);
  pass(1);
  const began = performance.now();
  await at.look();
  expect(outgoing().listed()).toHaveLength(7);
  // one after the other they take two seconds each
  expect(performance.now() - began).toBeLessThan(10_000);
});
