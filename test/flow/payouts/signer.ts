// A driver of payouts on a service's database, with a node that takes everything and a signer that keeps a journal, looks at the lease and has
// limits, as the real one has; a test may make it silent.
import { randomBytes } from 'node:crypto';
import type { ChainPort } from '../../../src/core/ports.ts';
import type { SignedTransaction, TransactionToSign } from '../../../src/core/signer-wire.ts';
import type { Context } from '../../../src/flow/context.ts';
import { contentHash } from '../../../src/signer/signature-index.ts';
import type { PayoutDriver, Telling } from '../../../src/worker/payouts/driver-options.ts';
import { createPayoutDriver } from '../../../src/worker/payouts/utxo/driver.ts';
import { tellingTo } from '../../support/payout-jobs.ts';
import type { ServiceOnDatabase } from '../../support/service-on-database.ts';

export type Signer = {
  /** Satoshi that one payout, and one transaction, may take. */
  payout: bigint;
  transaction: bigint;
  /** `before`: no answer and no signature; `after`: it signs, and the answer is lost; a rule's name: it refuses by that. */
  fails: 'before' | 'after' | 'intent' | 'hold' | 'stopped' | null;
  /** What happens while a request lies with it. */
  meanwhile: () => Promise<void>;
  readonly journal: SignedTransaction[];
  asked: number;
};
const failed = (fault: string, message: string) => Object.assign(new Error(message), { fault });
const refused = (rule: string, what: string) => failed('refused', `rule ${rule} (words): ${what}`);

/**
 * @param onFault receives what fails by a fault of ours; absent: it is thrown
 * @param asNode what the node does otherwise
 */
export function openDriver(
  { ctx, admin }: ServiceOnDatabase,
  onFault?: Telling['onFault'],
  asNode: object = {},
): {
  readonly driver: PayoutDriver;
  readonly signer: Signer;
  readonly troubles: string[];
  readonly sent: string[];
} {
  const signer: Signer = {
    payout: 10n ** 12n,
    transaction: 10n ** 12n,
    fails: null,
    meanwhile: async () => undefined,
    journal: [],
    asked: 0,
  };
  const troubles: string[] = [];
  const sent: string[] = [];
  async function sign(request: TransactionToSign): Promise<SignedTransaction> {
    signer.asked += 1;
    if (signer.fails === 'before') throw failed('unreachable', 'no answer');
    const before = signer.journal.find((one) => one.request.batchId === request.batchId && one.request.number === request.number);
    if (before !== undefined && contentHash(before.request) === contentHash(request)) return before;
    if (before !== undefined) throw refused('number', 'signed with other content');
    const { rows } = await admin.query('select lease_epoch::text as epoch from outgoing_batches where id = $1', [
      request.batchId,
    ]);
    if (rows[0]?.epoch !== request.leaseEpoch) throw refused('lease', 'another lease');
    await signer.meanwhile();
    if (signer.fails !== null && signer.fails !== 'after') throw refused(signer.fails, 'no');
    const amounts = request.outputs.map((output) => BigInt(output.amount));
    if (amounts.some((amount) => amount > signer.payout)) throw refused('limit', 'above the limit of one');
    if (amounts.reduce((a, b) => a + b, 0n) > signer.transaction) throw refused('limit', 'above the limit of an hour');
    const total = request.inputs.reduce((all, one) => all + BigInt(one.amount), 0n);
    const paid = amounts.reduce((a, b) => a + b, BigInt(request.change?.amount ?? 0));
    const signed = {
      sequence: signer.journal.length + 1,
      request,
      txid: randomBytes(32).toString('hex'),
      raw: randomBytes(8).toString('hex'),
      fee: (total - paid).toString(),
      vbytes: 200,
      signedAtMs: ctx.ports.clock.now(),
    };
    signer.journal.push(signed);
    if (signer.fails === 'after') throw failed('unreachable', 'no answer');
    return signed;
  }
  const signing = {
    sign,
    signed: async ({ after, batchId }: { after: number; batchId?: string }) => {
      if (signer.fails === 'before' || signer.fails === 'after') throw failed('unreachable', 'no answer');
      const named = signer.journal.filter(
        (one) => one.sequence > after && (batchId === undefined || one.request.batchId === batchId),
      );
      return { transactions: named, more: false };
    },
  };
  const node = {
    currency: 'BTC',
    send: async (raw: Uint8Array) => {
      sent.push(Buffer.from(raw).toString('hex'));
      return { state: 'accepted' };
    },
    ...asNode,
  } as unknown as ChainPort;
  const on: Context = { ...ctx, ports: { ...ctx.ports, chains: new Map([['BTC', node]]) } };
  const driver = createPayoutDriver(on, 'BTC', { signing, owner: 'test', ...tellingTo(troubles, onFault) });
  return { driver, signer, troubles, sent };
}
