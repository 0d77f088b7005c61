// What counts as a node's word that none of a payout's transactions has paid and none can be mined any more.
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import type { EvmPort } from '../../src/core/evm/port.ts';
import { createChainNodes } from '../../src/outside/utxo/by-currency.ts';
import { type Alteration, openAlteredNode, receipts } from '../support/nodes/altered-node.ts';
import { FINAL, LATER_MS, type LiedTo, openLiedTo, PAYEE, SILENT, WITHOUT_RECEIPTS } from './evm-lied-to.ts';

const TIMEOUT = 300_000;
let lied: LiedTo;
const failedAt = (blockNumber: string): Alteration => receipts((one) => ({ ...one, status: '0x0', logs: [], blockNumber }));

beforeAll(async () => {
  lied = await openLiedTo();
}, TIMEOUT);
afterAll(() => lied?.close(), TIMEOUT);
beforeEach(() => {
  lied.denied.clear();
  lied.honest.alter({});
});

test('a transaction at our nonce that no other node shows gives nothing back, where that node has no receipts', {
  timeout: TIMEOUT,
}, async () => {
  const { service, liar, honest, denied, lying } = lied;
  const id = await lied.paidAndDenied();
  const madeUp = `0x${'5a'.repeat(32)}`;
  const [txid] = denied;
  honest.alter(WITHOUT_RECEIPTS);
  liar.alter({
    ...WITHOUT_RECEIPTS,
    afterwards: ({ method }, answer) =>
      /^eth_getBlock(By|Receipts)|^debug_/.test(method)
        ? JSON.parse(JSON.stringify(answer).replaceAll(String(txid), madeUp))
        : answer,
  });
  // as a node has shown it that is read
  await service.db.query({
    text: `with batch as (select batch_id as id from payouts where id = $1),
             gone as (update outgoing_attempts a set height = null, block_hash = null, result = null, gas_paid = null from batch b where a.batch_id = b.id),
             used as (update outgoing_inputs i set spent_by = $2, spent_height = (select height from chain_cursors where currency = 'USDT') - $3::int
                        from batch b where i.batch_id = b.id)
           update outgoing_batches o set due_at = '-infinity' from batch b where o.id = b.id`,
    values: [id, madeUp, FINAL],
  });
  for (let look = 0; look < 3; look++) await service.work(LATER_MS);
  expect(await lied.shown(id)).toMatchObject({
    status: 'processing',
    error: null,
    trouble: expect.stringContaining(`it does not show ${madeUp} at nonce`),
  });
  liar.alter(lying);
  honest.alter({});
  await lied.isHonestAgain();
  await service.goOn();
  await service.work(LATER_MS);
  expect(await lied.shown(id)).toMatchObject({ status: 'completed', error: null });
  expect(await service.findings()).toEqual([]);
});

test('of three nodes two that say no are enough, and one that says paid is believed', { timeout: TIMEOUT }, async () => {
  const { service, liar, honest, denied, lying } = lied;
  await service.goOn();
  const id = await lied.paidAndDenied();
  const third = await openAlteredNode(service.anvil.url);
  third.alter(SILENT);
  const { chains, close } = createChainNodes({
    network: 'regtest',
    clock: service.ctx.ports.clock,
    urls: new Map([['USDT', [liar.url, honest.url, third.url]]]),
    tokenContract: service.anvil.token,
  });
  try {
    const port = chains.get('USDT') as unknown as EvmPort;
    const said = () => port.succeeded([...denied], { height: 1, sender: { address: PAYEE, nonce: -1 }, rival: null });
    expect(await said()).toMatchObject({ paid: { txid: [...denied][0] }, isDenied: false, silent: [expect.any(String)] });
    honest.alter(WITHOUT_RECEIPTS);
    expect(await said()).toMatchObject({ paid: null, isDenied: false, silent: [expect.any(String), expect.any(String)] });
    honest.alter(lying);
    expect(await said()).toMatchObject({ paid: null, isDenied: true, silent: [expect.any(String)] });
    // on a branch that ends otherwise yet
    honest.alter(failedAt(await service.anvil.rpc<string>('eth_blockNumber')));
    expect(await said()).toMatchObject({
      paid: null,
      isDenied: false,
      silent: [
        expect.any(String),
        expect.stringMatching(/it does not call block \d+ final, which it shows to decide about nonce -1$/),
      ],
    });
  } finally {
    await close();
    third.close();
  }
  honest.alter({});
  await lied.isHonestAgain();
  await service.work(LATER_MS);
  expect(await lied.shown(id)).toMatchObject({ status: 'completed', error: null });
});
