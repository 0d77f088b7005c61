// Ether that contracts send, of which one of two nodes shows the call and the other only what the address holds.
import { expect, test } from 'vitest';
import { callData } from '../support/evm/anvil.ts';
import { FORWARDER } from '../support/evm/compiled.ts';
import { type Alteration, openAlteredNode, WITHOUT_TRACES } from '../support/nodes/altered-node.ts';
import { openEvmService } from './evm-service.ts';

const TIMEOUT = 300_000;
const FINAL = 70;
const ETHER = 10n ** 18n;
const STRANGER = `0x${'5e'.repeat(20)}`;
type Relay = Awaited<ReturnType<typeof openAlteredNode>>;

test.each(['the one that is read', 'the other one'])(
  'ether of a contract counts where one node shows the call and the other the balance: %s shows no calls',
  { timeout: TIMEOUT },
  async (which) => {
    const relays: Relay[] = [];
    const relayed = async (url: string, alteration: Alteration): Promise<string> => {
      const relay = await openAlteredNode(url);
      relay.alter(alteration);
      relays.push(relay);
      return relay.url;
    };
    const isRead = which === 'the one that is read';
    const other = await openEvmService({
      through: (url) => relayed(url, isRead ? WITHOUT_TRACES : {}),
      second: (url) => relayed(url, isRead ? {} : WITHOUT_TRACES),
    });
    try {
      const { id, address } = await other.owe('ETH', 300_00n);
      const input = callData(FORWARDER, 'halves(address)', address);
      await other.anvil.send({ to: other.anvil.forwarder, input, value: ETHER / 10n });
      await other.mine(FINAL);
      const { rows } = await other.db.query({ text: 'select denied, reason from unconfirmed_blocks' });
      expect([await other.status(id), rows]).toEqual(['succeeded', []]);
    } finally {
      await other.close();
      for (const relay of relays) relay.close();
    }
  },
);

/** From a block on an address holds an ether more, says a node that shows balances only. */
const raised = (balance: { address: string; from: number }): Alteration => ({
  ...WITHOUT_TRACES,
  afterwards({ method, params }, answer) {
    const [call] = params as readonly { readonly data?: string }[];
    const at = balance.address === '' ? -1 : (call?.data?.lastIndexOf(balance.address.slice(2)) ?? -1);
    if (method !== 'eth_call' || at < 0 || typeof answer.result !== 'string') return answer;
    // the number of the block, the hash of the one before, and the balance of each address that was appended to the code
    const words = answer.result.slice(2).match(/.{64}/g) ?? [];
    const nth = words.length - ((call?.data?.length ?? 0) - at) / 40;
    if (Number(`0x${words[0]}`) < balance.from) return answer;
    words[nth] = (BigInt(`0x${words[nth]}`) + ETHER).toString(16).padStart(64, '0');
    return { result: `0x${words.join('')}` };
  },
});

test('a balance that one node raises pays nothing where the other shows the calls', { timeout: TIMEOUT }, async () => {
  const balance = { address: '', from: 0 };
  let relay: Relay | null = null;
  const other = await openEvmService({
    async through(url) {
      relay = await openAlteredNode(url);
      relay.alter(raised(balance));
      return relay.url;
    },
    second: async (url) => url,
  });
  try {
    const { id, address } = await other.owe('ETH', 300_00n);
    Object.assign(balance, { address, from: Number(await other.anvil.rpc<string>('eth_blockNumber')) + 1 });
    await other.anvil.send({ to: STRANGER, value: 1n });
    await other.mine(FINAL);
    const { rows: paid } = await other.db.query({ text: 'select txid from payments where transaction_id = $1', values: [id] });
    const { rows } = await other.db.query<{ denied: boolean }>({ text: 'select denied from unconfirmed_blocks' });
    expect([await other.status(id), paid, rows]).toEqual(['started', [], [{ denied: true }]]);
  } finally {
    await other.close();
    (relay as Relay | null)?.close();
  }
});
