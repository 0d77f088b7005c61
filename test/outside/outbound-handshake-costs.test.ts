// What the certificates of a merchant's host cost here: their signatures are checked in one piece, in the process that watches the chains.
import { expect, test } from 'vitest';
import type { OutboundResult } from '../../src/core/outbound.ts';
import { CLOCKS, handshakeCosts, UNWATCHED, type Watch } from '../../src/outside/outbound/handshake-costs.ts';
import { createOutbound } from '../../src/outside/outbound/outbound.ts';
import { publicInternet } from '../../src/outside/outbound/policy.ts';
import { dearServer } from './dear-server.ts';
import { asking, opened, outboundServersForEach } from './outbound-servers.ts';

outboundServersForEach();

/** As a machine that takes four times as long: a fast one checks as many signatures as may come in less than what is dear. */
const SLOWLY: Watch = {
  ...UNWATCHED,
  compute(_, part) {
    const beganMs = CLOCKS.cpuMs();
    part();
    const untilMs = beganMs + 4 * (CLOCKS.cpuMs() - beganMs);
    while (CLOCKS.cpuMs() < untilMs);
  },
};

test.each(['TLSv1.2', 'TLSv1.3'] as const)('certificates that take long to check are checked once (%s)', async (maxVersion) => {
  const { port, connections } = await dearServer(maxVersion);
  const policy = { ...publicInternet([port], async () => [{ address: '127.0.0.1', family: 4 }]), allows: () => true };
  const outbound = opened(createOutbound(policy, SLOWLY));
  const call = (n: number): Promise<OutboundResult> =>
    outbound.call({ ...asking, connectionsOf: `wh_${n}`, url: `https://localhost:${port}/` });

  const atOnce = await Promise.all([call(1), call(2), call(3), call(4)]);
  expect(atOnce.map((result) => (result.kind === 'failed' ? result.reason : '')).toSorted()).toEqual([
    'CERT_SIGNATURE_FAILURE',
    ...Array.from({ length: 3 }, () => 'ERR_TLS_HANDSHAKE_TOO_DEAR'),
  ]);
  const before = connections();
  expect(await call(5)).toMatchObject({ kind: 'failed', failure: 'connection_failed', reason: 'ERR_TLS_HANDSHAKE_TOO_DEAR' });
  expect(connections()).toBe(before);
});

/** Costs by clocks that the test moves. */
function costs(watch: Watch = UNWATCHED) {
  let [cpu, now] = [0, 0];
  const begin = handshakeCosts(watch, { cpuMs: () => cpu, nowMs: () => now });
  const handshakeWith = (host: string, merchantId: bigint | null = null) => begin(host, merchantId);
  return {
    handshakeWith,
    taking: (ms: number) => (): void => {
      cpu += ms;
    },
    pass(ms: number): void {
      now += ms;
    },
  };
}

test('a host rests a thousand times as long as it was computed with, and no other does', () => {
  const { handshakeWith, taking, pass } = costs();
  const first = handshakeWith('one.example:443');
  const underWay = handshakeWith('one.example:443');
  first.compute(taking(19));
  expect(underWay.isRefused()).toBe(false);
  first.compute(taking(20));
  // it ends by itself
  expect(first.isRefused()).toBe(false);
  expect(underWay.isRefused()).toBe(true);
  expect(handshakeWith('one.example:8443').isRefused()).toBe(false);
  pass(19_999);
  expect(handshakeWith('one.example:443').isRefused()).toBe(true);
  pass(1);
  expect(handshakeWith('one.example:443').isRefused()).toBe(false);
});

test.each([
  ['in the part that it ended with', true],
  ['before that', false],
])('whoever is trusted may take as long as it does: %s', (_, isLast) => {
  const { handshakeWith, taking } = costs();
  const trusted = handshakeWith('one.example:443');
  trusted.compute(() => {
    taking(500)();
    if (isLast) trusted.end();
  });
  expect(handshakeWith('one.example:443').isRefused()).toBe(!isLast);
  trusted.end();
  expect(handshakeWith('one.example:443').isRefused()).toBe(false);
});

test('a trusted handshake ends the rest of no other', () => {
  const { handshakeWith, taking } = costs();
  const [trusted, other] = [handshakeWith('one.example:443'), handshakeWith('one.example:443')];
  trusted.compute(taking(500));
  other.compute(taking(30));
  trusted.end();
  expect(handshakeWith('one.example:443').isRefused()).toBe(true);
});

test('what is computed is told of its merchant once, also what was computed within it', () => {
  const told: [bigint | null, number][] = [];
  const { handshakeWith, taking } = costs({ ...UNWATCHED, took: (merchantId, ms) => void told.push([merchantId, ms]) });
  const handshake = handshakeWith('one.example:443', 7n);
  handshake.compute(taking(3));
  handshake.compute(() => {
    taking(1)();
    handshake.compute(taking(4));
  });
  handshake.end();
  handshake.compute(taking(6));
  expect(told).toEqual([
    [7n, 3],
    [7n, 5],
    [7n, 6],
  ]);
});

test('at most 10,000 hosts rest', () => {
  const { handshakeWith, taking } = costs();
  for (let n = 0; n <= 10_000; n++) handshakeWith(`${n}.example:443`).compute(taking(50));
  expect(handshakeWith('0.example:443').isRefused()).toBe(false);
  expect(handshakeWith('1.example:443').isRefused()).toBe(true);
});

test('the merchant rests with every host, twenty times as long, and no other merchant does', () => {
  const { handshakeWith, taking, pass } = costs();
  const underWay = handshakeWith('two.example:443', 1n);
  const dear = handshakeWith('one.example:443', 1n);
  dear.compute(taking(300));
  expect(dear.isRefused()).toBe(false);
  expect(underWay.isRefused()).toBe(true);
  expect(handshakeWith('three.example:443', 2n).isRefused()).toBe(false);
  expect(handshakeWith('three.example:443').isRefused()).toBe(false);
  pass(5_999);
  expect(handshakeWith('three.example:443', 1n).isRefused()).toBe(true);
  pass(1);
  expect(handshakeWith('three.example:443', 1n).isRefused()).toBe(false);
  expect(handshakeWith('one.example:443', 1n).isRefused()).toBe(true);
});

test('a merchant whose handshake ends as it should does not rest', () => {
  const { handshakeWith, taking } = costs();
  const [trusted, other] = [handshakeWith('one.example:443', 1n), handshakeWith('two.example:443', 1n)];
  trusted.compute(taking(300));
  trusted.end();
  expect(other.isRefused()).toBe(false);
  other.compute(taking(30));
  trusted.end();
  expect(handshakeWith('three.example:443', 1n).isRefused()).toBe(true);
});

test('nobody is called for a merchant whose host took long for a while, others are served', async () => {
  const { port } = await dearServer('TLSv1.3');
  const another = await dearServer('TLSv1.3');
  const find = async () => [{ address: '127.0.0.1', family: 4 }];
  const policy = { ...publicInternet([port, another.port], find), allows: () => true };
  const outbound = opened(createOutbound(policy, SLOWLY));
  const call = (merchantId: bigint, name: string, to: number): Promise<OutboundResult> =>
    outbound.call({ ...asking, merchantId, connectionsOf: null, url: `https://${name}:${to}/` });
  expect(await call(1n, 'one.example', port)).toMatchObject({ reason: 'CERT_SIGNATURE_FAILURE' });
  expect(await call(1n, 'two.example', another.port)).toMatchObject({ reason: 'ERR_TLS_HANDSHAKE_TOO_DEAR' });
  expect(another.connections()).toBe(0);
  expect(await call(2n, 'two.example', another.port)).toMatchObject({ reason: 'CERT_SIGNATURE_FAILURE' });
});
