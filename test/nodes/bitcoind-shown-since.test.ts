// A forgotten transaction comes to light in a block a moment after outputs were compared, on a real bitcoind: what asks for the same, or was signed for it, is
// not sent by that comparison.
import { afterEach, expect, test, vi } from 'vitest';
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
  world,
} from './forgotten-service.ts';

vi.setConfig({ testTimeout: 240_000 });
forgottenServiceForAll();
const steady = performance.now.bind(performance);
afterEach(() => void vi.restoreAllMocks());

test.each([
  ['the signer has signed for it, and its answer was lost', 'losesAnswers'],
  ['the signer was away', 'isSignerAway'],
] as const)('its batch is here, and %s', async (_, fault) => {
  const { first, reopened } = await copied(async (service) => {
    await capital(service, '0.5');
    await lend(service, 60_000_000n);
    await request(service, '0.1', destination);
  });
  await first.work();
  const raw = await endsUnseen(first);
  const second = await reopened();
  await capitalWithoutWorker(second, '2.0');
  vi.spyOn(performance, 'now').mockImplementation(() => steady() + world.skew);
  second.state[fault] = true;
  const lasting = [second.worker('one')];
  await second.work(1, lasting);
  expect(await second.payouts()).toMatchObject([{ step: 'batched' }]);
  await daemon.rpc('generateblock', await daemon.address(), [raw]);
  second.state[fault] = false;
  await second.work(2, lasting);
  expect([await received(), await mempool()]).toEqual([[0.1, 1], []]);
  expect(await second.recovers()).toMatchObject({ lost: 0n });
  await daemon.mine(6);
  await second.work(2, lasting);
  await second.clear();
  await second.work(3, lasting);
  expect([await received(), await mempool(), await second.findings()]).toEqual([[0.1, 1], [], []]);
  await second.end();
});

test('it is requested again', async () => {
  const { first, reopened } = await copied(async (service) => {
    await capital(service, '0.5');
    await lend(service, 60_000_000n);
  });
  await request(first, '0.1', destination);
  await first.work();
  const raw = await endsUnseen(first);
  const second = await reopened();
  await capitalWithoutWorker(second, '2.0', '2.0');
  vi.spyOn(performance, 'now').mockImplementation(() => steady() + world.skew);
  const lasting = [second.worker('one')];
  const other = await daemon.address();
  await request(second, '0.05', other);
  await second.work(1, lasting);
  expect(await mempool()).toHaveLength(1);
  await daemon.rpc('generateblock', await daemon.address(), [raw, (await mempool())[0]]);
  await second.work(1, lasting);
  await request(second, '0.1', destination);
  await second.work(2, lasting);
  expect([await received(), await mempool()]).toEqual([[0.1, 1], []]);
  await second.end();
});
