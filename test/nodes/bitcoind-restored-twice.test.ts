// A database is put back twice, on a real bitcoind: once with its signer, by which both forget a transaction that has paid, and once more without it, by which the
// database forgets the batch for which that signer has signed the same payout since. What was signed and never left is not sent.
import { expect, test, vi } from 'vitest';
import { setSettings } from '../../src/flow/merchants/settings.ts';
import { approvePayout, cancelPayout } from '../../src/flow/payouts/cancel-and-approve.ts';
import { newOwnAddresses } from '../../src/flow/payouts/own-outputs.ts';
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

type Before = {
  /** Where what was signed would have paid too, for payouts that the copy does not have. */
  readonly beside?: readonly string[];
  /** The copy does not have the payout either. */
  readonly isRequestedLater?: boolean;
};

/** What has paid the payout is `raw`; the third service's signer has signed it again, and its database knows of neither. */
async function restoredTwice({ beside = [], isRequestedLater = false }: Before = {}): Promise<{ raw: string; third: Service }> {
  const { first, reopened, reopenedAgain } = await copied(async (service) => {
    await capital(service, '0.5');
    await lend(service, 60_000_000n);
    if (!isRequestedLater) await request(service, '0.1', destination);
  }, true);
  if (isRequestedLater) await request(first, '0.1', destination);
  await first.work();
  const raw = await endsUnseen(first);
  const second = await reopened();
  await capitalWithoutWorker(second, '2.0');
  // other outputs pay
  world.feeRate = 8_000n;
  if (isRequestedLater) await request(second, '0.1', destination);
  for (const to of beside) await request(second, '0.05', to);
  second.state.losesAnswers = true;
  await second.work(1, [second.worker('one')]);
  expect((await second.payouts()).every(({ step }) => step === 'batched')).toBe(true);
  await second.end();
  expect(await mempool()).toEqual([]);
  const third = await reopenedAgain();
  // so that what it was lent is found again
  await newOwnAddresses(third.ctx, 'BTC', 1);
  return { raw, third };
}

/** Once the forgotten transaction is booked: it is final, payouts go on, and others begin again. */
async function goesOn(third: Service): Promise<void> {
  await daemon.mine(6);
  await third.work(2);
  await third.clear();
  await third.work(3);
  await daemon.mine(1);
  await third.work(2);
  expect([await received(), await mempool(), await third.findings()]).toEqual([[0.1, 1], [], []]);
}

test.each([
  ['a mempool', false],
  ['a block', true],
])('the forgotten transaction is in %s when a worker begins: the payee has his money once', async (_, isMined) => {
  const { raw, third } = await restoredTwice();
  if (isMined) await daemon.rpc('generateblock', await daemon.address(), [raw]);
  else await daemon.rpc('sendrawtransaction', raw);
  await third.work(2);
  const shown = await mempool();
  expect(shown).toHaveLength(isMined ? 0 : 1);
  await daemon.mine(1);
  // others begin, again and again
  await third.work(11);
  expect(await third.recovers()).toMatchObject({ payoutIds: [(await third.payouts())[0]?.id], lost: 0n });
  await goesOn(third);
  expect(await third.payouts()).toMatchObject([{ status: 'completed' }]);
  // what was not sent holds nothing up
  const other = await daemon.address();
  await request(third, '0.05', other);
  await third.work(2);
  await daemon.mine(1);
  await third.work(2);
  expect(await daemon.rpc('getreceivedbyaddress', other)).toBe(0.05);
  expect(await third.findings()).toEqual([]);
  await third.end();
});

test('what else it would have paid, and this database does not know, is paid to nobody', async () => {
  const other = await daemon.address();
  const { raw, third } = await restoredTwice({ beside: [other] });
  await daemon.rpc('generateblock', await daemon.address(), [raw]);
  await third.work(11);
  expect(await third.recovers()).toMatchObject({ lost: 0n });
  await goesOn(third);
  expect(await daemon.rpc('getreceivedbyaddress', other)).toBe(0);
  await third.end();
});

test('no database that is left knows the payout: what was lost to where it goes is not paid again', async () => {
  const { raw, third } = await restoredTwice({ isRequestedLater: true });
  await daemon.rpc('generateblock', await daemon.address(), [raw]);
  await third.work(11);
  await third.recovers();
  await goesOn(third);
  await third.end();
});

test('nothing had left before: what was signed is sent once outputs were compared', async () => {
  const { first, reopenedWithSigner } = await copied(async (service) => {
    await capital(service, '0.5');
    await lend(service, 30_000_000n);
    await request(service, '0.1', destination);
  });
  first.state.losesAnswers = true;
  await first.work(1, [first.worker('one')]);
  await first.end();
  const second = await reopenedWithSigner();
  await second.work(2);
  expect(await mempool()).toHaveLength(1);
  await daemon.mine(7);
  await second.work(2);
  expect([await received(), await second.payouts(), await second.findings()]).toMatchObject([
    [0.1, 1],
    [{ status: 'completed' }],
    [],
  ]);
  await second.end();
});

test('several that spend one another have left, and all are written back as what they were', async () => {
  const { first, reopenedWithSigner } = await copied(async (service) => {
    await capital(service, '0.5');
    await lend(service, 40_000_000n);
    await request(service, '0.1', destination);
  });
  await first.work();
  await daemon.mine(1);
  await first.work(1);
  await request(first, '0.05', destination);
  await first.work(1);
  await daemon.mine(1);
  await first.work(1);
  await request(first, '0.03', destination);
  await first.work(1);
  expect(await mempool()).toHaveLength(1);
  await first.end();
  const second = await reopenedWithSigner();
  await second.work(3);
  await daemon.mine(7);
  await second.work(2);
  expect((await second.payouts()).map(({ status }) => status)).toEqual(['completed']);
  expect((await received())[1]).toBe(3);
  await second.end();
});

test('blocks are read while the node is asked for what was signed: what it has paid is no finding', async () => {
  const { first, reopenedWithSigner } = await copied(async (service) => {
    await capital(service, '0.5');
    await lend(service, 40_000_000n);
    await request(service, '0.1', destination);
  });
  await first.work();
  await daemon.mine(1);
  await first.work(1);
  await first.end();
  const second = await reopenedWithSigner();
  second.state.beforeRaw = second.reads;
  await second.worker('one').run();
  second.state.beforeRaw = async () => undefined;
  expect(await openBreakers(second.ctx.db)).toEqual([]);
  await second.work(2);
  expect([await received(), await second.payouts(), await openBreakers(second.ctx.db), await second.findings()]).toMatchObject([
    [0.1, 1],
    [{ status: 'completed' }],
    [],
    [],
  ]);
  await second.end();
});

test('a cancel waits for what was signed, while the signer is silent about it, and it is sent as soon as the signer speaks, though nothing else is paid', async () => {
  const { first, reopenedWithSigner } = await copied(async (service) => {
    await capital(service, '0.5');
    await lend(service, 30_000_000n);
    const scopes = new Set(['payouts'] as const);
    await setSettings(service.ctx, { merchantId: service.merchantId, scopes, change: { payoutApprovalAbove: '0' } });
    await request(service, '0.1', destination);
  });
  const [{ id: payoutId } = { id: '' }] = await first.payouts();
  await approvePayout(first.ctx, { payoutId, by: 'ann' });
  first.state.losesAnswers = true;
  await first.work(1, [first.worker('one')]);
  await first.end();
  const second = await reopenedWithSigner();
  second.state.namesNoBatch = true;
  const worker = second.worker('one');
  for (let look = 0; look < 3; look++) await worker.run();
  await expect(cancelPayout(second.ctx, { merchantId: second.merchantId, payoutId })).rejects.toMatchObject({
    code: 'payout_not_cancellable',
    passes: true,
  });
  second.state.namesNoBatch = false;
  await worker.run();
  await worker.run();
  expect(await mempool()).toHaveLength(1);
  await daemon.mine(7);
  await second.work(2, [worker]);
  expect([await received(), await second.payouts(), await second.findings()]).toMatchObject([
    [0.1, 1],
    [{ status: 'completed' }],
    [],
  ]);
  await second.end();
});
