// Every way in which a node can fail has its own state, and nothing is read from it meanwhile: a server that answers wrongly on purpose. A
// real bitcoind is in bitcoind-node.test.ts.
import { describe, expect, test } from 'vitest';
import { stuckAfterMs } from '../../src/outside/utxo/node/condition.ts';
import { createUtxoNode } from '../../src/outside/utxo/node/node.ts';
import {
  type Answers,
  badNode,
  blocks,
  clock,
  closeAfterEach,
  fromTable,
  GENESIS,
  info,
  opened,
  type Reply,
  sound,
  TIP,
} from './bad-node.ts';

closeAfterEach();

describe('the node as a whole', () => {
  test.each<[string, string, RegExp, Reply]>([
    ['a work queue that is full', 'busy', /503/, (_, __, r) => r.writeHead(503).end('Work queue depth exceeded')],
    ['another password', 'unauthorized', /password/, (_, __, r) => r.writeHead(401).end()],
    [
      'an HTML error page',
      'bad_answer',
      /HTTP 400 without JSON: <html>/,
      (_, __, r) => r.writeHead(400).end('<html>Bad Request</html>'),
    ],
    ['JSON that ends too early', 'bad_answer', /without JSON/, (_, __, r) => r.end('[{"id":0,"result":{"blo')],
    [
      'a connection cut within the answer',
      'bad_answer',
      /cut off/,
      (_, __, r) => r.writeHead(200, { 'content-length': '500' }).write('{"resu', () => r.destroy()),
    ],
    ['a connection closed without an answer', 'down', /127\.0\.0\.1/, (request) => request.socket.destroy()],
    ['nothing at all', 'down', /no answer for 0\.5 s/, () => undefined],
    [
      'a body that stops',
      'down',
      /no answer for 0\.5 s/,
      (_, __, r) => r.writeHead(200, { 'content-length': '500' }).write('{"resu'),
    ],
    [
      'a byte now and then',
      'down',
      /an answer does not end: \d+ bytes in 1 s/,
      (_, __, r) => {
        const drip = setInterval(() => r.write(' '), 100);
        r.on('close', () => clearInterval(drip));
      },
    ],
    [
      'headers that do not end',
      'down',
      /no answer for 0\.5 s/,
      (request) => {
        request.socket.write('HTTP/1.1 200 OK\r\nX-A: ');
        const drip = setInterval(() => request.socket.write('a'), 100);
        request.socket.on('close', () => clearInterval(drip));
      },
    ],
    ['an answer of another form', 'bad_answer', /neither|array/, (_, __, r) => r.end('"fine"')],
    [
      'a batch that answers what was not asked',
      'bad_answer',
      /not asked/,
      (_, __, r) => r.end('[{"id":9,"result":1,"error":null}]'),
    ],
    ['a batch that leaves calls out', 'bad_answer', /unanswered/, (_, __, r) => r.end('[{"id":1,"result":1,"error":null}]')],
    [
      'warming up',
      'warming_up',
      /Loading block index/,
      (_, __, r) => r.writeHead(500).end('{"result":null,"error":{"code":-28,"message":"Loading block index…"},"id":0}'),
    ],
    ['another chain', 'wrong_network', /first block/, fromTable({ ...sound, getblockhash: blocks('cd'.repeat(32)) })],
    [
      'blocks that it knows and has not read',
      'syncing',
      /7 of 90 blocks/,
      fromTable({ ...sound, getblockchaininfo: { ...info, headers: 90 } }),
    ],
    ['a height that is none', 'bad_answer', /height/, fromTable({ ...sound, getblockchaininfo: { ...info, blocks: -1 } })],
    [
      'more blocks than it has',
      'bad_answer',
      /claims 12 blocks, and does not have the last one/,
      fromTable({ ...sound, getblockchaininfo: { ...info, blocks: 12, headers: 12 } }),
    ],
    [
      'a last block that is another one',
      'bad_answer',
      /claims 7 blocks, and does not have the last one/,
      fromTable({ ...sound, getblockchaininfo: { ...info, bestblockhash: 'ef'.repeat(32) } }),
    ],
    [
      'a hash that is none',
      'bad_answer',
      /block hash/,
      fromTable({ ...sound, getblockchaininfo: { ...info, bestblockhash: 'x' } }),
    ],
  ])('%s is %s', async (_, state, reason, reply) => {
    const node = await badNode(reply);
    const condition = await node.condition();
    expect(condition).toMatchObject({ state, reason: expect.stringMatching(reason) });
    expect(JSON.stringify(condition)).not.toContain('secret');
  });

  test('all is well', async () => {
    const node = await badNode(fromTable(sound));
    expect(await node.condition()).toMatchObject({ state: 'ready', height: 7, hash: TIP, peers: 8 });
  });

  const mainGenesis = '000000000019d6689c085ae165831e934ff763ae46a2a6c172b3f1b60a8ce26f';
  test('an old tip is stuck, initial block download is syncing; on a regtest chain neither means anything', async () => {
    const old = { ...sound, getblockhash: blocks(mainGenesis), getblockheader: { time: Math.floor(Date.now() / 1000) - 12_001 } };
    expect(await (await badNode(fromTable(old), 'mainnet')).condition()).toMatchObject({
      state: 'stuck',
      height: 7,
      reason: expect.stringMatching(/the tip is 200 min old, with 8 peers/),
    });
    const loading = { ...old, getblockchaininfo: { ...info, initialblockdownload: true } };
    expect(await (await badNode(fromTable(loading), 'mainnet')).condition()).toMatchObject({ state: 'syncing' });
    const own = await badNode(fromTable({ ...loading, getblockhash: blocks(GENESIS), getconnectioncount: 0 }));
    expect(await own.condition()).toMatchObject({ state: 'ready' });
  });

  test('a currency’s usual gaps are no trouble: of a healthy chain, at two thirds of its pace, less than one alarm in ten years', async () => {
    const late = { ...sound, getblockhash: blocks(mainGenesis), getblockheader: { time: Math.floor(Date.now() / 1000) - 6_001 } };
    expect(await (await badNode(fromTable(late), 'mainnet')).condition()).toMatchObject({ state: 'ready' });
    for (const blockSeconds of [60, 150, 157.5, 600]) {
      const slowly = blockSeconds * 1.5 * 1000;
      const gaps = (10 * 365.25 * 86_400_000) / slowly;
      expect(gaps * Math.exp(-stuckAfterMs(blockSeconds) / slowly)).toBeLessThan(1);
    }
  });

  test('headers of blocks that one peer keeps back are no syncing; those of many are', async () => {
    const ahead = { ...sound, getblockhash: blocks(mainGenesis), getblockchaininfo: { ...info, headers: info.blocks + 2 } };
    const peer = (synced_headers: number, inbound = false) => ({ inbound, synced_headers });
    const ask = async (getpeerinfo: unknown) => (await badNode(fromTable({ ...ahead, getpeerinfo }), 'mainnet')).condition();
    const level = [peer(info.blocks), peer(info.blocks), peer(info.blocks), peer(-1)];
    expect(await ask([...level, peer(info.blocks + 2)])).toMatchObject({ state: 'ready' });
    // whoever opens many connections to us has no more to say
    expect(await ask([...level, ...Array.from({ length: 20 }, () => peer(info.blocks + 2, true))])).toMatchObject({
      state: 'ready',
    });
    expect(await ask(level.map(() => peer(info.blocks + 2)))).toMatchObject({ state: 'syncing' });
    expect(await ask([peer(-1)])).toMatchObject({ state: 'syncing' });
    expect(await ask(undefined)).toMatchObject({ state: 'syncing' });
  });

  test('one that is cut off from all its peers is not ready, whatever it says of its tip', async () => {
    const alone = { ...sound, getblockhash: blocks(mainGenesis), getconnectioncount: 0 };
    const ask = async (answers: Answers) => (await badNode(fromTable(answers), 'mainnet')).condition();
    const noPeers = expect.stringMatching(/it has no peers$/);
    expect(await ask({ ...alone, getconnectioncount: 1 })).toMatchObject({ state: 'ready' });
    expect(await ask(alone)).toMatchObject({ state: 'stuck', reason: noPeers });
    const old = { time: Math.floor(Date.now() / 1000) - 5 * 3600 };
    expect(await ask({ ...alone, getblockheader: old })).toMatchObject({ state: 'stuck', reason: noPeers });
    const behind = { ...info, headers: 57 };
    expect(await ask({ ...alone, getblockchaininfo: behind })).toMatchObject({ state: 'syncing', reason: noPeers });
    // a node that does not say how many it has is not said to have none
    const { getconnectioncount: _, ...silent } = alone;
    expect(await ask(silent)).toMatchObject({ state: 'ready' });
  });

  test('Bitcoin, Bitcoin Cash, Bitcoin SV and eCash begin with the same blocks, and are told apart by the first ones that they do not share', async () => {
    const BCH = [
      [478_559, '000000000000000000651ef99cb9fcbe0dadde1d424bd9f15ff20136191a5eec'],
      [556_767, '0000000000000000004626ff6e3b936941d341c5932ece4357eeccac44e6d56c'],
      [661_648, '0000000000000000029e471c41818d24b8b74c911071c4ef0b4a0509f9b5a8ce'],
    ] as const;
    const BTC = [[478_559, '00000000000000000019f112ec0a9982926f1258cdcc558dd7c3b7e5dc7fa148']] as const;
    const BSV = [BCH[0], [556_767, '000000000000000001d956714215d96ffc00e0afda4cd0a96c96f8d802b1662b']] as const;
    const ECASH = [BCH[0], BCH[1], [661_648, '000000000000000004284c9d8b2c8ff731efeaec6be50729bdc9bd07f910757d']] as const;
    type Blocks = readonly (readonly [number, string])[];
    const as = async (chain: Blocks, currency: 'BTC' | 'BCH', height = 900_000) => {
      const long = { ...sound, getblockchaininfo: { ...info, blocks: height, headers: height } };
      const hashes = blocks(mainGenesis, ...chain.map(([at, hash]): [number, string] => [at, hash]), [height, TIP]);
      return (await badNode(fromTable({ ...long, getblockhash: hashes }), 'mainnet', currency)).condition();
    };
    expect(await as(BTC, 'BTC')).toMatchObject({ state: 'ready' });
    expect(await as(BCH, 'BCH')).toMatchObject({ state: 'ready' });
    for (const [chain, currency, height] of [
      [BCH, 'BTC', 478_559],
      [BTC, 'BCH', 478_559],
      [BSV, 'BCH', 556_767],
      [ECASH, 'BCH', 661_648],
    ] as const) {
      const found = chain.find(([at]) => at === height)?.[1];
      const reason = expect.stringMatching(`its block ${height} is ${found}, the one of ${currency} is`);
      expect(await as(chain, currency)).toMatchObject({ state: 'wrong_network', reason });
    }
    // before they part they are one chain
    expect(await as(BSV, 'BCH', 556_000)).toMatchObject({ state: 'ready' });
  });

  test('nobody listens', async () => {
    const node = await badNode(() => undefined);
    const { url } = node;
    await opened.splice(0)[0]?.();
    const gone = createUtxoNode({ currency: 'BTC', url, network: 'regtest', clock });
    expect(await gone.condition()).toMatchObject({ state: 'down', reason: expect.stringMatching(/ECONNREFUSED/) });
    await gone.close();
  });
});
