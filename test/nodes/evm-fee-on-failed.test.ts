// USDT's owner switches its fee on while a payout is out, and two nodes say wrongly that the payout has failed: it was given back, and all of it has left.
// Its operator has it booked as any other that is found paid, and what was kept of it is shown.
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { readRefund, reimburseTransaction } from '../../src/flow/payouts/reimbursements.ts';
import { openBreakers } from '../../src/store/ledger/breakers.ts';
import { readPayoutDetails } from '../../src/store/payouts/reads.ts';
import { recoverSigned } from '../../src/worker/payouts/evm/passed-nonces.ts';
import { writeOffAt } from '../../src/worker/payouts/evm/write-off.ts';
import { receipts } from '../support/nodes/altered-node.ts';
import { FINAL, LATER_MS, PAYEE, receiveDollars } from './evm-lied-to.ts';
import { asOwnerFirst, ledgerIsChain, ownerCall, works } from './evm-steps.ts';
import { openOnTwoNodes, type TwoNodes } from './two-nodes.ts';

const TIMEOUT = 300_000;
const CUSTOMER = `0x${'d6'.repeat(20)}`;
const denied = new Set<string>();
const LYING = receipts((one) => (denied.has(one.transactionHash) ? { ...one, status: '0x0', logs: [] } : one));
const fee = (points: bigint): string => ownerCall('setFee(uint256)', points);
const by = 'operator test';
let nodes: TwoNodes;
let service: TwoNodes['service'];

beforeAll(async () => {
  nodes = await openOnTwoNodes();
  ({ service } = nodes);
  await receiveDollars(service, 500n);
  await works(service, 3);
}, TIMEOUT);
afterAll(() => nodes?.close(), TIMEOUT);
afterEach(() => denied.clear());

function eachSays(alteration: Parameters<TwoNodes['read']['alter']>[0]): void {
  for (const node of [nodes.read, nodes.other]) node.alter(alteration);
}
/** What waits is sent, its block keeps a hundredth of it, and it has failed for good by what both nodes say; then they say how it was. @returns its hash */
async function failedAndKept(): Promise<string> {
  await service.work(LATER_MS);
  const { rows } = await service.db.query<{ txid: string }>({
    text: 'select txid from outgoing_attempts order by id desc limit 1',
  });
  const txid = rows[0]?.txid as string;
  denied.add(txid);
  eachSays(LYING);
  await asOwnerFirst(service, fee(100n));
  await service.mine();
  await asOwnerFirst(service, fee(0n));
  await service.mine(FINAL);
  await works(service, 2);
  await service.settle();
  eachSays({});
  // a rescan with nodes that are right finds what its events say
  await service.mine(10);
  await service.db.query({
    text: `with read as (update outgoing_attempts set result = 'unclear' where txid = $1 returning batch_id)
           update outgoing_batches set due_at = '-infinity' where id in (select batch_id from read)`,
    values: [txid],
  });
  await service.work(LATER_MS);
  expect((await openBreakers(service.db)).flatMap(({ findings }) => findings).join()).toContain(`bursar payout recover ${txid}`);
  await service.mine(FINAL);
  await service.findings();
  return txid;
}
async function isWhole(): Promise<void> {
  const own = await Promise.all((['ETH', 'USDT'] as const).map((currency) => service.hot(currency)));
  const { rows } = await service.db.query<{ address: string }>({ text: 'select lower(address) as address from transactions' });
  await ledgerIsChain(service, [...own, ...rows.map(({ address }) => address)]);
  await service.goOn();
  await works(service, 2);
  expect(await openBreakers(service.db)).toEqual([]);
}
const available = () => service.balance(`merchant:${service.merchantId}:available:USDT`);

test('a payout is completed, and its merchant pays it again', { timeout: TIMEOUT }, async () => {
  const id = await service.request(PAYEE);
  const txid = await failedAndKept();
  expect(await readPayoutDetails(service.db, id)).toMatchObject({ status: 'failed', kept: null });
  const address = await service.hot('USDT');
  // it is no loss of the house
  await expect(writeOffAt(service.ctx, { address, takesBack: false, by, evidence: 'gone' })).rejects.toThrow(
    `bursar payout recover ${txid}`,
  );
  const before = await available();
  await recoverSigned(service.ctx, txid, { by, acceptsLoss: false });
  const shown = await readPayoutDetails(service.db, id);
  expect(shown).toMatchObject({ status: 'completed', kept: 500_000n });
  expect(before - (await available())).toBe(50_000_000n + (shown?.fee ?? 0n));
  await isWhole();
});

test('a reimbursement is the loss of the house', { timeout: TIMEOUT }, async () => {
  const { id, address } = await service.owe('USDT', 300_00n);
  await service.pay('USDT', address, 300_000_000n);
  await service.mine(FINAL);
  await works(service, 3);
  const { merchantId } = service;
  await reimburseTransaction(service.ctx, { merchantId, transactionId: id, destination: CUSTOMER, part: null, currency: null });
  const txid = await failedAndKept();
  const before = await available();
  await expect(recoverSigned(service.ctx, txid, { by, acceptsLoss: false })).rejects.toThrow('--accept-loss');
  const left = (await recoverSigned(service.ctx, txid, { by, acceptsLoss: true }))?.lost ?? 0n;
  // all that has left, not only what has arrived
  expect(left - left / 100n).toBe(await service.units(CUSTOMER));
  expect(await readRefund(service.ctx, id)).toMatchObject({ status: 'failed' });
  expect(await available()).toBe(before);
  await isWhole();
});
