// A service on two nodes of Ethereum's chain of which the one that is read lies about its own transactions: it says that they have failed.
import { expect } from 'vitest';
import { readPayoutDetails } from '../../src/store/payouts/reads.ts';
import { type Alteration, receipts } from '../support/nodes/altered-node.ts';
import { openOnTwoNodes, type TwoNodes } from './two-nodes.ts';

export const PAYEE = `0x${'a9'.repeat(20)}`;
export const FINAL = 70;
export const LATER_MS = 61_000;
export const WITHOUT_RECEIPTS: Alteration = {
  instead: ({ method }) => (method.endsWith('Receipt') ? { result: null } : null),
};
export const SILENT: Alteration = {
  instead() {
    throw new Error('nothing is answered');
  },
};

/** A merchant has been paid this many dollars in USDT, and the payment is final. */
export async function receiveDollars(service: TwoNodes['service'], dollars: bigint): Promise<void> {
  const { address } = await service.owe('USDT', dollars * 100n);
  await service.pay('USDT', address, dollars * 1_000_000n);
  await service.mine(FINAL);
}

export type LiedTo = Awaited<ReturnType<typeof openLiedTo>>;

/** With 500 USDT of a merchant, final. */
export async function openLiedTo() {
  const { service, read: liar, other: honest, close } = await openOnTwoNodes();
  /** The transactions that have failed, as the first node says. */
  const denied = new Set<string>();
  const lying = receipts((one) => (denied.has(one.transactionHash) ? { ...one, status: '0x0', logs: [] } : one));
  await receiveDollars(service, 500n);
  liar.alter(lying);
  return {
    service,
    liar,
    honest,
    denied,
    lying,
    /** A payout that has arrived, and that has failed for good by the word of the node that is read. */
    async paidAndDenied(): Promise<string> {
      const id = await service.request(PAYEE);
      await service.work(30_000);
      const { rows } = await service.db.query<{ txid: string }>({
        text: 'select a.txid from outgoing_attempts a join payouts p on p.batch_id = a.batch_id where p.id = $1',
        values: [id],
      });
      expect(rows).toHaveLength(1);
      for (const { txid } of rows) denied.add(txid);
      await service.mine(FINAL);
      return id;
    },
    /** What was read of the newest blocks is not asked for again. */
    async isHonestAgain(): Promise<void> {
      denied.clear();
      await service.mine(10);
    },
    async shown(id: string) {
      const found = await readPayoutDetails(service.db, id);
      return { status: found?.status, error: found?.error, trouble: found?.trouble };
    },
    close,
  };
}
