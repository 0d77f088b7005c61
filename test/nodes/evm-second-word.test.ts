// Two nodes on Ethereum's chain that hold the same blocks, and of which one says that a block pays us what the other does not show: nothing of that
// is credited, everything else is, and while the other cannot say, nothing large is.
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { readChainStatus } from '../../src/store/chain/node-conditions.ts';
import { type Alteration, type Receipt, receipts } from '../support/nodes/altered-node.ts';
import { openOnTwoNodes, type TwoNodes } from './two-nodes.ts';

const TIMEOUT = 300_000;
const FINAL = 70;
const ETHER = 10n ** 18n;
const LATER_MS = 61_000;
const TRANSFER = '0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef';
const STRANGER = `0x${'5e'.repeat(20)}`;
type Json = Record<string, unknown>;
type Log = Receipt['logs'][number];
let nodes: TwoNodes;
let liar: TwoNodes['read'];
let honest: TwoNodes['other'];
let service: TwoNodes['service'];

beforeAll(async () => {
  nodes = await openOnTwoNodes();
  ({ service, read: liar, other: honest } = nodes);
}, TIMEOUT);
afterAll(() => nodes?.close(), TIMEOUT);
afterEach(async () => {
  liar.alter({});
  honest.alter({});
  // what was unconfirmed is asked about again, and what was read of the newest blocks is forgotten
  for (let look = 0; look < 2; look++) {
    await service.work(LATER_MS);
    await service.mine(10);
  }
  expect(await unconfirmed()).toEqual([]);
  expect(await service.findings()).toEqual([]);
}, TIMEOUT);

const word = (address: string): string => `0x${address.slice(2).padStart(64, '0')}`;
const hex = (amount: bigint): string => `0x${amount.toString(16)}`;
const transferLog = (to: string, amount: bigint, { blockHash }: Receipt): Json => ({
  address: service.anvil.token,
  topics: [TRANSFER, word(STRANGER), word(to)],
  data: word(hex(amount)),
  blockHash,
  removed: false,
});
/** A stranger's transaction, which a node may say anything about. */
const strangers = async (): Promise<string> => (await service.anvil.send({ to: STRANGER, value: 1n })).hash;
async function unconfirmed(): Promise<readonly { readonly currency: string; readonly denied: boolean }[]> {
  const { rows } = await service.db.query<{ currency: string; denied: boolean }>({
    text: 'select currency, denied from unconfirmed_blocks order by currency, height, denied',
  });
  return rows;
}
const told = async (currency: string): Promise<string> =>
  (await readChainStatus(service.db)).find((one) => one.currency === currency)?.others.join('; ') ?? '';
async function payments(id: string): Promise<readonly bigint[]> {
  const { rows } = await service.db.query<{ amount: string }>({
    text: `select amount from payments where transaction_id = $1 and state = 'mined' order by amount`,
    values: [id],
  });
  return rows.map(({ amount }) => BigInt(amount));
}

test('a made-up event of the token is not recorded, whatever it is worth, and the contradiction is told', {
  timeout: TIMEOUT,
}, async () => {
  const [small, large] = [await service.owe('USDT', 20_00n), await service.owe('USDT', 5_000_00n)];
  const txid = await strangers();
  liar.alter(
    receipts((one) =>
      one.transactionHash === txid
        ? { ...one, logs: [transferLog(small.address, 20_000_000n, one), transferLog(large.address, 5_000_000_000n, one)] }
        : one,
    ),
  );
  await service.mine(FINAL);
  expect([await payments(small.id), await payments(large.id)]).toEqual([[], []]);
  expect(await unconfirmed()).toEqual([{ currency: 'USDT', denied: true }]);
  await service.work(2_000);
  await service.settle();
  expect(await told('USDT')).toMatch(/contradiction: .* shows in block \w+ what .* does not: 20000000 base units in 0x\w+ to 0x/);
});

test('of two equal events that one node shows only the true one counts', { timeout: TIMEOUT }, async () => {
  const { id, address } = await service.owe('USDT', 30_00n);
  await service.pay('USDT', address, 30_000_000n);
  const isOurs = ({ topics }: Log): boolean => topics[2] === word(address);
  liar.alter(receipts((one) => ({ ...one, logs: one.logs.flatMap((log) => (isOurs(log) ? [log, log] : [log])) })));
  await service.mine(FINAL);
  expect([await payments(id), await service.status(id)]).toEqual([[30_000_000n], 'succeeded']);
});

test('a raised value is not recorded, also where nobody but the sender knows better', { timeout: TIMEOUT }, async () => {
  const { id, address } = await service.owe('ETH', 3_000_00n);
  await service.pay('ETH', address, ETHER / 1_000n);
  liar.alter({
    afterwards({ method }, answer) {
      const { result } = answer as { result?: { transactions?: readonly Json[] } };
      if (!method.startsWith('eth_getBlockBy') || result?.transactions === undefined) return answer;
      const of = (one: Json): Json => (one.to === address ? { ...one, value: hex(ETHER) } : one);
      return { ...answer, result: { ...result, transactions: result.transactions.map(of) } };
    },
  });
  await service.mine(FINAL);
  expect([await payments(id), await service.status(id)]).toEqual([[], 'started']);
  // what was really paid is recorded as soon as both say it
  liar.alter({});
  await service.mine(10);
  await service.work(LATER_MS);
  await service.settle();
  expect(await payments(id)).toEqual([ETHER / 1_000n]);
});

test('a made-up call of a contract is not recorded', { timeout: TIMEOUT }, async () => {
  const { id, address } = await service.owe('ETH', 300_00n);
  const txid = await strangers();
  liar.alter({
    afterwards({ method }, answer) {
      if (!method.startsWith('debug_trace')) return answer;
      const call = { type: 'CALL', from: STRANGER, to: address, value: hex(ETHER), gas: '0x0', gasUsed: '0x0', input: '0x' };
      const of = (one: Json): Json =>
        one.txHash === txid ? { ...one, result: { ...(one.result as Json), calls: [call] } } : one;
      return { ...answer, result: (answer.result as readonly Json[]).map(of) };
    },
  });
  await service.mine(FINAL);
  expect([await payments(id), await unconfirmed()]).toEqual([[], [{ currency: 'ETH', denied: true }]]);
});

/** Nothing is made up any more, and nothing that was read of blocks is remembered. */
async function forgetful(): Promise<void> {
  liar.alter({});
  await service.mine(10);
}

/** It answers everything but what is in blocks. */
const SAYS_NOTHING: Alteration = {
  instead: ({ method }) =>
    /ByHash$|Receipts?$|^debug_|^trace_/.test(method) ? { error: { code: -32005, message: 'limit exceeded' } } : null,
};

test('while the other node cannot say, small payments are credited and large ones wait, over a restart too', {
  timeout: TIMEOUT,
}, async () => {
  honest.alter(SAYS_NOTHING);
  const [small, large] = [await service.owe('USDT', 20_00n), await service.owe('USDT', 5_000_00n)];
  await service.pay('USDT', small.address, 20_000_000n);
  await service.pay('USDT', large.address, 5_000_000_000n);
  await service.mine(FINAL);
  await service.restartWatchers();
  await service.mine(2);
  expect([await service.status(small.id), await service.status(large.id)]).toEqual(['succeeded', 'pending']);
  expect(await told('USDT')).toMatch(
    /unconfirmed: what block \d+ pays is one node's word, and nothing large of it is booked: .*limit exceeded/,
  );
  honest.alter({});
  await service.work(LATER_MS);
  await service.settle();
  await service.settle();
  expect([await service.status(large.id), await unconfirmed(), await told('USDT')]).toEqual(['succeeded', [], '']);
});

test('a block of which the other node can never say what it pays holds up nothing in other blocks', {
  timeout: TIMEOUT,
}, async () => {
  const [held, free] = [await service.owe('USDT', 5_000_00n), await service.owe('USDT', 5_000_00n)];
  await service.pay('USDT', held.address, 5_000_000_000n);
  honest.alter(SAYS_NOTHING);
  await service.mine();
  const { hash } = await service.anvil.rpc<{ hash: string }>('eth_getBlockByNumber', 'latest', false);
  honest.alter({
    instead: ({ params }) => (params[0] === hash ? { error: { code: -32005, message: 'limit exceeded' } } : null),
  });
  for (let n = 0; n < 6; n++) {
    await service.work(LATER_MS);
    await service.mine();
  }
  await service.pay('USDT', free.address, 5_000_000_000n);
  await service.mine(FINAL);
  expect([await service.status(held.id), await service.status(free.id)]).toEqual(['pending', 'succeeded']);
  expect(await service.findings()).toEqual([]);
});

test.each(['the other node denies it', 'neither node shows it'])(
  'what is no payment later is taken back: %s',
  {
    timeout: TIMEOUT,
  },
  async (later) => {
    honest.alter(SAYS_NOTHING);
    const { id, address } = await service.owe('USDT', 5_000_00n);
    const txid = await strangers();
    liar.alter(
      receipts((one) => (one.transactionHash === txid ? { ...one, logs: [transferLog(address, 5_000_000_000n, one)] } : one)),
    );
    await service.mine(FINAL);
    expect([await payments(id), await service.status(id)]).toEqual([[5_000_000_000n], 'pending']);
    honest.alter({});
    const isDenied = later === 'the other node denies it';
    if (!isDenied) await forgetful();
    await service.work(LATER_MS);
    await service.settle();
    expect([await payments(id), await unconfirmed()]).toEqual([[], isDenied ? [{ currency: 'USDT', denied: true }] : []]);
  },
);

test('a true payment that the other node hides is recorded when it shows it', { timeout: TIMEOUT }, async () => {
  const { id, address } = await service.owe('USDT', 40_00n);
  await service.pay('USDT', address, 40_000_000n);
  honest.alter(receipts((one) => ({ ...one, logs: one.logs.filter(({ topics }) => topics[2] !== word(address)) })));
  await service.mine(FINAL);
  expect([await payments(id), await unconfirmed()]).toEqual([[], [{ currency: 'USDT', denied: true }]]);
  honest.alter({});
  await service.mine(10);
  await service.work(LATER_MS);
  await service.settle();
  await service.settle();
  expect([await payments(id), await service.status(id), await unconfirmed()]).toEqual([[40_000_000n], 'succeeded', []]);
});
