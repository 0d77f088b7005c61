// USDT that was at an address before its transaction was made is not booked, so it cannot be lost; and what --take-back does where nothing is there again.
import { afterAll, beforeAll, expect, test } from 'vitest';
import { acceptEarly } from '../../src/store/chain/early-payments.ts';
import { writeOffAt } from '../../src/worker/payouts/evm/write-off.ts';
import { rescan } from '../../src/worker/rescan/rescan-all.ts';
import { FINAL } from './evm-lied-to.ts';
import { isDestroyed, ledgerIsChain, works } from './evm-steps.ts';
import { openOnTwoNodes, type TwoNodes } from './two-nodes.ts';

const TIMEOUT = 300_000;
const UNITS = 300_000_000n;
let nodes: TwoNodes;
let service: TwoNodes['service'];
const asked = { takesBack: false, by: 'operator test', evidence: 'its issuer says so' };
const writtenOff = async (address: string, more: Partial<typeof asked> = {}) =>
  (await writeOffAt(service.ctx, { address, ...asked, ...more })).flatMap(({ written }) => written);
const refusal = (what: string) => expect.objectContaining({ code: 'not_resolvable', message: expect.stringContaining(what) });
const lost = () => service.balance('expense:written_off:USDT');

beforeAll(async () => {
  nodes = await openOnTwoNodes();
  ({ service } = nodes);
}, TIMEOUT);
afterAll(() => nodes?.close(), TIMEOUT);

async function isWhole(): Promise<void> {
  const own = await Promise.all((['ETH', 'USDT'] as const).map((currency) => service.hot(currency)));
  const { rows } = await service.db.query<{ address: string }>({ text: 'select lower(address) as address from transactions' });
  await ledgerIsChain(service, [...own, ...rows.map(({ address }) => address)]);
}
/** A transaction whose address had something before, as one that was given out twice. */
async function early(): Promise<{ readonly address: string; readonly outpoint: string }> {
  const { id, address } = await service.owe('USDT', 300_00n);
  await service.db.query({ text: 'update transactions set made_order = 1000000000 where id = $1', values: [id] });
  const { hash } = await service.pay('USDT', address, UNITS);
  await service.mine(FINAL);
  return { address, outpoint: `${hash}:0` };
}

test('what is not booked is booked first', { timeout: TIMEOUT }, async () => {
  const { address, outpoint } = await early();
  await isDestroyed(service, address);
  await service.mine(FINAL);
  await service.findings();
  const before = await service.balance('asset:chain:USDT');
  await expect(writtenOff(address)).rejects.toEqual(refusal(`bursar audit --is-payment ${outpoint}`));
  expect(await service.balance('asset:chain:USDT')).toBe(before);
  const accepted = await acceptEarly(service.db, outpoint, 'operator test', new Date());
  await rescan(service.ctx, 'USDT', { fromHeight: accepted?.height ?? 0 });
  await service.settle();
  await service.findings();
  expect(await writtenOff(address)).toEqual([{ address, amount: UNITS }]);
  await works(service, 1);
  await isWhole();
});

test('where more is missing, nothing is taken back', { timeout: TIMEOUT }, async () => {
  const { address } = await service.owe('USDT', 300_00n);
  await service.pay('USDT', address, UNITS);
  await service.mine(FINAL);
  await isDestroyed(service, address);
  await service.mine(FINAL);
  await service.findings();
  const before = await lost();
  await service.db.query({ text: 'update chain_cursors set deep_height = height - 75' });
  await expect(writtenOff(address, { takesBack: true })).rejects.toEqual(
    refusal('up to which what came to old addresses was looked for'),
  );
  await service.db.query({ text: 'update chain_cursors set deep_height = height' });
  await expect(writtenOff(address, { takesBack: true })).rejects.toEqual(refusal('lacks 300.000000 USDT: without --take-back'));
  expect(await lost()).toBe(before);
  expect(await writtenOff(address)).toEqual([{ address, amount: UNITS }]);
  await isWhole();
});
