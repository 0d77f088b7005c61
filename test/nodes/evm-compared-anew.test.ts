// USDT payouts that database and signer have forgotten are booked one after the other, as a restored service's operator does: what its addresses hold is
// compared hourly, and he does not wait for that until payouts go on.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { openBreakers } from '../../src/store/ledger/breakers.ts';
import { askCli, type Environment, runCli } from '../cli/run.ts';
import { FINAL } from './evm-lied-to.ts';
import { type EvmService, openEvmService } from './evm-service.ts';
import { sent, transfer, works } from './evm-steps.ts';

const TIMEOUT = 300_000;
const NOBODY = `0x${'e7'.repeat(20)}`;
let service: EvmService;
let here: Environment;
const folder = mkdtempSync(join(tmpdir(), 'bursar-compared-'));

beforeAll(async () => {
  service = await openEvmService();
  here = {
    DATABASE_URL: service.url,
    BURSAR_DATA_DIR: folder,
    BURSAR_NETWORK: 'regtest',
    BURSAR_ETH_RPC_URL: service.anvil.url,
    BURSAR_USDT_CONTRACT: service.anvil.token,
  };
}, TIMEOUT);
afterAll(async () => {
  await service?.close();
  rmSync(folder, { recursive: true, force: true });
}, TIMEOUT);

test('four forgotten payouts', { timeout: TIMEOUT }, async () => {
  const hot = await service.hot('USDT');
  const txids: string[] = [];
  for (const dollars of [50n, 160n, 244n, 50n]) {
    txids.push(await sent(service, hot, service.anvil.token, { data: transfer(NOBODY, dollars * 1_000_000n) }));
    await service.mine();
  }
  await service.mine(FINAL);
  service.restart();
  await works(service, 1);
  // the hourly look, before any is booked
  expect((await service.findings()).filter((finding) => finding.startsWith('EVM-1'))).toHaveLength(2);
  for (const txid of txids)
    expect(await askCli(['payout', 'recover', txid, '--accept-loss'], here)).toMatchObject({ currency: 'USDT', payout_ids: [] });
  expect(await runCli(['audit'], here)).toMatchObject({ code: 0 });
  expect(await runCli(['audit', '--clear'], here)).toMatchObject({ code: 0 });
  expect(await openBreakers(service.db)).toEqual([]);
});

test('what a node has said wrongly of a balance', { timeout: TIMEOUT }, async () => {
  await service.findings();
  await service.db.query({ text: `update address_balances set found = found - 1 where currency = 'ETH'` });
  expect(await runCli(['audit'], here)).toMatchObject({ code: 1, out: expect.stringContaining('red    EVM-1') });
  expect(await runCli(['audit', '--clear'], here)).toMatchObject({ code: 0 });
});
