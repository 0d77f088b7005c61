// `bursar chain write-off`, as an operator calls it: what USDT's issuer has destroyed at an address of ours is written off once, by however many
// operators, and the audit is green.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { askCli, type Environment, type Ran, runCli, startCli } from '../cli/run.ts';
import { FINAL, SILENT } from './evm-lied-to.ts';
import { isDestroyed, ledgerIsChain } from './evm-steps.ts';
import { openOnTwoNodes, type TwoNodes } from './two-nodes.ts';

const TIMEOUT = 300_000;
const UNITS = 300_000_000n;
let nodes: TwoNodes;
let service: TwoNodes['service'];
let here: Environment;
const folder = mkdtempSync(join(tmpdir(), 'bursar-write-off-'));

beforeAll(async () => {
  nodes = await openOnTwoNodes();
  ({ service } = nodes);
  here = {
    DATABASE_URL: service.url,
    BURSAR_DATA_DIR: folder,
    BURSAR_NETWORK: 'regtest',
    BURSAR_ETH_RPC_URL: [nodes.read.url, nodes.other.url].join(),
    BURSAR_USDT_CONTRACT: service.anvil.token,
  };
}, TIMEOUT);
afterAll(async () => {
  await nodes?.close();
  rmSync(folder, { recursive: true, force: true });
}, TIMEOUT);

const written = ({ out }: Ran): readonly { amount: string }[] => JSON.parse(out).written_off;

test('by two operators at once, of whom one is killed', { timeout: TIMEOUT }, async () => {
  const { address } = await service.owe('USDT', 300_00n);
  await service.pay('USDT', address, UNITS);
  await service.mine(FINAL);
  await isDestroyed(service, address);
  await service.mine(FINAL);
  expect((await service.findings()).join()).toMatch(/^EVM-1: /);
  const call = ['chain', 'write-off', address, '--evidence', 'its issuer has announced it', '--json'];
  expect(await runCli(['chain', 'write-off', address.slice(1), '--evidence', 'x'], here)).toMatchObject({
    code: 2,
    err: expect.stringContaining('address: an Ethereum address is'),
  });
  for (const node of [nodes.read, nodes.other]) node.alter(SILENT);
  const silent = await runCli(call, here);
  expect([silent.code, JSON.parse(silent.err)]).toMatchObject([
    1,
    { message: expect.stringMatching(/^address: no node says what/) },
  ]);
  for (const node of [nodes.read, nodes.other]) node.alter({});
  // one is killed where its nodes are asked, and later, by and by; what it has written is there whole, or not at all
  for (const afterMs of [300, 600, 900]) {
    const { child, ended } = startCli(call, here);
    const timer = setTimeout(() => child.kill('SIGKILL'), afterMs);
    await ended;
    clearTimeout(timer);
  }
  const both = await Promise.all([runCli(call, here), runCli(call, here)]);
  expect(both.map(({ code }) => code)).toEqual([0, 0]);
  expect(both.flatMap(written).length).toBeLessThanOrEqual(1);
  expect(await service.balance('expense:written_off:USDT')).toBe(UNITS);
  const own = await Promise.all((['ETH', 'USDT'] as const).map((currency) => service.hot(currency)));
  await ledgerIsChain(service, [...own, address]);
  expect(await askCli<{ ok: boolean }>(['audit'], here)).toMatchObject({ ok: true });
});
