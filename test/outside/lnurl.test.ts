// What a merchant is told of a Lightning address whose service does not answer.
import { expect, test } from 'vitest';
import type { OutboundFailure, OutboundResult } from '../../src/core/outbound.ts';
import type { Context } from '../../src/flow/context.ts';
import { askForInvoice } from '../../src/flow/lightning/lnurl.ts';
import { createDestinations } from '../../src/outside/destinations.ts';

const service = { tag: 'payRequest', callback: 'https://shop.example/ask', metadata: '[]', minSendable: 1, maxSendable: 1e9 };
const first: OutboundResult = {
  kind: 'answered',
  status: 200,
  body: Buffer.from(JSON.stringify(service)),
  isCut: false,
  tookMs: 9_998,
};
const failed = (failure: OutboundFailure, reason: string): OutboundResult => ({
  kind: 'failed',
  failure,
  reason,
  tookMs: 2,
});

test.each<[string, OutboundResult, string]>([
  ['has two milliseconds left for it', failed('timed_out', 'no whole answer within 0.002 s'), 'not whole within 10 s'],
  ['is not there any more', failed('connection_failed', 'ECONNREFUSED'), 'ECONNREFUSED'],
])('the second answer of one that %s', async (_what, second, why) => {
  const answers = [first, second];
  const outbound = { call: async () => answers.shift() };
  const ctx = { ports: { outbound, destinations: createDestinations('mainnet') } } as unknown as Context;
  const wanted = { merchantId: 1n, destination: 'shop@shop.example', amount: 1n };
  await expect(askForInvoice(ctx, wanted)).rejects.toMatchObject({
    code: 'lightning_unavailable',
    message: `The destination does not answer: ${why}.`,
  });
});

test('an answer that is cut off is told as that, and not by the name that a library has for it', async () => {
  const outbound = { call: async () => failed('malformed_answer', 'UND_ERR_RES_CONTENT_LENGTH_MISMATCH') };
  const ctx = { ports: { outbound, destinations: createDestinations('mainnet') } } as unknown as Context;
  await expect(askForInvoice(ctx, { merchantId: 1n, destination: 'shop@shop.example', amount: 1n })).rejects.toMatchObject({
    code: 'invalid_destination',
    message: 'destination cannot be paid: its answer is cut off, or none of HTTP.',
  });
});
