// Invoices of a real LND that are paid in the second in which their window ends, or their merchant cancels, or both: the node's word decides, each payment is
// credited once, and what the node has not taken is in no book.
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { Refusal } from '../../src/core/refusal.ts';
import { cancelTransaction } from '../../src/flow/transactions/create-cancel-resolve.ts';
import { createLnd } from '../../src/outside/lightning/lnd.ts';
import { HAS_LND, type LndEngine, lndEngine } from '../support/lightning-engines.ts';
import { type LightningService, openLightningService } from '../support/lightning-service.ts';
import { eventually } from '../support/service.ts';

const WINDOW_SECONDS = 900;
/** What is left of the window once all invoices of a round are made. */
const LEFT_SECONDS = 5;
const SAT = 1_000n;
const ROUNDS = 2;
const INVOICES = 12;
const WAYS = ['expires', 'is cancelled', 'expires and is cancelled'] as const;
type Way = (typeof WAYS)[number];

describe.runIf(HAS_LND)('on LND', () => {
  const clock = { skewMs: 0, now: () => Date.now() + clock.skewMs };
  let engine: LndEngine;
  let at: LightningService;
  beforeAll(async () => {
    engine = await lndEngine();
    const lnd = createLnd(async () => engine.target(), { chain: 'regtest' });
    // as if the window had begun almost fifteen minutes ago
    const addInvoice: typeof lnd.addInvoice = (of) =>
      lnd.addInvoice({ ...of, expirySeconds: of.expirySeconds - WINDOW_SECONDS + LEFT_SECONDS });
    at = await openLightningService({ ...lnd, addInvoice }, clock);
    await at.work();
  }, 300_000);
  afterAll(async () => {
    await at?.drop();
    await engine?.close();
  });

  const later = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, Math.max(0, ms)));
  async function pays(request: string): Promise<boolean> {
    const body = { payment_request: request, timeout_seconds: 20, fee_limit_msat: '10000', no_inflight_updates: true };
    try {
      const said = await engine.pair.customer.call<{ result?: { status: string } }>('POST', '/v2/router/send', body);
      return said.result?.status === 'SUCCEEDED';
    } catch (error) {
      // his node pays no invoice that has expired
      expect(String(error)).toContain('expired');
      return false;
    }
  }
  async function cancels(transactionId: string): Promise<string> {
    return cancelTransaction(at.ctx, { merchantId: at.merchantId, transactionId }).then(
      ({ status }) => status,
      (error) => {
        if (error instanceof Refusal) return error.code;
        throw error;
      },
    );
  }
  test('each is credited once or refused, as the node says', { timeout: 120_000 }, async () => {
    let expected = 0n;
    for (let round = 0; round < ROUNDS; round++) {
      await at.rate('100000.00');
      const made = await Promise.all(
        Array.from({ length: INVOICES }, async (_, n) => {
          const way = WAYS[n % WAYS.length] as Way;
          const madeMs = Date.now();
          const { transactionId, address } = await at.create(1_00n);
          return { way, transactionId, address, endsMs: madeMs + LEFT_SECONDS * 1_000 };
        }),
      );
      clock.skewMs += (WINDOW_SECONDS - LEFT_SECONDS) * 1_000;
      await at.rate('100000.00');
      let isOver = false;
      const worker = (async () => {
        while (!isOver) {
          await at.work();
          await later(100);
        }
      })();
      const said = await Promise.all(
        made.map(async ({ way, transactionId, address, endsMs }, n) => {
          const offset = Math.round(Math.random() * 900) - 600;
          const paysMs = (way === 'is cancelled' ? endsMs - 3_000 + n * 50 : endsMs) + offset;
          const cancelsMs = way === 'is cancelled' ? paysMs + Math.random() * 400 - 150 : endsMs + Math.random() * 600 - 400;
          const [paid, cancelled] = await Promise.all([
            later(paysMs - Date.now()).then(() => pays(address)),
            way === 'expires' ? null : later(cancelsMs - Date.now()).then(() => cancels(transactionId)),
          ]);
          return {
            way,
            transactionId,
            offset: Math.round(way === 'is cancelled' ? cancelsMs - paysMs : offset),
            paid,
            cancelled,
          };
        }),
      );
      isOver = true;
      await worker;
      await eventually('all are decided', async () => {
        await at.work();
        const paths = await Promise.all(said.map(({ transactionId }) => at.path(transactionId)));
        return paths.every((path) => ['succeeded', 'cancelled', 'timedout'].includes(path.at(-1) as string));
      });
      for (const { way, transactionId, offset, paid, cancelled } of said) {
        const hash = await at.hashOf(transactionId);
        const node = (await engine.pair.shop.call<{ state: string }>('GET', `/v1/invoice/${hash}`)).state;
        const path = await at.path(transactionId);
        const what = `${way}, ${offset} ms, ${cancelled}`;
        expect([what, node, path.at(-1) === 'succeeded'], what).toEqual([what, paid ? 'SETTLED' : 'CANCELED', paid]);
        expect([what, path.filter((status) => status === 'succeeded').length]).toEqual([what, paid ? 1 : 0]);
        if (cancelled === 'cancelled') expect([what, path.at(-1)]).toEqual([what, 'cancelled']);
        if (paid) expected += SAT;
      }
    }
    while (await at.compare());
    expect(await at.available()).toBe(expected);
    expect(await at.balance('asset:ln:BTC')).toBe(expected);
    expect(await at.findings()).toEqual([]);
    expect(at.alarms).toEqual([]);
  });
});
