// Ether that contracts send, of which one of two nodes shows the call and the other only what the address holds.
import { expect, test } from 'vitest';
import { rescan } from '../../src/worker/rescan/rescan-all.ts';
import { callData } from '../support/evm/anvil.ts';
import { FORWARDER } from '../support/evm/compiled.ts';
import { type Alteration, WITHOUT_TRACES } from '../support/nodes/altered-node.ts';
import { openOnTwoNodes } from './two-nodes.ts';

const TIMEOUT = 300_000;
const FINAL = 70;
const ETHER = 10n ** 18n;
const STRANGER = `0x${'5e'.repeat(20)}`;
type Json = Record<string, unknown>;

test.each(['the one that is read', 'the other one'])(
  'ether of a contract counts where one node shows the call and the other the balance: %s shows no calls',
  { timeout: TIMEOUT },
  async (which) => {
    const isRead = which === 'the one that is read';
    const { service: other, close } = await openOnTwoNodes(isRead ? { read: WITHOUT_TRACES } : { other: WITHOUT_TRACES });
    try {
      const { id, address } = await other.owe('ETH', 300_00n);
      const input = callData(FORWARDER, 'halves(address)', address);
      await other.anvil.send({ to: other.anvil.forwarder, input, value: ETHER / 10n });
      await other.mine(FINAL);
      const { rows } = await other.db.query({ text: 'select denied, reason from unconfirmed_blocks' });
      expect([await other.status(id), rows]).toEqual(['succeeded', []]);
    } finally {
      await close();
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
  const { service: other, close } = await openOnTwoNodes({ read: raised(balance) });
  try {
    const { id, address } = await other.owe('ETH', 300_00n);
    Object.assign(balance, { address, from: Number(await other.anvil.rpc<string>('eth_blockNumber')) + 1 });
    await other.anvil.send({ to: STRANGER, value: 1n });
    await other.mine(FINAL);
    const { rows: paid } = await other.db.query({ text: 'select txid from payments where transaction_id = $1', values: [id] });
    const { rows } = await other.db.query<{ denied: boolean }>({ text: 'select denied from unconfirmed_blocks' });
    expect([await other.status(id), paid, rows]).toEqual(['started', [], [{ denied: true }]]);
  } finally {
    await close();
  }
});

test('a payment that one node puts into another transaction of its block is not recorded', { timeout: TIMEOUT }, async () => {
  const moved = { from: '', to: '', address: '' };
  const { service: other, close } = await openOnTwoNodes({
    read: {
      ...WITHOUT_TRACES,
      afterwards({ method }, answer) {
        const { result } = answer as { result?: { transactions?: readonly Json[] } };
        if (!method.startsWith('eth_getBlockBy') || typeof result?.transactions?.[0] !== 'object') return answer;
        const of = (one: Json): Json =>
          one.hash === moved.from
            ? { ...one, value: '0x0' }
            : one.hash === moved.to
              ? { ...one, to: moved.address, value: `0x${(ETHER / 10n).toString(16)}` }
              : one;
        return { ...answer, result: { ...result, transactions: result.transactions.map(of) } };
      },
    },
  });
  try {
    const { id, address } = await other.owe('ETH', 300_00n);
    const paid = await other.pay('ETH', address, ETHER / 10n);
    const strangers = await other.anvil.send({ to: STRANGER, value: 1n });
    Object.assign(moved, { from: paid.hash, to: strangers.hash, address });
    await other.mine(FINAL);
    // the block is read once more when nobody lies any more
    const from = Number(await other.anvil.rpc<string>('eth_blockNumber')) - FINAL - 1;
    Object.assign(moved, { from: '', to: '' });
    await other.mine(10);
    await rescan(other.ctx, 'ETH', { fromHeight: from });
    await other.mine(1);
    const { rows } = await other.db.query({
      text: `select amount from payments where transaction_id = $1 and state = 'mined'`,
      values: [id],
    });
    expect(rows).toEqual([{ amount: String(ETHER / 10n) }]);
  } finally {
    await close();
  }
});

/** Shows neither the calls of a block nor what addresses hold. */
const SHOWS_NO_ETHER: Alteration = {
  instead(call) {
    const [asked] = call.params as readonly { readonly to?: string }[];
    if (call.method === 'eth_call' && asked?.to === undefined)
      return { error: { code: -32601, message: 'the method eth_call does not exist/is not available' } };
    return WITHOUT_TRACES.instead?.(call) ?? null;
  },
};

test('a call that the other node cannot show is one word also beside what that node denies', { timeout: TIMEOUT }, async () => {
  const made = { in: '', to: '', raised: '' };
  const hex = (wei: bigint): string => `0x${wei.toString(16)}`;
  const lying: Alteration = {
    afterwards({ method }, answer) {
      const { result } = answer as { result?: { transactions?: readonly Json[] } };
      if (method.startsWith('eth_getBlockBy') && typeof result?.transactions?.[0] === 'object') {
        const of = (one: Json): Json => (one.to === made.raised ? { ...one, value: hex(ETHER) } : one);
        return { ...answer, result: { ...result, transactions: result.transactions.map(of) } };
      }
      if (!method.startsWith('debug_trace') || !Array.isArray(answer.result)) return answer;
      const call = { type: 'CALL', from: STRANGER, to: made.to, value: hex(2n * ETHER), gas: '0x0', gasUsed: '0x0', input: '0x' };
      const of = (one: Json): Json =>
        one.txHash === made.in ? { ...one, result: { ...(one.result as Json), calls: [call] } } : one;
      return { ...answer, result: (answer.result as readonly Json[]).map(of) };
    },
  };
  const { service: other, close } = await openOnTwoNodes({ read: lying, other: SHOWS_NO_ETHER });
  try {
    const [large, raised] = [await other.owe('ETH', 5_000_00n), await other.owe('ETH', 3_000_00n)];
    const { hash } = await other.anvil.send({ to: STRANGER, value: 1n });
    await other.pay('ETH', raised.address, 1_000n);
    Object.assign(made, { in: hash, to: large.address, raised: raised.address });
    await other.mine(FINAL);
    const { rows } = await other.db.query({
      text: 'select transaction_id from payments where transaction_id = $1',
      values: [raised.id],
    });
    expect([await other.status(large.id), rows]).toEqual(['pending', []]);
  } finally {
    await close();
  }
});
