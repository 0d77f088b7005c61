// Addresses are emptied the fullest first: however many of the fullest cannot be, those behind them are.
import { afterAll, beforeAll, expect, test } from 'vitest';
import { openAlteredNode } from '../support/nodes/altered-node.ts';
import { type EvmService, openEvmService } from './evm-service.ts';

const TIMEOUT = 300_000;
const TENTH = 10n ** 17n;
const FINAL = 70;
const LATER_MS = 61_000;
/** More than one pass asks a node about. */
const MANY = 25;
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

async function paid(wei: bigint): Promise<{ readonly id: string; readonly address: string }> {
  const made = await service.owe('ETH', (wei * 3_000_00n) / 10n ** 18n);
  await service.pay('ETH', made.address, wei);
  return made;
}
async function works(turns: number): Promise<void> {
  for (let turn = 0; turn < turns; turn++) {
    await service.work(LATER_MS);
    await service.mine(FINAL);
  }
}

test('of another account', { timeout: TIMEOUT }, async () => {
  for (let n = 0; n < MANY; n++) {
    const { id } = await paid(TENTH);
    // no key of the signer has it there
    const text = 'update transactions set address_index = address_index + 1000 where id = $1';
    await service.db.query({ text, values: [id] });
  }
  const { address } = await paid(TENTH / 2n);
  await service.mine(FINAL);
  await works(3);
  expect(await service.ether(address)).toBe(0n);
});

test('that have sent what is not known here, as a node says', { timeout: TIMEOUT }, async () => {
  const fullest = new Set<string>();
  for (let n = 0; n < MANY; n++) fullest.add((await paid(TENTH)).address);
  const { address } = await paid(TENTH / 2n);
  await service.mine(FINAL);
  node.alter({
    instead: ({ method, params: [of, at] }) =>
      method === 'eth_getTransactionCount' && fullest.has(String(of).toLowerCase()) && !String(at).startsWith('0x')
        ? { result: '0x7' }
        : null,
  });
  await works(5);
  expect(await service.ether(address)).toBe(0n);
  for (const one of fullest) expect(await service.ether(one)).toBe(TENTH);
  node.alter({});
  await works(4);
  for (const one of fullest) expect(await service.ether(one)).toBe(0n);
});
