// A transaction on Ethereum's chain pays by the block that it is in. A payment that was booked, and is another one of the same place in another block after
// a reorganisation, is reversed, and the other one is booked under a key of its own.
import { afterAll, beforeAll, expect, test } from 'vitest';
import { rawOf } from '../support/evm/anvil.ts';
import { FINAL } from './evm-lied-to.ts';
import { type EvmService, openEvmService } from './evm-service.ts';
import { BY_BLOCK_NUMBER, ledgerIsChain, works } from './evm-steps.ts';

const TIMEOUT = 300_000;
const WORTH_90_USD = 3n * 10n ** 16n;
let service: EvmService;
const ours = new Set<string>();

beforeAll(async () => {
  service = await openEvmService();
  for (const currency of ['ETH', 'USDT'] as const) ours.add(await service.hot(currency));
}, TIMEOUT);
afterAll(() => service?.close(), TIMEOUT);

/** Takes away the block that has it and all above, and puts it into one with an even number, or an odd one. */
async function isMinedAnew(paid: Awaited<ReturnType<EvmService['pay']>>, isEven: boolean, laterMs = 0): Promise<void> {
  const { blockNumber } = await service.anvil.rpc<{ blockNumber: string }>('eth_getTransactionReceipt', paid.hash);
  const [at, tip] = [Number(blockNumber), Number(await service.anvil.rpc<string>('eth_blockNumber'))];
  await service.anvil.rpc('anvil_reorg', tip - at + 1, []);
  await service.mine();
  if (laterMs > 0) {
    await service.work(laterMs);
    await service.mine();
  }
  const next = Number(await service.anvil.rpc<string>('eth_blockNumber')) + 1;
  if ((next % 2 === 0) !== isEven) await service.mine();
  await service.anvil.rpc('eth_sendRawTransaction', rawOf(paid));
  await service.mine(8);
}

test.each([
  ['once it was lost for longer than ten minutes', 900_000],
  ['at once', 0],
] as const)('in another block, %s, and back in its own', { timeout: TIMEOUT }, async (_, laterMs) => {
  const contract = await service.anvil.deploy({ bytecode: BY_BLOCK_NUMBER, selectors: {} });
  const { id, address } = await service.owe('ETH', 90_00n);
  ours.add(address);
  if (Number(await service.anvil.rpc<string>('eth_blockNumber')) % 2 === 0) await service.mine();
  const to = address.slice(2).padStart(64, '0');
  const paid = await service.anvil.send({ to: contract, value: WORTH_90_USD + 1n, input: `0x${to}${to}` });
  await service.mine(7);
  const there = async (): Promise<readonly bigint[]> => {
    const { rows } = await service.db.query<{ amount: string }>({
      text: "select amount from payments where transaction_id = $1 and state = 'mined' order by vout",
      values: [id],
    });
    return rows.map(({ amount }) => BigInt(amount));
  };
  expect([await there(), await service.status(id)]).toEqual([[WORTH_90_USD, 1n], 'succeeded']);
  for (const isEven of [false, true, false, true, true]) {
    await isMinedAnew(paid, isEven, laterMs);
    expect(await there()).toEqual(isEven ? [WORTH_90_USD, 1n] : [1n, 2n]);
    await ledgerIsChain(service, ours);
  }
  await service.mine(FINAL);
  await ledgerIsChain(service, ours);
  expect(await service.status(id)).toBe('succeeded');
});

test('at an address that payouts leave from, before it is booked and afterwards', { timeout: TIMEOUT }, async () => {
  const contract = await service.anvil.deploy({ bytecode: BY_BLOCK_NUMBER, selectors: {} });
  const to = (await service.hot('ETH')).slice(2).padStart(64, '0');
  const paid = await service.anvil.send({ to: contract, value: WORTH_90_USD + 1n, input: `0x${to}${to}` });
  await service.mine();
  for (const [isEven, blocks] of [
    [true, 1],
    [false, FINAL],
    [true, FINAL],
    [false, FINAL],
    [true, 1],
    [false, FINAL],
  ] as const) {
    await isMinedAnew(paid, isEven);
    await service.mine(blocks);
    await works(service, 1, blocks);
    if (blocks === FINAL) await ledgerIsChain(service, ours);
  }
});
