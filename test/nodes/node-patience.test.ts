// Nodes that are slow or fail beside a healthy one: they hold up neither a look nor a sending, and they are named.
import type { ServerResponse } from 'node:http';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createNodeGroup } from '../../src/outside/utxo/node/group.ts';
import { createUtxoNode } from '../../src/outside/utxo/node/node.ts';
import type { CoreDaemon } from '../support/core-daemon.ts';
import { eventually } from '../support/service.ts';
import { Refused, tamperWith } from './tampered-node.ts';
import { clock, copyBlocks, host, node, startTwoBitcoinds } from './two-bitcoinds.ts';

let a: CoreDaemon;
let b: CoreDaemon;
beforeAll(async () => {
  [a, b] = await startTwoBitcoinds();
});
afterAll(() => Promise.all([a?.remove(), b?.remove()]));

test('one that answers a byte now and then holds nobody up while the other is healthy', async () => {
  const liar = await tamperWith(a.url);
  const url = liar.url;
  const group = createNodeGroup([createUtxoNode({ currency: 'BTC', url, network: 'regtest', clock }), node(b)], {
    clock,
    patienceMs: 200,
  });
  try {
    expect(await group.condition()).toMatchObject({ node: new URL(url).host });
    liar.interrupt = (_, response) => {
      const drip = setInterval(() => response.write(' '), 100);
      response.on('close', () => clearInterval(drip));
      return true;
    };
    const beganMs = Date.now();
    const others = [expect.stringMatching(`down: ${new URL(url).host}: no answer yet`)];
    expect(await group.condition()).toMatchObject({ state: 'ready', node: host(b), others });
    expect(Date.now() - beganMs).toBeLessThan(5_000);
    expect(await group.hashAt(1)).toBe(await b.rpc('getblockhash', 1));
  } finally {
    await group.close();
    await liar.stop();
  }
});
test('a standby a block ahead that drips its answers holds up neither a look nor a sending, is named, and counts once it answers', async () => {
  await copyBlocks(b, a);
  await copyBlocks(a, b);
  await b.mine(1);
  const liar = await tamperWith(b.url);
  const standby = createUtxoNode({ currency: 'BTC', url: liar.url, network: 'regtest', clock, silenceMs: 30_000 });
  const [pair, three] = [
    createNodeGroup([node(a), standby], { clock, patienceMs: 1_000 }),
    createNodeGroup([node(a), standby, node(b)], { clock, patienceMs: 1_000 }),
  ];
  const dripping: ServerResponse[] = [];
  const height = await a.rpc<number>('getblockcount');
  const hash = await a.rpc<string>('getblockhash', height);
  try {
    liar.interrupt = (methods, response) => {
      if (methods.length > 1) return false;
      dripping.push(response);
      response.write(' ');
      const drip = setInterval(() => response.write(' '), 1_000);
      response.on('close', () => clearInterval(drip));
      return true;
    };
    const named = [expect.stringMatching(`${standby.name}: no answer (within 1 s|yet)$`)];
    const beganMs = performance.now();
    expect(await pair.condition()).toMatchObject({ node: host(a), agreement: { state: 'unknown' }, others: named });
    expect(await pair.condition()).toMatchObject({ node: host(a), agreement: { state: 'unknown' }, others: named });
    expect(dripping).toHaveLength(1);
    // two honest nodes agree all the same
    expect(await three.condition()).toMatchObject({ node: host(a), agreement: { state: 'agreed', height }, others: named });
    const raw = Buffer.from(await a.rpc<string>('getrawtransaction', await a.pay(await a.address(), '0.1')), 'hex');
    expect(await pair.send(raw)).toEqual({ state: 'accepted' });
    expect(await pair.send(raw.subarray(1))).toMatchObject({ state: 'invalid', reason: expect.stringContaining(host(a)) });
    expect(performance.now() - beganMs).toBeLessThan(15_000);
    dripping[0]?.end(JSON.stringify({ id: 0, result: hash, error: null }));
    await eventually('its late answer counts', async () => {
      const condition = await pair.condition();
      return condition.state === 'ready' && condition.agreement?.state === 'agreed' ? condition : null;
    });
  } finally {
    await Promise.all([pair.close(), three.close()]);
    await liar.stop();
    await copyBlocks(b, a);
  }
});

test('a standby that hangs is told once, and once more with the reason', async () => {
  const liar = await tamperWith(b.url);
  const standby = createUtxoNode({ currency: 'BTC', url: liar.url, network: 'regtest', clock, silenceMs: 1_000 });
  const group = createNodeGroup([node(a), standby], { clock, patienceMs: 200 });
  try {
    expect(await group.condition()).not.toHaveProperty('others');
    liar.interrupt = () => true;
    const told: string[] = [];
    for (const beganMs = performance.now(); performance.now() - beganMs < 5_000; ) {
      const condition = await group.condition();
      const [what = ''] = condition.state === 'ready' ? (condition.others ?? []) : [condition.reason];
      if (told.at(-1) !== what) told.push(what);
    }
    expect(told).toEqual([`down: ${standby.name}: no answer yet`, `down: ${standby.name}: no answer for 1 s`]);
    liar.interrupt = null;
    await eventually('it is ready again', async () => {
      const condition = await group.condition();
      return condition.state === 'ready' && condition.agreement?.state === 'agreed' ? condition : null;
    });
  } finally {
    await group.close();
    await liar.stop();
  }
});

test('a standby that fails when it is compared is named', async () => {
  const height = await a.rpc<number>('getblockcount');
  await b.mine(1);
  const liar = await tamperWith(b.url);
  liar.lie = ({ method, params }, honest) =>
    method === 'getblockhash' && params[0] === height ? new Refused(-1, 'out of order') : honest;
  const group = createNodeGroup([node(a), createUtxoNode({ currency: 'BTC', url: liar.url, network: 'regtest', clock })], {
    clock,
  });
  try {
    const others = [expect.stringMatching(/^failed: .*out of order/)];
    expect(await group.condition()).toMatchObject({ node: host(a), agreement: { state: 'unknown' }, others });
  } finally {
    await group.close();
    await liar.stop();
    await copyBlocks(b, a);
  }
});
