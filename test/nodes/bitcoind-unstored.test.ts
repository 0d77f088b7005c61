// The signer has signed a payout and its answer is lost, on a real bitcoind; before it is asked again a forgotten transaction comes to light that has
// paid the same payout, and an operator has it booked. What was signed is then never sent: the payee has his money.
import { afterEach, expect, test, vi } from 'vitest';
import { resolvePayout } from '../../src/flow/payouts/resolve.ts';
import { openBreakers } from '../../src/store/ledger/breakers.ts';
import {
  capital,
  capitalWithoutWorker,
  copied,
  daemon,
  destination,
  endsUnseen,
  forgottenServiceForAll,
  lend,
  mempool,
  received,
  request,
  type Service,
  world,
} from './forgotten-service.ts';

vi.setConfig({ testTimeout: 240_000 });
forgottenServiceForAll();
const steady = performance.now.bind(performance);
afterEach(() => void vi.restoreAllMocks());

/** A service whose copy has a payout that the one before has paid, of which no node shows anything; `raw` is what has paid it. */
async function paidBefore() {
  const { first, reopened } = await copied(async (service) => {
    await capital(service, '0.5');
    await lend(service, 60_000_000n);
    await request(service, '0.1', destination);
  });
  await first.work();
  const raw = await endsUnseen(first);
  const second = await reopened();
  await capitalWithoutWorker(second, '2.0');
  // other outputs pay
  world.feeRate = 8_000n;
  vi.spyOn(performance, 'now').mockImplementation(() => steady() + world.skew);
  return { raw, second };
}

/** Whoever begins after this one lives on, and what the signer still has, changes nothing. */
async function goesOn(second: Service, lasting: readonly ReturnType<Service['worker']>[]): Promise<void> {
  second.state.losesAnswers = false;
  await daemon.mine(6);
  await second.work(2, lasting);
  await second.clear();
  await second.work(3, lasting);
  await second.work(3);
  await daemon.mine(1);
  await second.work(2);
  expect([await received(), await mempool(), await second.findings()]).toEqual([[0.1, 1], [], []]);
}

test.each([
  ['its worker lives on', true],
  ['another one begins', false],
])('signed, not stored, and booked as paid by a forgotten transaction: it is not sent, whether %s', async (_, livesOn) => {
  const { raw, second } = await paidBefore();
  const other = await daemon.address();
  await request(second, '0.05', other);
  second.state.losesAnswers = true;
  const lasting = [second.worker('one')];
  await second.work(1, lasting);
  expect(await second.payouts()).toMatchObject([{ step: 'batched' }, { step: 'batched' }]);
  await daemon.rpc('generateblock', await daemon.address(), [raw]);
  await second.work(11, lasting);
  const [id, beside] = (await second.payouts()).map((one) => one.id);
  expect(await second.recovers()).toMatchObject({ payoutIds: [id], lost: 0n });
  await goesOn(second, livesOn ? lasting : []);
  expect(await second.payouts()).toMatchObject([
    { status: 'completed' },
    { status: 'processing', held_reason: 'unknown_outcome' },
  ]);
  await resolvePayout(second.ctx, { payoutId: beside as string, outcome: 'failed', evidence: 'it was never sent' });
  // the outputs that were to pay it pay the next one
  await request(second, '0.05', other);
  await second.work(2);
  await daemon.mine(6);
  await second.work(2);
  expect(await second.payouts()).toMatchObject([{ status: 'completed' }, { status: 'failed' }, { status: 'completed' }]);
  expect(await daemon.rpc('getreceivedbyaddress', other)).toBe(0.05);
  expect(await second.findings()).toEqual([]);
  await second.end();
});

test('what leaves beside it, and was not signed, is paid once the signer was asked', async () => {
  const { raw, second } = await paidBefore();
  const other = await daemon.address();
  await request(second, '0.05', other);
  second.state.isSignerAway = true;
  const lasting = [second.worker('one')];
  await second.work(1, lasting);
  expect(await second.payouts()).toMatchObject([{ step: 'batched' }, { step: 'batched' }]);
  await daemon.rpc('generateblock', await daemon.address(), [raw]);
  await second.work(11, lasting);
  expect(await second.recovers()).toMatchObject({ lost: 0n });
  second.state.isSignerAway = false;
  await goesOn(second, lasting);
  await daemon.mine(6);
  await second.work(2);
  expect(await second.payouts()).toMatchObject([{ status: 'completed' }, { status: 'completed' }]);
  expect(await daemon.rpc('getreceivedbyaddress', other)).toBe(0.05);
  expect(await second.findings()).toEqual([]);
  await second.end();
});

test.each([
  ['its answers arrive again', false],
  ['it names only what it has signed', true],
])(
  'another worker begins before the forgotten transaction is booked, and the signer can be asked: %s',
  async (_, losesAnswers) => {
    const { raw, second } = await paidBefore();
    const other = await daemon.address();
    await request(second, '0.05', other);
    second.state.losesAnswers = true;
    await second.work(1, [second.worker('one')]);
    expect(await second.payouts()).toMatchObject([{ step: 'batched' }, { step: 'batched' }]);
    await daemon.rpc('generateblock', await daemon.address(), [raw]);
    second.state.losesAnswers = losesAnswers;
    const lasting = [second.worker('two')];
    await second.work(11, lasting);
    expect(await mempool()).toEqual([]);
    const [id, beside] = (await second.payouts()).map((one) => one.id);
    expect(await second.recovers()).toMatchObject({ payoutIds: [id], lost: 0n });
    await goesOn(second, lasting);
    expect(await second.payouts()).toMatchObject([
      { status: 'completed' },
      { status: 'processing', held_reason: 'unknown_outcome' },
    ]);
    await resolvePayout(second.ctx, { payoutId: beside as string, outcome: 'failed', evidence: 'it was never sent' });
    expect(await second.findings()).toEqual([]);
    await second.end();
  },
);

test('nothing was forgotten: what a worker that died had signed and not stored is sent by the next one', async () => {
  const { first } = await copied(async (service) => {
    await capital(service, '0.5');
    await lend(service, 30_000_000n);
    await request(service, '0.1', destination);
    service.state.losesAnswers = true;
    await service.work(1, [service.worker('one')]);
  });
  expect(await first.payouts()).toMatchObject([{ step: 'batched' }]);
  first.state.losesAnswers = false;
  await first.work(2);
  await daemon.mine(1);
  await first.work(2);
  expect([await received(), await first.payouts(), await first.findings()]).toMatchObject([
    [0.1, 1],
    [{ status: 'completed' }],
    [],
  ]);
  await first.end();
});

test.each([
  ['waits for a block', 0],
  ['is in a block', 1],
  ['is final', 7],
])('a copy has its batch, and what was signed for it since has left and %s: it is that of the batch', async (_, blocks) => {
  const { first, reopenedWithSigner } = await copied(async (service) => {
    await capital(service, '0.5');
    await lend(service, 30_000_000n);
    await request(service, '0.1', destination);
    service.state.isSignerAway = true;
    await service.work(1, [service.worker('one')]);
  });
  expect(await first.payouts()).toMatchObject([{ step: 'batched' }]);
  first.state.isSignerAway = false;
  await first.work(2);
  const sent = await mempool();
  expect(sent).toHaveLength(1);
  if (blocks > 0) await daemon.mine(blocks);
  await first.end();
  const second = await reopenedWithSigner();
  await second.work(2);
  expect(await mempool()).toEqual(blocks === 0 ? sent : []);
  await daemon.mine(7);
  await second.work(2);
  expect([await received(), await second.payouts(), await second.findings()]).toMatchObject([
    [0.1, 1],
    [{ status: 'completed' }],
    [],
  ]);
  const { rows } = await second.ctx.db.query({ text: 'select from unknown_movements', values: [] });
  expect(rows).toEqual([]);
  expect(await openBreakers(second.ctx.db)).toEqual([]);
  await second.end();
});

test('a copy has a batch with its first transaction, and the replacement that was signed since is final: it has paid', async () => {
  const { first, reopenedWithSigner } = await copied(async (service) => {
    await capital(service, '0.5');
    await lend(service, 30_000_000n);
    await request(service, '0.1', destination);
    await service.work();
  });
  const sent = await mempool();
  world.feeRate = 20_000n;
  await first.work(45);
  expect(await mempool()).not.toEqual(sent);
  await daemon.mine(7);
  await first.end();
  const second = await reopenedWithSigner();
  await second.work(3);
  expect([await received(), await second.payouts(), await second.findings()]).toMatchObject([
    [0.1, 1],
    [{ status: 'completed' }],
    [],
  ]);
  expect(await openBreakers(second.ctx.db)).toEqual([]);
  await second.end();
});

test('a worker that has searched for what a batch paid searches again where the database was put back under it once more', async () => {
  const { first, reopenedWithSigner } = await copied(async (service) => {
    await capital(service, '0.5');
    await lend(service, 30_000_000n);
    await request(service, '0.1', destination);
    service.state.isSignerAway = true;
    await service.work(1, [service.worker('one')]);
  });
  first.state.isSignerAway = false;
  await first.work(2);
  await daemon.mine(1);
  await first.end();
  const second = await reopenedWithSigner();
  const worker = second.worker('one');
  await second.work(2, [worker]);
  const heights = async () =>
    (await second.ctx.db.query<{ height: number | null }>({ text: 'select height from outgoing_attempts', values: [] })).rows;
  expect(await heights()).toEqual([{ height: expect.any(Number) }]);
  // as after another restore: its block was read before it was written back
  await second.ctx.db.query({
    text: 'update outgoing_attempts set height = null, block_hash = null, sent_at = null',
    values: [],
  });
  await second.ctx.db.query({
    text: `update outgoing_batches set state = 'signed', mined_attempt = null, due_at = '-infinity'`,
    values: [],
  });
  await second.work(2, [worker]);
  expect(await heights()).toEqual([{ height: expect.any(Number) }]);
  await daemon.mine(7);
  await second.work(2, [worker]);
  expect([await second.payouts(), await second.findings(), await openBreakers(second.ctx.db)]).toMatchObject([
    [{ status: 'completed' }],
    [],
    [],
  ]);
  await second.end();
});
