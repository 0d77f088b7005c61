// Two real LND nodes on a real bitcoind on regtest, for the tests that must not trust our own simulator: ours, and a customer's with open
// channels to it.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startBitcoind } from './bitcoind.ts';
import { freePort } from './core-daemon.ts';
import { type LndNode, openChannel, openNode, until } from './lnd-node.ts';

export type LndPair = {
  /** Receives for the service. */
  readonly shop: LndNode;
  /** Pays. */
  readonly customer: LndNode;
  /** The customer pays an invoice; resolves with the final status. `msat` only for more than it asks for is not LND's to give. */
  pay(paymentRequest: string): Promise<string>;
  mine(blocks: number): Promise<void>;
  /** One more node on the same chain. */
  more(alias: string): Promise<LndNode>;
  remove(): Promise<void>;
};

const CHANNEL_SAT = 10_000_000;

/** Starts both and opens two channels between them, half of each on each side: one announced, one private. About 15 s. */
export async function startLndPair({ hasWords = false } = {}): Promise<LndPair> {
  const folder = mkdtempSync(join(tmpdir(), 'lnd-'));
  const zmq = [await freePort(), await freePort()];
  const bitcoind = await startBitcoind([`-zmqpubrawblock=tcp://127.0.0.1:${zmq[0]}`, `-zmqpubrawtx=tcp://127.0.0.1:${zmq[1]}`]);
  await bitcoind.mine(110);
  const [shop, customer] = (await Promise.all(
    ['shop', 'customer'].map((alias) => openNode({ folder, alias, bitcoind, zmq, hasWords: hasWords && alias === 'shop' })),
  )) as [Awaited<ReturnType<typeof openNode>>, Awaited<ReturnType<typeof openNode>>];

  const nodes = [shop, customer];
  async function mine(blocks: number): Promise<void> {
    await bitcoind.mine(blocks);
    const height = await bitcoind.rpc<number>('getblockcount');
    for (const node of nodes) {
      await until('the nodes follow the chain', async () => {
        const info = await node.call<{ block_height: number; synced_to_chain: boolean }>('GET', '/v1/getinfo');
        return info.block_height >= height && info.synced_to_chain;
      });
    }
  }
  const { address } = await shop.call<{ address: string }>('GET', '/v1/newaddress?type=WITNESS_PUBKEY_HASH');
  await bitcoind.pay(address, '2');
  await mine(3);
  await shop.call('POST', '/v1/peers', { addr: { pubkey: customer.identity, host: customer.peer }, perm: true });
  for (const isPrivate of [false, true]) {
    await until('money of the node', async () => {
      const { confirmed_balance: sat } = await shop.call<{ confirmed_balance: string }>('GET', '/v1/balance/blockchain');
      return Number(sat) > CHANNEL_SAT;
    });
    await openChannel(shop, customer, {
      private: isPrivate,
      local_funding_amount: String(CHANNEL_SAT),
      push_sat: String(CHANNEL_SAT / 2),
      sat_per_vbyte: '5',
    });
    await mine(6);
  }
  const usable = async (): Promise<boolean> => {
    for (const [from, to] of [
      [shop, customer],
      [customer, shop],
    ] as const) {
      const { channels = [] } = await from.call<{ channels?: { active: boolean }[] }>('GET', '/v1/channels');
      if (channels.length < 2 || channels.some(({ active }) => !active)) return false;
      // each learns by himself what the other lets pass, one of them later
      const { routes = [] } = await from.call<{ routes?: unknown[] }>('GET', `/v1/graph/routes/${to.identity}/1000`);
      if (routes.length === 0) return false;
    }
    return true;
  };
  await until('the channels are usable', usable);
  return {
    shop,
    customer,
    mine,
    async pay(paymentRequest) {
      const body = { payment_request: paymentRequest, timeout_seconds: 20, fee_limit_msat: '10000', no_inflight_updates: true };
      const said = await customer.call<{ result: { status: string } }>('POST', '/v2/router/send', body);
      return said.result.status;
    },
    async more(alias) {
      const node = await openNode({ folder, alias, bitcoind, zmq, hasWords: false });
      nodes.push(node);
      return node;
    },
    async remove() {
      await Promise.all(nodes.map((node) => node.stop()));
      await bitcoind.remove();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
