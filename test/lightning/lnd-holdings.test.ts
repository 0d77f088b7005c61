// The books are all that a real LND has: while it forwards a payment of others, opens and closes channels, and while its operator takes something out of its
// wallet.
import { randomBytes } from 'node:crypto';
import { expect, test } from 'vitest';
import { createLnd } from '../../src/outside/lightning/lnd.ts';
import { createLndPayer } from '../../src/outside/lightning/lnd-payer.ts';
import { HAS_LND, lndEngine } from '../support/lightning-engines.ts';
import { openLightningPayouts, paidIn } from '../support/lightning-payouts.ts';
import { type LndNode, openChannel } from '../support/lnd-node.ts';
import { eventually } from '../support/service.ts';

type Listed = {
  readonly channels: readonly {
    readonly channel_point: string;
    readonly active: boolean;
    readonly chan_id: string;
    readonly capacity: string;
    readonly private: boolean;
    readonly pending_htlcs: readonly unknown[];
  }[];
};
type Pending = Readonly<Record<string, readonly unknown[] | string>>;

const listed = (node: LndNode) => node.call<Listed>('GET', '/v1/channels').then(({ channels }) => channels);
/** Whether a channel opens or closes, or a transaction of the wallet waits. */
async function isMoving(node: LndNode): Promise<boolean> {
  const pending = await node.call<Pending>('GET', '/v1/channels/pending');
  const { unconfirmed_balance: waits } = await node.call<{ unconfirmed_balance: string }>('GET', '/v1/balance/blockchain');
  return Object.values(pending).some((list) => Array.isArray(list) && list.length > 0) || waits !== '0';
}

test.runIf(HAS_LND)('the books are what a real LND has in its channels and its wallet', { timeout: 600_000 }, async () => {
  const engine = await lndEngine();
  const { shop, customer, mine } = engine.pair;
  const at = await openLightningPayouts(
    createLnd(async () => engine.target(), { chain: 'regtest' }),
    createLndPayer(async () => engine.payTarget()),
    { now: () => Date.now() },
  );
  const account = (code: string) => at.balance(code);
  /** What the node has more than the books, in satoshis: less than one for each channel, and parts of a satoshi that were forwarded. */
  async function more({ mines }: { readonly mines: boolean }): Promise<number> {
    await eventually(
      'nothing is under way',
      async () => {
        if (!mines || !(await isMoving(shop))) return true;
        await mine(6);
        return false;
      },
      120_000,
    );
    await at.admin.query('update lightning_nodes set held_at = null');
    await eventually(
      'it is compared',
      async () => {
        await at.work();
        await at.compare();
        const { rows } = await at.admin.query('select 1 from lightning_nodes where held_at is not null');
        return rows.length === 1;
      },
      60_000,
    );
    expect(await at.findings()).toEqual([]);
    const { rows } = await at.admin.query('select (at_node - booked_there)::int as more from lightning_nodes');
    return rows[0].more;
  }
  const areEqual = async ({ mines } = { mines: true }): Promise<void> => {
    const difference = await more({ mines });
    expect(difference).toBeGreaterThanOrEqual(0);
    expect(difference).toBeLessThanOrEqual(4);
  };
  try {
    await at.work();
    await at.look();
    await areEqual();
    const opening = await account('asset:ln:operator:BTC');
    await paidIn(at, engine, 500_00n);
    const to = await engine.invoice({ sat: 1_000 });
    const { id } = await at.request(to.request, '0.00001');
    await eventually('it is paid', async () => {
      await at.look();
      return (await at.payout(id)).status === 'completed';
    });
    await areEqual();
    expect(await account('asset:ln:operator:BTC')).toBe(opening);

    // a payment of others: out over one channel of the customer, back to him over the other
    const announced = (await listed(customer)).find((one) => !one.private);
    type Sent = { readonly result: { readonly status: string; readonly fee_msat: string; readonly failure_reason: string } };
    // until both channels' terms are known to him there is no route, and one back over the channel that it came by is refused; that refusal, which he
    // would remember for an hour, is forgotten before the next try
    const result = await eventually(
      'he has paid himself',
      async () => {
        const asked = await customer.call<{ payment_request: string }>('POST', '/v1/invoices', { value: '20000', private: true });
        const decoded = await customer.call<{ route_hints: readonly unknown[] }>('GET', `/v1/payreq/${asked.payment_request}`);
        if (decoded.route_hints.length === 0) return null;
        await customer.call('POST', '/v2/router/mc/reset', {});
        const around = {
          payment_request: asked.payment_request,
          allow_self_payment: true,
          outgoing_chan_ids: [announced?.chan_id],
          fee_limit_msat: '100000',
          timeout_seconds: 20,
          no_inflight_updates: true,
        };
        const sent = await customer.call<Sent>('POST', '/v2/router/send', around);
        return sent.result.status === 'SUCCEEDED' ? sent.result : null;
      },
      60_000,
    );
    await areEqual();
    expect(await account('income:routing:BTC')).toBe(BigInt(result.fee_msat) / 1_000n);
    expect(await account('income:routing:BTC')).toBeGreaterThan(0n);

    // one that he holds on its way
    const held = randomBytes(32).toString('base64');
    const holding = { hash: held, value: '20000', private: true, cltv_expiry: '40' };
    const { payment_request: toHold } = await customer.call<{ payment_request: string }>('POST', '/v2/invoices/hodl', holding);
    await customer.call('POST', '/v2/router/mc/reset', {});
    const holds = { payment_request: toHold, allow_self_payment: true, outgoing_chan_ids: [announced?.chan_id] };
    customer.call('POST', '/v2/router/send', { ...holds, fee_limit_msat: '100000', timeout_seconds: 20 }).catch(() => undefined);
    const parts = async () => (await listed(shop)).flatMap((one) => one.pending_htlcs);
    await eventually('it is on its way', async () => (await parts()).length === 2, 60_000);
    await areEqual({ mines: false });
    expect(await parts()).toHaveLength(2);
    await customer.call('POST', '/v2/invoices/cancel', { payment_hash: held });
    await eventually('it is back', async () => (await parts()).length === 0);

    // a channel of ours, of which something is given to the other side
    const before = await account('expense:ln:channels:BTC');
    await openChannel(shop, customer, { local_funding_amount: '400000', push_sat: '30000', sat_per_vbyte: '7' });
    await areEqual();
    type Transactions = { readonly transactions: readonly { readonly tx_hash: string; readonly total_fees: string }[] };
    const opened = (await listed(shop)).find(({ capacity }) => capacity === '400000')!;
    const { transactions } = await shop.call<Transactions>('GET', '/v1/transactions');
    const funding = transactions.find(({ tx_hash: txid }) => opened.channel_point.startsWith(txid))!;
    expect((await account('expense:ln:channels:BTC')) - before).toBe(BigInt(funding.total_fees));
    expect(await account('equity:operator:ln:BTC')).toBe(opening - 30_000n);

    // closed by agreement: whoever has opened it pays
    const path = (point: string) => `/v1/channels/${point.replace(':', '/')}`;
    const usable = (point: string) =>
      eventually(
        'it is usable',
        async () => (await listed(shop)).some((one) => one.channel_point === point && one.active),
        60_000,
      );
    await usable(opened.channel_point);
    const atFirst = await account('expense:ln:channels:BTC');
    shop.call('DELETE', `${path(opened.channel_point)}?sat_per_vbyte=9`).catch(() => undefined);
    await eventually('it is closing', async () =>
      (await listed(shop)).every((one) => one.channel_point !== opened.channel_point),
    );
    await areEqual();
    const byAgreement = (await account('expense:ln:channels:BTC')) - atFirst;
    expect(byAgreement).toBeGreaterThan(500n);
    expect(byAgreement).toBeLessThan(5_000n);

    // its operator takes something out of the wallet
    const { address } = await customer.call<{ address: string }>('GET', '/v1/newaddress?type=WITNESS_PUBKEY_HASH');
    const had = await account('equity:operator:ln:BTC');
    await shop.call('POST', '/v1/transactions', { addr: address, amount: '250000', sat_per_vbyte: '5' });
    await areEqual();
    const taken = had - (await account('equity:operator:ln:BTC'));
    expect(taken).toBeGreaterThan(250_000n);
    expect(taken).toBeLessThan(255_000n);
    // and has the next one mined sooner, by a transaction that spends its change
    type Moved = {
      readonly transactions: readonly {
        readonly tx_hash: string;
        readonly label: string;
        readonly total_fees: string;
        readonly output_details: readonly { readonly output_index: string; readonly is_our_address: boolean }[];
      }[];
    };
    const beforeBump = await account('expense:ln:channels:BTC');
    const { txid } = await shop.call<{ txid: string }>('POST', '/v1/transactions', {
      addr: address,
      amount: '100000',
      sat_per_vbyte: '2',
    });
    const found = async (is: (one: Moved['transactions'][number]) => boolean) =>
      (await shop.call<Moved>('GET', '/v1/transactions')).transactions.find(is);
    const slow = await found((one) => one.tx_hash === txid);
    const change = slow?.output_details.find((one) => one.is_our_address);
    await shop.call('POST', '/v2/wallet/bumpfee', {
      outpoint: { txid_str: txid, output_index: Number(change?.output_index) },
      sat_per_vbyte: '20',
      immediate: true,
    });
    const labelled = (one: Moved['transactions'][number]) => one.label.includes('sweep');
    await eventually('it is made faster', async () => (await found(labelled)) !== undefined, 60_000);
    await areEqual();
    const bumped = (await found(labelled))?.total_fees ?? '';
    expect((await account('expense:ln:channels:BTC')) - beforeBump).toBe(BigInt(bumped));
    expect(BigInt(bumped)).toBeGreaterThan(0n);

    // what others begin, and need never end: a channel that is in no block, and something for the wallet that is not mined
    const { address: ours } = await shop.call<{ address: string }>('GET', '/v1/newaddress?type=WITNESS_PUBKEY_HASH');
    await openChannel(customer, shop, { local_funding_amount: '60000', sat_per_vbyte: '1' });
    await customer.call('POST', '/v1/transactions', { addr: ours, amount: '1000', sat_per_vbyte: '1' });
    await eventually('both wait', async () => {
      const { pending_open_channels: opening } = await shop.call<Pending>('GET', '/v1/channels/pending');
      const { unconfirmed_balance: waits } = await shop.call<{ unconfirmed_balance: string }>('GET', '/v1/balance/blockchain');
      return opening?.length === 1 && waits === '1000';
    });
    await areEqual({ mines: false });
    await areEqual();
    const costs = await account('expense:ln:channels:BTC');
    process.stderr.write(
      `fees: opening ${funding.total_fees}, by agreement ${byAgreement}, routed ${result.fee_msat} msat, costs ${costs}\n`,
    );
  } finally {
    await at.close();
    await engine.close();
  }
});
