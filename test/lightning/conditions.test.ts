// What the states of an LND, and what it says of its chain, mean.
import { createServer } from 'node:http';
import { expect, test } from 'vitest';
import type { LightningCondition } from '../../src/core/lightning/port.ts';
import { createLnd } from '../../src/outside/lightning/lnd.ts';
import { closeServer, listen } from '../../src/sandbox/server.ts';

async function conditionOf(state: string, more: object = {}): Promise<LightningCondition> {
  const info = {
    chains: [{ network: 'regtest' }],
    synced_to_chain: true,
    block_height: 7,
    identity_pubkey: '02ab',
    version: '0.21',
  };
  const node = createServer(({ url }, response) => {
    response.end(JSON.stringify(url === '/v1/state' ? { state } : { ...info, ...more }));
  });
  const url = `http://127.0.0.1:${await listen(node, 0)}`;
  const port = createLnd(async () => ({ url, certificate: null, macaroon: '' }), { chain: 'regtest' });
  try {
    return await port.condition();
  } finally {
    port.close();
    await closeServer(node);
  }
}
const READY = { state: 'ready', height: 7, identity: '02ab', version: '0.21' };

test.each<[string, object, LightningCondition | object]>([
  ['SERVER_ACTIVE', {}, READY],
  ['RPC_ACTIVE', {}, READY],
  ['LOCKED', {}, { state: 'warming_up', reason: 'its wallet is locked' }],
  ['UNLOCKED', {}, { state: 'warming_up', reason: 'it says UNLOCKED' }],
  ['NON_EXISTING', {}, { state: 'warming_up', reason: 'it says NON_EXISTING' }],
  ['WAITING_TO_START', {}, { state: 'warming_up', reason: 'it says WAITING_TO_START' }],
  ['SERVER_ACTIVE', { synced_to_chain: false }, { state: 'syncing', reason: 'it has not read its chain to the end' }],
  [
    'SERVER_ACTIVE',
    { chains: [{ network: 'mainnet' }] },
    { state: 'wrong_network', reason: 'it is on mainnet, but BURSAR_NETWORK wants regtest' },
  ],
])('a node that says %s, with %j', async (state, more, condition) => {
  expect(await conditionOf(state, more)).toEqual(condition);
});
