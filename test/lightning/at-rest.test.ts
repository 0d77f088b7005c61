// A Lightning node at rest: what its watcher asks of the database and writes, and that this makes no payment and no timer late.
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { LightningPort } from '../../src/core/lightning/port.ts';
import { prepareInvoice } from '../../src/flow/lightning/invoices.ts';
import { createLnd } from '../../src/outside/lightning/lnd.ts';
import type { Database } from '../../src/store/postgres/connect.ts';
import { areRead } from '../../src/store/transactions/due.ts';
import { createLightningWatcher, type LightningWatcher } from '../../src/worker/lightning/watcher.ts';
import { type SimulatedEngine, simulatedEngine } from '../support/lightning-engines.ts';
import { type LightningService, openLightningService } from '../support/lightning-service.ts';
import { eventually } from '../support/service.ts';

const QUIET = { quiet: true } as const;
const SECOND = 1_000;
const MINUTE = 60 * SECOND;
let nowMs: number;
let engine: SimulatedEngine;
let port: LightningPort;
let service: LightningService;
let watcher: LightningWatcher;
/** Names of the statements that the watcher sent. */
let sent: string[];

beforeEach(async () => {
  nowMs = Date.UTC(2026, 5, 1);
  const clock = { now: () => nowMs, steady: () => nowMs };
  engine = await simulatedEngine(clock.now);
  port = createLnd(async () => engine.target(), { chain: 'regtest' });
  service = await openLightningService(port, clock);
  await service.stopWorker();
  const { ctx } = service;
  sent = [];
  const db: Database = {
    ...ctx.db,
    query(statement) {
      sent.push(statement.name ?? statement.text);
      return ctx.db.query(statement);
    },
  };
  watcher = createLightningWatcher({ ...ctx, db }, { ...port, close: () => undefined });
  await watcher.pass();
  sent.length = 0;
});
afterEach(async () => {
  await watcher.close();
  await service.drop();
  port.close();
  await engine.close();
});
const readTo = async (): Promise<number> => {
  const { rows } = await service.admin.query(`select caught_up_at from chain_cursors where currency = 'BTC-LN'`);
  return rows[0].caught_up_at.getTime();
};

test('while nothing happens the database is not asked, and every pass has read to the end', async () => {
  for (let n = 0; n < 4; n++) {
    nowMs += 4 * SECOND;
    expect(await watcher.pass(QUIET)).toMatchObject({ state: 'ready', caughtUp: true });
  }
  expect(sent).toEqual([]);
});

test('every twenty seconds one statement writes the time up to which is read and the time of the look', async () => {
  const before = await readTo();
  nowMs += 19 * SECOND;
  await watcher.pass(QUIET);
  expect(await readTo()).toBe(before);
  nowMs += SECOND;
  await watcher.pass(QUIET);
  expect(sent).toEqual(['set_lightning_read']);
  expect(await areRead(service.ctx.db, [{ currencies: ['BTC-LN'], sinceMs: nowMs }])).toEqual([true]);
});

test('a waiting caller is answered at once', async () => {
  nowMs += SECOND;
  await watcher.pass();
  expect(await areRead(service.ctx.db, [{ currencies: ['BTC-LN'], sinceMs: nowMs }])).toEqual([true]);
});

test('an invoice is cancelled at the node when its window ends, by a pass for which nobody waits', async () => {
  const made = await service.create();
  const hash = await service.hashOf(made.transactionId);
  watcher.expect(nowMs + 15 * MINUTE);
  // the look that finds when it ends, up to a minute later
  nowMs += MINUTE;
  await watcher.pass(QUIET);
  nowMs += 14 * MINUTE - SECOND;
  expect(watcher.restMs()).toBeLessThanOrEqual(SECOND + 1);
  await watcher.pass(QUIET);
  expect((await port.invoice(hash))?.state).toBe('open');
  nowMs += SECOND;
  await watcher.pass(QUIET);
  expect((await port.invoice(hash))?.state).toBe('cancelled');
  expect(await readTo()).toBe(nowMs);
  await service.judge();
  expect(await service.path(made.transactionId)).toEqual(['started', 'timedout']);
});

test('a reservation that nobody comes back for is cancelled after two minutes', async () => {
  const { reservation } = await prepareInvoice(service.ctx, {
    merchantId: service.merchantId,
    usdMinor: 50_00n,
    label: null,
    call: null,
  });
  for (let n = 0; n < 2; n++) {
    nowMs += MINUTE;
    await watcher.pass(QUIET);
  }
  expect((await port.invoice(reservation.paymentHash))?.state).toBe('cancelled');
});

test('a clock that was set back is no reason to be silent', async () => {
  nowMs -= 60 * MINUTE;
  await watcher.pass(QUIET);
  expect(await readTo()).toBe(nowMs);
  expect(sent).toContain('due_invoices');
});

test('what the node says of itself is written when it changes, and while it is away nothing is read', async () => {
  const before = await readTo();
  engine.node().setTrouble({ down: true, fault: null, left: null });
  nowMs += SECOND;
  await eventually('it is missed', async () => ((await watcher.pass(QUIET)).state === 'ready' ? null : true));
  expect(sent).toEqual(['record_lightning']);
  await watcher.pass(QUIET);
  expect(sent).toEqual(['record_lightning']);
  expect(watcher.restMs()).toBeLessThanOrEqual(SECOND);
  expect(await readTo()).toBe(before);
  engine.node().setTrouble({ down: false, fault: null, left: null });
  nowMs += SECOND;
  await eventually('it is back', async () => ((await watcher.pass(QUIET)).caughtUp ? true : null));
  expect(await readTo()).toBe(nowMs);
});
