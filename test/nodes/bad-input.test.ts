// The whole watcher with a node that lies or breaks off: no crash, nothing recorded from it, an alarm that names the node and the reason,
// and when the node is honest again everything is found. Also nodes that lost their mempool or come from an old copy.
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { createSimulatedNode, type ServedNode } from '../../src/sandbox/utxo/served-node.ts';
import type { PassResult } from '../../src/worker/chain/pass-result.ts';
import { type Interruption, type Lie, Refused, type TamperedNode, tamperWith } from './tampered-node.ts';
import { type Owed, type WatchedChain, watchChain } from './watched-chain.ts';

let node: ServedNode;
let liar: TamperedNode;
let chain: WatchedChain;
async function begin(currency: 'BTC' | 'BCH' = 'BTC'): Promise<void> {
  node = await createSimulatedNode({ currency, folder: null, now: () => Date.now() });
  node.mine(3);
  liar = await tamperWith(node.url);
  chain = await watchChain(currency, liar.url, { silenceMs: 700 });
  await chain.catchUp();
}
beforeEach(() => begin());
afterEach(async () => {
  await chain.close();
  await liar.stop();
  await node.stop();
});

const flip = (hex: string, at: number): string => `${hex.slice(0, at)}${hex[at] === '0' ? '1' : '0'}${hex.slice(at + 1)}`;
const ofBlock =
  (change: (hex: string) => unknown): Lie =>
  (call, honest) =>
    call.method === 'getblock' && typeof honest === 'string' ? change(honest) : honest;
const ofTransaction =
  (change: (hex: string) => unknown): Lie =>
  (call, honest) =>
    call.method === 'getrawtransaction' && typeof honest === 'string' ? change(honest) : honest;
/** The eight bytes of the amount before a script, replaced. */
const amountAs =
  (owed: Owed, amount: string) =>
  (hex: string): string => {
    const at = hex.indexOf(owed.script.toString('hex')) - 2;
    return `${hex.slice(0, at - 16)}${amount}${hex.slice(at)}`;
  };
const on =
  (method: string, answer: Interruption): Interruption =>
  (methods, response) =>
    methods.includes(method) && answer(methods, response);
const page: Interruption = (_, response) => {
  response.writeHead(400, { 'content-type': 'text/html' }).end('<html>400 Bad Request</html>');
  return true;
};
const cut: Interruption = (_, response) => {
  response.writeHead(200, { 'content-length': '9000' }).write('{"result":"0000', () => response.destroy());
  return true;
};
const silence: Interruption = () => true;
const wrongJson: Interruption = (_, response) => {
  response.end('{"result":"00","error":null,"id":0');
  return true;
};

/** Passes twice in front of the lie; then the node is honest and the payment is where it belongs. */
async function survives(owed: Owed, reason: RegExp, found: object): Promise<void> {
  for (let i = 0; i < 2; i++) {
    const result: PassResult = await chain.watcher.pass();
    expect(result.state, 'what the watcher says of the node').not.toBe('ready');
    expect(result.reason).toMatch(reason);
    expect(result.reason).toContain(new URL(liar.url).host);
    expect(result.reason).not.toContain('secret');
    expect(result.caughtUp).toBe(false);
    expect(await chain.facts(owed)).toEqual([]);
  }
  liar.lie = null;
  liar.interrupt = null;
  await chain.catchUp();
  expect(await chain.facts(owed)).toMatchObject([found]);
}

describe('a block', () => {
  let owed: Owed;
  beforeEach(async () => {
    owed = await chain.owe();
    node.pay([{ minor: 50_000n, script: owed.script }]);
    node.mine(1);
  });
  const mined = { state: 'mined', amount: 50_000n };
  const lies: [string, RegExp, Lie][] = [
    ['whose hash does not match its header', /the header hashes to/, ofBlock((hex) => flip(hex, 8))],
    ['with a transaction that was changed', /Merkle root/, ofBlock((hex) => flip(hex, hex.length - 2))],
    ['that is cut', /cut off/, ofBlock((hex) => hex.slice(0, -40))],
    ['that is no hex', /hex/, ofBlock((hex) => `${hex.slice(0, -2)}xy`)],
    ['that is an object', /hex/, ofBlock(() => ({ hash: 'x', tx: [] }))],
    ['that is null', /hex/, ofBlock(() => null)],
  ];
  test.each(lies)('%s', async (_, reason, lie) => {
    liar.lie = lie;
    await survives(owed, reason, mined);
  });
  test('with bytes behind it is read: the Merkle root proves what it holds', async () => {
    liar.lie = ofBlock((hex) => `${hex}00`);
    expect(await chain.watcher.pass()).toMatchObject({ state: 'ready', caughtUp: true });
    expect(await chain.facts(owed)).toMatchObject([mined]);
  });
  test('that pays a negative amount', async () => {
    liar.lie = ofBlock(amountAs(owed, '00000000000000ff'));
    await survives(owed, /negative amount/, mined);
  });
  test('that pays more than can exist', async () => {
    liar.lie = ofBlock(amountAs(owed, '0140075af0750700'));
    await survives(owed, /an amount above MAX_MONEY/, mined);
  });
  test('that pays more than was paid', async () => {
    liar.lie = ofBlock(amountAs(owed, 'ffffff0000000000'));
    await survives(owed, /Merkle root/, mined);
  });
  test.each<[string, RegExp, Interruption]>([
    ['an error page in its place', /HTTP 400 without JSON/, page],
    ['an answer that is cut off', /cut off/, cut],
    ['wrong JSON', /without JSON/, wrongJson],
    ['nothing at all', /no answer for 0\.7 s/, silence],
  ])('%s', async (_, reason, answer) => {
    liar.interrupt = on('getblock', answer);
    await survives(owed, reason, mined);
  });
});

describe('the mempool', () => {
  let owed: Owed;
  beforeEach(async () => {
    owed = await chain.owe();
    node.pay([{ minor: 50_000n, script: owed.script }]);
  });
  const waiting = { state: 'mempool', amount: 50_000n };
  const lies: [string, RegExp, Lie][] = [
    ['a transaction as an object', /hex/, ofTransaction((hex) => ({ hex, vout: [{ value: 0.000000001 }] }))],
    ['a list of numbers', /list of transactions/, (call, honest) => (call.method === 'getrawmempool' ? [1, 2] : honest)],
    ['a list that is an object', /list of transactions/, (call, honest) => (call.method === 'getrawmempool' ? {} : honest)],
  ];
  test.each(lies)('%s', async (_, reason, lie) => {
    liar.lie = lie;
    await survives(owed, reason, waiting);
  });
  test.each([-32603, -1])('a transaction that it refuses with %s', async (code) => {
    liar.lie = (call, honest) => (call.method === 'getrawtransaction' ? new Refused(code, 'internal error') : honest);
    await survives(owed, /getrawtransaction: internal error/, waiting);
  });
  test('a transaction that it lists and once does not have is asked for again', async () => {
    let refused = 0;
    liar.lie = (call, honest) =>
      call.method === 'getrawtransaction' && refused++ === 0 ? new Refused(-5, 'No such mempool transaction') : honest;
    expect(await chain.watcher.pass()).toMatchObject({ state: 'ready', caughtUp: false });
    expect(await chain.facts(owed)).toEqual([]);
    expect(await chain.watcher.pass()).toMatchObject({ state: 'ready', caughtUp: true });
    expect(await chain.facts(owed)).toMatchObject([waiting]);
  });
  test('a transaction that it lists pass by pass and never has', async () => {
    liar.lie = (call, honest) => (call.method === 'getrawtransaction' ? new Refused(-5, 'No such mempool transaction') : honest);
    for (let i = 0; i < 3; i++) expect(await chain.watcher.pass()).toMatchObject({ state: 'ready', caughtUp: false });
    await survives(owed, /lists transaction [0-9a-f]{64}, and \d+ times in a row it said that it does not have it/, waiting);
  });
  const damages: [string, (hex: string) => string][] = [
    ['of another name', (hex) => flip(hex, 1)],
    ['that are cut', (hex) => hex.slice(0, -6)],
    ['with a negative amount', (hex) => amountAs(owed, '00000000000000ff')(hex)],
    ['with a raised amount', (hex) => amountAs(owed, 'ffffff0000000000')(hex)],
  ];
  test.each(damages)(
    'a transaction with bytes %s is read from the node’s decoded answer, which its txid proves',
    async (_, damage) => {
      liar.lie = ofTransaction(damage);
      expect(await chain.watcher.pass()).toMatchObject({ state: 'ready', caughtUp: true, alarms: [] });
      expect(await chain.facts(owed)).toMatchObject([waiting]);
    },
  );
  test.each(damages)(
    'a transaction with bytes %s, and a wrong decoded answer, holds up nothing and is reported',
    async (_, damage) => {
      const other = await chain.owe();
      const good = node.pay([{ minor: 60_000n, script: other.script }])?.txid;
      liar.lie = (call, honest) => {
        if (call.method !== 'getrawtransaction' || call.params[0] === good) return honest;
        return typeof honest === 'string' ? damage(honest) : { ...(honest as object), locktime: 77 };
      };
      for (let i = 0; i < 2; i++) {
        const { state, caughtUp, alarms } = await chain.watcher.pass();
        expect([state, caughtUp]).toEqual(['ready', true]);
        expect(alarms).toEqual([expect.stringMatching(/transaction [0-9a-f]{64} cannot be read: .*the transaction hashes to/)]);
      }
      expect(await chain.facts(owed)).toEqual([]);
      expect(await chain.facts(other)).toMatchObject([{ state: 'mempool', amount: 60_000n }]);
      liar.lie = null;
      await chain.catchUp();
      expect(await chain.facts(owed)).toMatchObject([waiting]);
    },
  );
  test.each<[string, RegExp, Interruption]>([
    ['an error page in its place', /HTTP 400 without JSON/, page],
    ['an answer that is cut off', /cut off/, cut],
    ['nothing at all', /no answer for 0\.7 s/, silence],
  ])('%s', async (_, reason, answer) => {
    liar.interrupt = on('getrawmempool', answer);
    await survives(owed, reason, waiting);
  });
});

test('a time of the first sight that is none is not believed', async () => {
  const owed = await chain.owe();
  node.pay([{ minor: 50_000n, script: owed.script }]);
  liar.lie = (call, honest) => (call.method === 'getmempoolentry' ? { time: 'yesterday' } : honest);
  await chain.catchUp();
  expect(await chain.facts(owed)).toMatchObject([{ state: 'mempool' }]);
});

test('a pruned node says what it cannot do', async () => {
  const owed = await chain.owe();
  node.pay([{ minor: 50_000n, script: owed.script }]);
  node.mine(1);
  liar.interrupt = on('getblock', (_, response) => {
    response.writeHead(500).end('{"result":null,"error":{"code":-1,"message":"Block not available (pruned data)"},"id":0}');
    return true;
  });
  expect(await chain.watcher.pass()).toMatchObject({ state: 'pruned' });
  await survives(owed, /is pruned and no longer has what we need/, { state: 'mined' });
  liar.lie = (call, honest) =>
    call.method === 'getblockchaininfo' ? { ...(honest as object), pruned: true, pruneheight: 2 } : honest;
  expect(await chain.ctx.ports.chains.get('BTC')?.condition()).toMatchObject({ state: 'ready', prunedBelow: 2 });
});

test('a double-spend proof is an alarm; the payment waits for the chain like every other', async () => {
  await chain.close();
  await liar.stop();
  await node.stop();
  await begin('BCH');
  const owed = await chain.owe();
  const txid = node.pay([{ minor: 50_000n, script: owed.script }])?.txid as string;
  liar.lie = (call, honest) => (call.method === 'getdsproof' ? { dspid: 'ab'.repeat(32), txid } : honest);
  expect((await chain.catchUp()).alarms).toEqual([expect.stringMatching(`payment ${txid} of ${owed.id}: .*signed for twice`)]);
  expect(await chain.facts(owed)).toMatchObject([{ state: 'mempool' }]);
  node.mine(1);
  expect((await chain.catchUp()).alarms).toEqual([]);
  expect(await chain.facts(owed)).toMatchObject([{ state: 'mined' }]);
});

test('tokens at an address of ours are reported, and neither they nor the BCH under them are booked', async () => {
  await chain.close();
  await liar.stop();
  await node.stop();
  await begin('BCH');
  const owed = await chain.owe();
  const category = 'cd'.repeat(32);
  const token = Buffer.concat([Buffer.from([0xef]), Buffer.from(category, 'hex'), Buffer.from([0x10, 5])]);
  const sent = node.pay([{ minor: 50_000n, script: Buffer.concat([token, owed.script]) }]);
  node.mine(1);
  const { alarms } = await chain.watcher.pass();
  expect(alarms).toEqual([
    expect.stringMatching(`^${sent?.txid}:\\d in block .* \\(category ${category}, 5 units, on 50000 base units`),
  ]);
  expect(await chain.facts(owed)).toEqual([]);
  expect((await chain.watcher.pass()).alarms).toEqual([]);
});
