// Database and signer were put back together, to before ether had left from the address that pays for gas, and the node that is read was behind when
// its nonces were compared: the block that used the nonce is read before something new is signed for it, and is watched by nobody.
import { afterAll, beforeAll, expect, test } from 'vitest';
import { openBreakers } from '../../src/store/ledger/breakers.ts';
import { recoverSent } from '../../src/worker/payouts/evm/passed-nonces.ts';
import { openAlteredNode } from '../support/nodes/altered-node.ts';
import { type EvmService, openEvmService } from './evm-service.ts';

const TIMEOUT = 300_000;
const STRANGER = `0x${'5c'.repeat(20)}`;
const LATER_MS = 61_000;
const FINAL = 65;
let service: EvmService;
let node: Awaited<ReturnType<typeof openAlteredNode>>;

beforeAll(async () => {
  const through = async (url: string): Promise<string> => {
    node = await openAlteredNode(url);
    return node.url;
  };
  service = await openEvmService({ through });
}, TIMEOUT);
afterAll(async () => {
  await service?.close();
  node?.close();
}, TIMEOUT);

/** A payment in USDT that needs ether for its move. */
async function paid(): Promise<string> {
  const { address } = await service.owe('USDT', 300_00n);
  await service.pay('USDT', address, 300_000_000n);
  await service.mine(FINAL);
  return address;
}
async function moved(address: string): Promise<void> {
  for (let turn = 0; turn < 8 && (await service.units(address)) > 0n; turn++) {
    await service.work(LATER_MS);
    await service.mine(FINAL);
  }
  await service.work(LATER_MS);
}

test('ether for gas whose nonce was used in a block that was read before', { timeout: TIMEOUT }, async () => {
  await moved(await paid());
  const hot = await service.hot('ETH');
  expect(await service.batches('top_up')).toMatchObject([{ state: 'final', nonce: 0 }]);
  await service.anvil.rpc('anvil_impersonateAccount', hot);
  const txid = await service.anvil.rpc<string>('eth_sendTransaction', { from: hot, to: STRANGER, value: '0x64' });
  const address = await paid();
  node.alter({
    instead: ({ method, params: [of] }) =>
      method === 'eth_getTransactionCount' && String(of).toLowerCase() === hot ? { result: '0x1' } : null,
  });
  service.restart();
  await service.work();
  node.alter({});
  expect((await service.batches('top_up')).at(-1)).toMatchObject({ nonce: 1 });
  for (let look = 0; look < 3; look++) {
    await service.work(LATER_MS);
    await service.mine(FINAL);
  }
  await service.work(LATER_MS);
  expect((await service.batches('top_up')).at(-1)).toMatchObject({ nonce: 1, state: 'dead' });
  expect((await openBreakers(service.db)).map(({ findings }) => findings.join()).join()).toContain(txid);
  await service.price();
  expect(await recoverSent(service.ctx, txid, { by: 'test', acceptsLoss: true })).toMatchObject({ payoutIds: [], lost: 100n });
  await service.goOn();
  service.restart();
  await moved(address);
  expect(await service.units(address)).toBe(0n);
  expect((await service.findings()).filter((one) => !/INV-19/.test(one))).toEqual([]);
});
