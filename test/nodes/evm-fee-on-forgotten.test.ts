// USDT's owner had switched its fee on when a payout left that database and signer have forgotten since. All of its amount has left our address, so it is
// recovered as every other one is.
import { afterAll, beforeAll, expect, test } from 'vitest';
import { openBreakers } from '../../src/store/ledger/breakers.ts';
import { readPayout } from '../../src/store/payouts/reads.ts';
import { recoverSent } from '../../src/worker/payouts/evm/passed-nonces.ts';
import { FINAL, LATER_MS, receiveDollars } from './evm-lied-to.ts';
import { asOwnerFirst, ledgerIsChain, ownerCall, sent, transfer, works } from './evm-steps.ts';
import { openOnTwoNodes, type TwoNodes } from './two-nodes.ts';

const TIMEOUT = 300_000;
const PAYEE = `0x${'d5'.repeat(20)}`;
const STRANGER = `0x${'d6'.repeat(20)}`;
const UNITS = 50_000_000n;
let nodes: TwoNodes;
let service: TwoNodes['service'];
const fee = (points: bigint): string => ownerCall('setFee(uint256)', points);
const recovered = (txid: string, acceptsLoss: boolean) => recoverSent(service.ctx, txid, { by: 'operator test', acceptsLoss });

beforeAll(async () => {
  nodes = await openOnTwoNodes();
  ({ service } = nodes);
  await receiveDollars(service, 500n);
  await works(service, 3);
}, TIMEOUT);
afterAll(() => nodes?.close(), TIMEOUT);

/** What our address has sent to somebody before it was forgotten, in a final block. @returns its hash */
async function forgotten(payee: string, points = 100n): Promise<string> {
  await asOwnerFirst(service, fee(points));
  await service.mine();
  const txid = await sent(service, await service.hot('USDT'), service.anvil.token, { data: transfer(payee, UNITS) });
  await service.mine();
  await asOwnerFirst(service, fee(0n));
  await service.mine(FINAL);
  service.restart();
  await service.work(LATER_MS);
  return txid;
}
async function isWholeAgain(): Promise<void> {
  await service.findings();
  await service.goOn();
  await works(service, 2);
  expect(await openBreakers(service.db)).toEqual([]);
  const own = await Promise.all((['ETH', 'USDT'] as const).map((currency) => service.hot(currency)));
  const { rows } = await service.db.query<{ address: string }>({ text: 'select lower(address) as address from transactions' });
  await ledgerIsChain(service, [...own, ...rows.map(({ address }) => address)]);
}

test('is the payout that asks for what was sent', { timeout: TIMEOUT }, async () => {
  const id = await service.request(PAYEE);
  const txid = await forgotten(PAYEE);
  expect((await readPayout(service.db, id))?.status).toBe('processing');
  expect(await recovered(txid, false)).toMatchObject({ payoutIds: [id], lost: 0n });
  await isWholeAgain();
  expect((await readPayout(service.db, id))?.status).toBe('completed');
  expect(await service.units(PAYEE)).toBe(49_500_000n);
  const { rows } = await service.db.query<{ reason: string }>({
    text: `select reason from events where object_id = $1 and status = 'completed'`,
    values: [id],
  });
  expect(rows).toEqual([{ reason: "the token's contract has kept 0.500000 USDT of it" }]);
});

test.each([100n, 10_000n])('is lost where nobody asks for it: %s basis points', { timeout: TIMEOUT }, async (points) => {
  const txid = await forgotten(STRANGER, points);
  await expect(recovered(txid, false)).rejects.toMatchObject({
    code: 'not_resolvable',
    message: expect.stringContaining('loss'),
  });
  expect(await recovered(txid, true)).toMatchObject({ payoutIds: [], lost: UNITS });
  await isWholeAgain();
});
