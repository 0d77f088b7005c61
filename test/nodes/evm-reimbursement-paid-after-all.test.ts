// A reimbursement on Ethereum's chain that two nodes said had failed, that was given back, and that has paid: its payments are somebody else's by
// then, so the service bears it, once its operator has said so.
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import type { EvmCode } from '../../src/core/currency.ts';
import { approvePayout } from '../../src/flow/payouts/cancel-and-approve.ts';
import { readRefund, reimburseTransaction } from '../../src/flow/payouts/reimbursements.ts';
import { openBreakers } from '../../src/store/ledger/breakers.ts';
import { recoverSigned } from '../../src/worker/payouts/evm/passed-nonces.ts';
import { receipts } from '../support/nodes/altered-node.ts';
import { openOnTwoNodes, type TwoNodes } from './two-nodes.ts';

const TIMEOUT = 300_000;
const PAYEE = `0x${'b7'.repeat(20)}`;
const FINAL = 70;
const LATER_MS = 61_000;
let nodes: TwoNodes;
let service: TwoNodes['service'];
let other: TwoNodes['other'];
const denied = new Set<string>();
const LYING = receipts((one) => (denied.has(one.transactionHash) ? { ...one, status: '0x0', logs: [] } : one));

beforeAll(async () => {
  nodes = await openOnTwoNodes({ read: LYING });
  ({ service, other } = nodes);
}, TIMEOUT);
afterAll(() => nodes?.close(), TIMEOUT);
beforeEach(() => {
  denied.clear();
  other.alter({});
});

test.each([
  ['ETH', 10n ** 17n, (payee: string) => service.ether(payee)],
  ['USDT', 300_000_000n, (payee: string) => service.units(payee)],
] as const)(
  'of %s, it is booked as the loss of the service, and its payments may be sent back again',
  {
    timeout: TIMEOUT,
  },
  async (currency: EvmCode, amount: bigint, held: (payee: string) => Promise<bigint>) => {
    const { id, address } = await service.owe(currency, 300_00n);
    await service.pay(currency, address, amount);
    await service.mine(FINAL);
    const reimburse = async () => {
      await service.price();
      const { merchantId } = service;
      await reimburseTransaction(service.ctx, { merchantId, transactionId: id, destination: PAYEE, part: null, currency: null });
    };
    await reimburse();
    await service.work(30_000);
    const { txid } = (await readRefund(service.ctx, id)) ?? {};
    denied.add(txid as string);
    await service.mine(FINAL);
    other.alter(LYING);
    await service.work(LATER_MS);
    await service.settle();
    expect(await readRefund(service.ctx, id)).toMatchObject({ status: 'failed' });
    expect(await service.status(id)).toBe('succeeded');
    // a rescan with a node that is right finds that it has paid
    denied.clear();
    await service.mine(10);
    other.alter({});
    await service.db.query({
      text: `with read as (update outgoing_attempts set result = 'paid' where txid = $1 returning batch_id)
           update outgoing_batches set due_at = '-infinity' where id in (select batch_id from read)`,
      values: [txid],
    });
    await service.work(LATER_MS);
    expect((await openBreakers(service.db)).flatMap(({ findings }) => findings).join()).toContain(`is paid by ${txid}`);

    const arrived = await held(PAYEE);
    const recover = (acceptsLoss: boolean) => recoverSigned(service.ctx, txid as string, { by: 'operator test', acceptsLoss });
    const available = () => service.balance(`merchant:${service.merchantId}:available:${currency}`);
    const before = await available();
    await expect(recover(false)).rejects.toThrow(`${currency} that had failed`);
    expect(await recover(true)).toMatchObject({ lost: arrived, currency });
    await expect(recover(true)).rejects.toThrow('which is final');
    expect(await available()).toBe(before);
    expect(await service.balance(`expense:reorg_loss:${currency}`)).toBe(arrived);
    expect(await service.findings()).toEqual([]);
    await service.goOn();
    await service.work(LATER_MS);
    expect(await openBreakers(service.db)).toEqual([]);

    // the signer has sent all of it back once, and asks for a person before it does so again
    await reimburse();
    await service.work(LATER_MS);
    const { rows } = await service.db.query<{ id: string }>({
      text: `select id from payouts where reimburses = $1 and step = 'held'`,
      values: [id],
    });
    await approvePayout(service.ctx, { payoutId: rows[0]?.id as string, by: 'test' });
    await service.work(LATER_MS);
    await service.mine(FINAL);
    await service.work(LATER_MS);
    await service.settle();
    expect(await service.status(id)).toBe('reimbursed');
    expect(await held(PAYEE)).toBeGreaterThan(arrived);
    expect(await service.findings()).toEqual([]);
  },
);
