// Lists of payments that are long: each payment comes with every route that was tried for it, and one that hangs for days has many behind it.
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { PaymentFacts } from '../../src/core/lightning/payer.ts';
import { createLnd } from '../../src/outside/lightning/lnd.ts';
import { createLndPayer } from '../../src/outside/lightning/lnd-payer.ts';
import { closeServer, listen } from '../../src/sandbox/server.ts';
import { createPaymentComparison } from '../../src/worker/lightning/sent-comparison.ts';
import { AMOUNT, at, close, invoice, open, status } from './funded-payouts.ts';

const hashOf = (index: bigint): string => index.toString(16).padStart(64, '0');

test('a list that is longer than an answer may be is read in pages of fewer payments, to its end', async () => {
  const many = 40;
  // some thousand routes of twenty hops each
  const htlcs = Array.from({ length: 3_000 }, () => ({ status: 'FAILED', route: { hops: ['x'.repeat(1_000)] } }));
  const node = createServer((request, response) => {
    const query = new URL(request.url ?? '', 'http://node').searchParams;
    const [after, most] = [Number(query.get('index_offset')), Number(query.get('max_payments'))];
    const payments = Array.from({ length: Math.max(0, Math.min(most, many - after)) }, (_, n) => ({
      ...{ payment_hash: hashOf(BigInt(after + n + 1)), status: 'FAILED', failure_reason: 'FAILURE_REASON_NO_ROUTE' },
      ...{ payment_index: String(after + n + 1), value_msat: '1000', fee_msat: '0', htlcs },
    }));
    response.writeHead(200, { 'Content-Type': 'application/json' }).end(JSON.stringify({ payments }));
  });
  const url = `http://127.0.0.1:${await listen(node, 0)}`;
  const payer = createLndPayer(async () => ({ url, certificate: null, macaroon: '' }));
  const read: PaymentFacts[] = [];
  for (let page = await payer.payments(0n); page.length > 0; page = await payer.payments(BigInt(read.length))) read.push(...page);
  expect(read.map(({ paymentIndex }) => paymentIndex)).toEqual(Array.from({ length: many }, (_, n) => String(n + 1)));
  payer.close();
  await closeServer(node);
});

test('a list of invoices is read to its end, however many there are in it that have no hash', async () => {
  const many = 1_700;
  const hasHash = (index: number): boolean => index === 1 || index === many;
  const node = createServer((request, response) => {
    const query = new URL(request.url ?? '', 'http://node').searchParams;
    const [after, most] = [Number(query.get('index_offset')), Number(query.get('num_max_invoices'))];
    const invoices = Array.from({ length: Math.max(0, Math.min(most, many - after)) }, (_, n) => {
      const index = after + n + 1;
      const r_hash = hasHash(index) ? Buffer.from(hashOf(BigInt(index)), 'hex').toString('base64') : '';
      return { r_hash, is_amp: !hasHash(index), add_index: String(index), state: 'OPEN', payment_request: '' };
    });
    response.writeHead(200, { 'Content-Type': 'application/json' }).end(JSON.stringify({ invoices }));
  });
  const url = `http://127.0.0.1:${await listen(node, 0)}`;
  const lnd = createLnd(async () => ({ url, certificate: null, macaroon: '' }), { chain: 'regtest' });
  const read: bigint[] = [];
  for (let page = await lnd.invoices(0n, { openOnly: false }); page.length > 0; ) {
    read.push(...page.map(({ addIndex }) => addIndex));
    page = await lnd.invoices(read.at(-1) as bigint, { openOnly: false });
  }
  expect(read).toEqual([1n, BigInt(many)]);
  lnd.close();
  await closeServer(node);
});

describe('behind a payment that hangs', () => {
  beforeEach(() => open());
  afterEach(close);

  test('everything is compared, however much it is', async () => {
    const { id } = await at.request(invoice('hold').request, AMOUNT);
    await at.look();
    expect(await status(id)).toBe('processing');
    const many = 4_500n;
    const failed = {
      status: 'failed',
      amountMsat: '1000',
      feeMsat: '0',
      preimage: null,
      failure: 'x',
      isPartOpen: false,
    } as const;
    const compare = createPaymentComparison(at.ctx, {
      node: () => at.paying.node(),
      async payments(after) {
        if (after === 0n) return at.paying.payments(0n);
        return Array.from(
          { length: Number(after > many ? 0n : after + 200n > many ? many - after + 1n : 200n) },
          (_, n): PaymentFacts => {
            const index = after + BigInt(n) + 1n;
            const paymentHash = hashOf(index);
            const one = { ...failed, paymentHash, paymentIndex: index.toString() };
            return index <= many ? one : { ...one, status: 'succeeded', failure: null, preimage: hashOf(0n) };
          },
        );
      },
    });
    while (await compare());
    expect(await at.findings()).toEqual([expect.stringContaining(`has paid ${hashOf(many + 1n)}`)]);
  });
});

test('a node that gives the same page of what it has forwarded again and again is not read for ever', async () => {
  const page = { forwarding_events: Array(1_000).fill({ timestamp_ns: '5000000000', fee_msat: '1' }), last_offset_index: 1_000 };
  const node = createServer((_request, response) => response.end(JSON.stringify(page)));
  const url = `http://127.0.0.1:${await listen(node, 0)}`;
  const port = createLnd(async () => ({ url, certificate: null, macaroon: '' }), { chain: 'regtest' });
  await expect(port.forwarded(5_000_000_000n)).rejects.toThrow('after number 1000 end at number 1000');
  port.close();
  await closeServer(node);
});

test('what was forwarded is read some at a time, however much it was, and of a node that is new only when the last of it was', async () => {
  const many = 4_321;
  const atNs = (index: number): bigint => 1_700_000_000_000_000_000n + BigInt(index) * 500_000_000n;
  let sent = 0;
  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const body = JSON.parse(Buffer.concat(await request.toArray()).toString());
    const from = BigInt(body.start_time) * 1_000_000_000n;
    const all = Array.from({ length: many }, (_, index) => atNs(index)).filter((one) => one >= from);
    const page = all.slice(body.index_offset, body.index_offset + body.num_max_events);
    sent += page.length;
    const events = page.map((one) => ({ timestamp_ns: String(one), fee_msat: '1000' }));
    response
      .writeHead(200, { 'Content-Type': 'application/json' })
      .end(JSON.stringify({ forwarding_events: events, last_offset_index: body.index_offset + page.length }));
  }
  const node = createServer((request, response) => void answer(request, response));
  const url = `http://127.0.0.1:${await listen(node, 0)}`;
  const port = createLnd(async () => ({ url, certificate: null, macaroon: '' }), { chain: 'regtest' });
  let afterNs = 1_000_000_000n;
  let read = 0;
  for (let page = await port.forwarded(afterNs); page.length > 0; page = await port.forwarded(afterNs)) {
    expect(page.length).toBeLessThanOrEqual(1_000);
    read += page.length;
    afterNs = page.at(-1)?.atNs as bigint;
  }
  expect([read, afterNs]).toEqual([many, atNs(many - 1)]);
  sent = 0;
  expect(await port.lastForwardedNs()).toBe(atNs(many - 1));
  expect(sent).toBeLessThan(100);
  port.close();
  await closeServer(node);
});
