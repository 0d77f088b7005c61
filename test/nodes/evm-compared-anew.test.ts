// USDT payouts that database and signer have forgotten are booked one after the other, as a restored service's operator does: what its addresses hold is
// compared hourly, and he does not wait for that until payouts go on.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { openBreakers } from '../../src/store/ledger/breakers.ts';
import { openMovements } from '../../src/store/payouts/unknown-movements.ts';
import { askCli, type Environment, runCli } from '../cli/run.ts';
import { FINAL } from './evm-lied-to.ts';
import { type EvmService, openEvmService } from './evm-service.ts';
import { sent, transfer, works } from './evm-steps.ts';

const TIMEOUT = 300_000;
const NOBODY = `0x${'e7'.repeat(20)}`;
let service: EvmService;
const folder = mkdtempSync(join(tmpdir(), 'bursar-compared-'));
/** What a command is told of a service. */
const environmentOf = ({ url, anvil }: EvmService, name: string): Environment => ({
  DATABASE_URL: url,
  BURSAR_DATA_DIR: join(folder, name),
  BURSAR_NETWORK: 'regtest',
  BURSAR_ETH_RPC_URL: anvil.url,
  BURSAR_USDT_CONTRACT: anvil.token,
});
let here: Environment;

beforeAll(async () => {
  service = await openEvmService();
  here = environmentOf(service, 'here');
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

test('what has left after nonces were compared is named once a balance shows that it is missing, whoever it paid', {
  timeout: TIMEOUT,
}, async () => {
  const other = await openEvmService();
  try {
    const there = environmentOf(other, 'there');
    const hot = await other.hot('USDT');
    const txids: string[] = [];
    // a reorganisation had them in no block when nonces were compared
    for (const dollars of [50n, 160n]) {
      txids.push(await sent(other, hot, other.anvil.token, { data: transfer(NOBODY, dollars * 1_000_000n) }));
      await other.mine();
    }
    // what comes later says nothing of since when something is missing
    await other.pay('USDT', hot, 1_000_000n);
    await other.mine(FINAL);
    await works(other, 1);
    expect(await openMovements(other.db)).toEqual([]);
    expect((await other.findings()).filter((finding) => finding.startsWith('EVM-1'))).toHaveLength(2);
    await works(other, 1);
    expect(new Set((await openMovements(other.db)).map(({ txid }) => txid))).toEqual(new Set(txids));
    for (const txid of txids)
      expect(await askCli(['payout', 'recover', txid, '--accept-loss'], there)).toMatchObject({
        currency: 'USDT',
        payout_ids: [],
      });
    expect(await runCli(['audit', '--clear'], there)).toMatchObject({ code: 0 });
    await works(other, 1);
    expect([await openBreakers(other.db), await other.findings()]).toEqual([[], []]);
  } finally {
    await other.close();
  }
});

test('what a node has said wrongly of a balance', { timeout: TIMEOUT }, async () => {
  await service.findings();
  await service.db.query({ text: `update address_balances set found = found - 1 where currency = 'ETH'` });
  expect(await runCli(['audit'], here)).toMatchObject({ code: 1, out: expect.stringContaining('red    EVM-1') });
  expect(await runCli(['audit', '--clear'], here)).toMatchObject({ code: 0 });
});
