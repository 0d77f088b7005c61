// What `bursar config check --nodes` says of a Lightning node: what would keep it from being paid and from paying, each by itself.
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { Socket } from 'node:net';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { probeLightning } from '../../src/main/config/lightning-probe.ts';
import { readConfig } from '../../src/main/config/read-config.ts';
import type { Config } from '../../src/main/config/variables.ts';
import { RECEIVING } from '../../src/outside/lightning/lnd.ts';
import { PAYING } from '../../src/outside/lightning/lnd-payer.ts';
import { bakeMacaroon } from '../../src/sandbox/lightning/macaroons.ts';
import { closeServer, listen } from '../../src/sandbox/server.ts';

const macaroon = (methods: readonly string[]): string => bakeMacaroon(Buffer.alloc(32, 7), methods);
const [RECEIVES, PAYS] = [macaroon(RECEIVING), macaroon(PAYING)];

let node: Server;
let config: Config;
/** What the node says: of the network that it is on, and what the other side of its channel has, in satoshis. */
let network: string;
let theirs: number;
/** The macaroon that it has revoked. */
let revoked: string | null;
/** With which macaroons it was asked. */
let asked: Set<unknown>;
let sockets: Socket[];
beforeEach(async () => {
  [network, theirs, revoked, asked, sockets] = ['regtest', 1, null, new Set(), []];
  node = createServer((request, response) => {
    const used = request.headers['grpc-metadata-macaroon'];
    asked.add(used);
    const answers: Record<string, object> = {
      '/v1/state': { state: 'SERVER_ACTIVE' },
      '/v1/getinfo': {
        ...{ chains: [{ network }], synced_to_chain: true, block_height: 7, identity_pubkey: '02ab', version: '0.21' },
      },
      '/v1/channels?active_only=true': { channels: [{ remote_balance: String(theirs), initiator: true }] },
    };
    if (revoked !== null && used === revoked)
      response.writeHead(500).end('{"code":2,"message":"verification failed: signature mismatch","details":[]}');
    else response.end(JSON.stringify(answers[request.url ?? '']));
  });
  node.on('connection', (socket) => void sockets.push(socket));
  const url = `http://127.0.0.1:${await listen(node, 0)}`;
  const given = readConfig({
    BURSAR_ENV_FILE: '/dev/null',
    BURSAR_NETWORK: 'regtest',
    BURSAR_FIXED_RATES: 'BTC=65000.00',
  });
  config = { ...given, lndUrl: url, lndCert: null, lndMacaroon: RECEIVES };
  vi.stubEnv('BURSAR_LND_PAY_MACAROON', PAYS);
});
afterEach(async () => {
  vi.unstubAllEnvs();
  await closeServer(node);
});
/** What is said of each, with which of them are wrong, and which stop a start. */
const said = async (of: Config = config) =>
  (await probeLightning(of)).map(({ what, ok, stops, says }) => `${ok ? 'ok' : stops ? 'STOPS' : 'wrong'} ${what}: ${says}`);
const NODE = expect.stringMatching(/^ok Lightning node: regtest, 0.21, 02ab, synced to block 7, can receive 0.00000001 BTC$/);
const IS_PAID = 'ok macaroon of the Lightning node: it permits receiving and nothing else';
const MAY_PAY = 'ok macaroon of the Lightning node that pays: it permits paying and nothing else';

test('a node that can be paid and can pay', async () => {
  expect(await said()).toEqual([NODE, IS_PAID, MAY_PAY]);
  expect(asked).toEqual(new Set([RECEIVES, PAYS]));
  // nothing keeps the command from ending
  for (const socket of sockets) if (!socket.closed) await once(socket, 'close');
});

test.each<[string, Partial<Config>]>([
  ['in the sandbox', { network: 'sandbox' }],
  ['where no node is configured', { lndUrl: null }],
  ['where no macaroon is configured', { lndMacaroon: null }],
])('%s there is nothing to say', async (_where, over) => {
  expect(await said({ ...config, ...over })).toEqual([]);
});

test('a node that nothing is paid from needs no macaroon that pays', async () => {
  vi.stubEnv('BURSAR_LND_PAY_MACAROON', '');
  expect(await said()).toEqual([NODE, IS_PAID]);
});

test('a file that is not there is told of the macaroon that it would have', async () => {
  vi.stubEnv('BURSAR_LND_PAY_MACAROON', '/not/there');
  const away = expect.stringMatching(/^wrong .* that pays: BURSAR_LND_PAY_MACAROON: the file that it names cannot be read/);
  expect(await said()).toEqual([NODE, IS_PAID, away]);
  expect((await said({ ...config, lndMacaroon: '/not/there' })).slice(0, 2)).toEqual([
    expect.stringMatching(/^wrong Lightning node: BURSAR_LND_MACAROON: the file that it names cannot be read/),
    expect.stringMatching(/^wrong macaroon of the Lightning node: BURSAR_LND_MACAROON: the file that it names cannot be read/),
  ]);
});

test('a node that can receive nothing', async () => {
  theirs = 0;
  const nothing = expect.stringMatching(/^wrong Lightning node: .*can receive 0.00000000 BTC$/);
  expect(await said()).toEqual([nothing, IS_PAID, MAY_PAY]);
});

test('a node of another network stops a start on mainnet alone, and is not asked to pay', async () => {
  network = 'signet';
  const foreign = (verdict: string) =>
    expect.stringMatching(new RegExp(`^${verdict} Lightning node: wrong_network: it is on signet`));
  expect(await said()).toEqual([foreign('wrong'), IS_PAID, MAY_PAY]);
  expect(asked).toEqual(new Set([RECEIVES]));
  expect((await said({ ...config, network: 'mainnet' }))[0]).toEqual(foreign('STOPS'));
});

test('a node that does not answer stops no start, and hides nothing of the macaroons', async () => {
  const away = { ...config, network: 'mainnet', lndUrl: 'http://127.0.0.1:1' } as const;
  expect(await said(away)).toEqual([expect.stringMatching(/^wrong Lightning node: down: /), IS_PAID, MAY_PAY]);
});

test('a macaroon that pays and was revoked is told, and one that permits too little is not tried', async () => {
  revoked = PAYS;
  const told = expect.stringMatching(/^wrong macaroon of the Lightning node that pays: .*verification failed/);
  expect(await said()).toEqual([NODE, IS_PAID, told]);
  asked.clear();
  const poor = macaroon(PAYING.slice(1));
  vi.stubEnv('BURSAR_LND_PAY_MACAROON', poor);
  expect((await said())[2]).toContain(`it does not permit ${PAYING[0]}; bake one that permits exactly this:`);
  expect(asked).toEqual(new Set([RECEIVES]));
});

test.each<[string, string, string]>([
  ['permits too little', macaroon(RECEIVING.slice(1)), `wrong: it does not permit ${RECEIVING[0]}; bake`],
  ['permits too much', macaroon([...RECEIVING, '/x.Y/Z']), 'wrong: it permits more than receiving needs (/x.Y/Z): bake'],
  ['is none', '00ff', 'wrong: it is no macaroon of LND (version 2)'],
])('a macaroon that %s', async (_what, lndMacaroon, wanted) => {
  const [, of] = await probeLightning({ ...config, lndMacaroon });
  expect(`${of?.ok ? 'ok' : 'wrong'}: ${of?.says}`).toContain(wanted);
});
