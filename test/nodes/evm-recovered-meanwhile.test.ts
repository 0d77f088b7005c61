// An operator has a forgotten transaction booked, on a real EVM, while the signer's answer about the payout at its nonce is lost, or while somebody decides
// the payout that it pays.
import pg from 'pg';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { resolvePayout } from '../../src/flow/payouts/resolve.ts';
import { readPayout } from '../../src/store/payouts/reads.ts';
import { recoverSent } from '../../src/worker/payouts/evm/passed-nonces.ts';
import { type EvmService, openEvmService } from './evm-service.ts';
import { ledgerIsChain, sent, transfer, works } from './evm-steps.ts';

const TIMEOUT = 300_000;
const PAYEE = `0x${'b1'.repeat(20)}`;
/** Whom no payout was to pay that a person has decided. */
const SOMEBODY = `0x${'c7'.repeat(20)}`;
const STRANGER = `0x${'5a'.repeat(20)}`;
const FIFTY = 50_000_000n;
const FINAL = 65;
const LATER_MS = 61_000;
let service: EvmService;
let admin: pg.Client;
let hot: string;
const ours: string[] = [];

beforeAll(async () => {
  service = await openEvmService();
  admin = new pg.Client({ connectionString: service.url });
  await admin.connect();
  hot = await service.hot('USDT');
  const { address } = await service.owe('USDT', 600_00n);
  ours.push(address, await service.hot('ETH'), hot);
  await service.pay('USDT', address, 600_000_000n);
  await service.mine(FINAL);
  await service.request(PAYEE);
  await works(service, 2);
}, TIMEOUT);
afterAll(async () => {
  await admin?.end();
  await service?.close();
}, TIMEOUT);

const shown = async (id: string) => {
  const found = await readPayout(service.db, id);
  return { status: found?.status, heldReason: found?.heldReason, error: found?.error, txid: found?.txid };
};
const sentElsewhere = (to: string) => sent(service, hot, service.anvil.token, { data: transfer(to, FIFTY) });
const recover = async (txid: string) => {
  await service.price();
  return recoverSent(service.ctx, txid, { by: 'test', acceptsLoss: true });
};
async function goOn(): Promise<void> {
  await service.goOn();
  await works(service, 1);
  expect(await service.findings()).toEqual([]);
  // what begins then asks the signer for all that it has
  service.restart();
  await works(service, 1);
}

/** A payout that is signed, and the worker does not hear of it until it hears again; `before`: what its payee has had until then. */
async function signedUnheard() {
  let losesAnswers = true;
  service.restart(async (step) => {
    if (losesAnswers && step === 'signed') throw Object.assign(new Error('its answer was lost'), { fault: 'unreachable' });
  });
  const before = await service.units(PAYEE);
  const id = await service.request(PAYEE);
  await service.work(LATER_MS);
  const hearsAgain = (): void => {
    losesAnswers = false;
  };
  return { id, before, hearsAgain };
}

test.each([
  ['pays it', PAYEE],
  ['pays somebody else', STRANGER],
])(
  'a payout was signed and not stored, and what has its nonce %s: it is not sent, and payouts go on',
  async (_, payee) => {
    const { id, before, hearsAgain } = await signedUnheard();
    expect(await shown(id)).toMatchObject({ status: 'processing', txid: null });
    const txid = await sentElsewhere(payee);
    await service.mine(FINAL);
    const isPaid = payee === PAYEE;
    expect(await recover(txid)).toMatchObject({ payoutIds: isPaid ? [id] : [], lost: isPaid ? 0n : FIFTY });
    hearsAgain();
    await goOn();
    if (isPaid) expect(await shown(id)).toMatchObject({ status: 'completed', txid });
    else {
      expect(await shown(id)).toMatchObject({ status: 'processing', heldReason: 'unknown_outcome' });
      await resolvePayout(service.ctx, { payoutId: id, outcome: 'failed', evidence: 'it was never sent' });
    }
    const next = await service.request(PAYEE);
    await works(service, 1);
    expect((await shown(next)).status).toBe('completed');
    expect(await service.units(PAYEE)).toBe(before + (isPaid ? 2n : 1n) * FIFTY);
    await ledgerIsChain(service, ours);
  },
  TIMEOUT,
);

test.each([1, 13, FINAL])(
  'a copy has its batch, and what was signed for it has left and is in a block with %i confirmations: it is that of the batch',
  async (blocks) => {
    const { id, before, hearsAgain } = await signedUnheard();
    const { rows } = await service.db.query<{ id: string }>({
      text: 'select batch_id as id from payouts where id = $1',
      values: [id],
    });
    const batchId = rows[0]?.id as string;
    const { transactions } = await service.signing.signed({ after: 0, batchId });
    await service.anvil.rpc('eth_sendRawTransaction', transactions[0]?.raw);
    await service.mine(blocks);
    await works(service, 0);
    hearsAgain();
    service.restart();
    await works(service, 2);
    await service.mine(FINAL);
    await works(service, 2);
    expect(await shown(id)).toMatchObject({ status: 'completed' });
    expect(await service.units(PAYEE)).toBe(before + FIFTY);
    expect(await service.findings()).toEqual([]);
    await ledgerIsChain(service, ours);
  },
  TIMEOUT,
);

test.each(['paid', 'failed'] as const)(
  'the payout that it pays is decided as %s meanwhile: it is named again',
  async (outcome) => {
    const id = await service.request(SOMEBODY);
    const txid = await sentElsewhere(SOMEBODY);
    await service.mine(FINAL);
    service.restart();
    await service.work(LATER_MS);
    expect(await shown(id)).toMatchObject({ heldReason: 'unknown_outcome' });
    const resolved = (isOpen: boolean) =>
      service.db.query({
        text: isOpen
          ? `update unknown_movements set resolved_at = null, resolved_by = null, resolution = null where resolution = 'a test'`
          : `update unknown_movements set resolved_at = now(), resolved_by = 'a test', resolution = 'a test' where resolved_at is null`,
        values: [],
      });
    const waiting = (count: number) =>
      vi.waitFor(async () => {
        const text = `select count(*)::int as n from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()`;
        expect((await admin.query(text)).rows[0].n).toBe(count);
      }, 10_000);
    const hasLocked = Promise.withResolvers<void>();
    const mayEnd = Promise.withResolvers<void>();
    const blocking = service.db.transaction(async (sql) => {
      await sql.query({ text: 'select from payouts where id = $1 for update', values: [id] });
      hasLocked.resolve();
      await mayEnd.promise;
    });
    await hasLocked.promise;
    // whoever decides has looked before it was found
    await resolved(false);
    const messageOf = (work: Promise<unknown>) =>
      work.then(
        () => 'done',
        (error: Error) => error.message,
      );
    const decided = messageOf(resolvePayout(service.ctx, { payoutId: id, outcome, evidence: 'asked' }));
    await waiting(1);
    const booked = messageOf(recover(txid));
    await waiting(2).finally(mayEnd.resolve);
    await blocking;
    expect(await decided).toBe('done');
    expect(await booked).toContain('at this moment');
    await resolved(true);
    expect(await recover(txid)).toMatchObject({ payoutIds: [id], lost: 0n });
    await goOn();
    expect((await shown(id)).status).toBe('completed');
    await ledgerIsChain(service, ours);
  },
  TIMEOUT,
);
