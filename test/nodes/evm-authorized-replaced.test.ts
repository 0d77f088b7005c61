// What an address of ours has authorized (EIP-7702) is booked, and a reorganisation deeper than the final depth puts what carries it into another block: what
// its new code has sent is booked once, also what of that has come to other addresses of ours, which may have sent more in the same transaction.
import { afterAll, beforeAll, expect, test } from 'vitest';
import { addressOf, secretOf } from '../../src/sandbox/evm/transaction.ts';
import { openBreakers } from '../../src/store/ledger/breakers.ts';
import { readPayout } from '../../src/store/payouts/reads.ts';
import { openMovements } from '../../src/store/payouts/unknown-movements.ts';
import { recoverSent } from '../../src/worker/payouts/evm/passed-nonces.ts';
import { type Authorization, authorization, carrying } from '../support/evm/set-code.ts';
import { FINAL } from './evm-lied-to.ts';
import { type EvmService, openEvmService } from './evm-service.ts';
import { earnsDollars, ledgerIsChain, sendsToAll, works } from './evm-steps.ts';

const TIMEOUT = 300_000;
const PAYEE = `0x${'b5'.repeat(20)}`;
const NOBODY = `0x${'e7'.repeat(20)}`;
const CODE = `0x${'cd'.repeat(20)}`;
const SENT = 7_000_000n;
/** What came to an order is its payment, whoever has paid it; what is at another address of ours is not gone. */
const GONE = 2n * SENT;
let service: EvmService;
const ours = new Set<string>();
let carrier: { readonly raw: string; readonly txid: string };
const recovers = () => recoverSent(service.ctx, carrier.txid, { by: 'operator test', acceptsLoss: true });
const lost = () => service.balance('expense:unknown_outflow:USDT');
const count = async (address: string): Promise<number> =>
  Number(await service.anvil.rpc<string>('eth_getTransactionCount', address, 'latest'));

/** A payout has used the first nonce of the address; the next one carries code that sends to nobody known, and to another address of ours. */
beforeAll(async () => {
  service = await openEvmService();
  for (const one of await earnsDollars(service)) ours.add(one);
  await service.request(PAYEE);
  await works(service, 1, FINAL);
  const [hot, { address: other }] = [await service.hot('USDT'), await service.owe('USDT', 7_00n)];
  ours.add(other);
  const to = [NOBODY, other, await service.hot('ETH')].map((one) => ({ to: one, units: SENT }));
  await service.anvil.rpc('anvil_setCode', CODE, sendsToAll(service.anvil.token, to));
  const stranger = secretOf('carries');
  await service.anvil.rpc('anvil_setBalance', addressOf(stranger), '0xde0b6b3a7640000');
  await service.mine(2);
  const secret = await service.secret('USDT', { chain: 1, index: 0 });
  carrier = carrying(stranger, { to: hot, list: [authorization(secret, { code: CODE, nonce: await count(hot) })] });
  await service.anvil.rpc('eth_sendRawTransaction', carrier.raw);
  await service.mine(FINAL);
  expect(await recovers()).toMatchObject({ besides: [{ currency: 'USDT', lost: GONE }] });
  await ledgerIsChain(service, ours);
}, TIMEOUT);
afterAll(() => service?.close(), TIMEOUT);

/** The block of it, and what is above. @param by what new ones have, and the place of that one among them: the first with the same would be the same */
async function replaced(by: readonly (readonly [string, number])[]): Promise<void> {
  const { blockNumber } = await service.anvil.rpc<{ blockNumber: string }>('eth_getTransactionReceipt', carrier.txid);
  const depth = Number(await service.anvil.rpc<string>('eth_blockNumber')) - Number(blockNumber) + 1;
  await service.anvil.rpc('anvil_reorg', depth, by);
}
async function payoutsGoOn(): Promise<void> {
  await service.goOn();
  service.restart();
  const id = await service.request(PAYEE);
  await works(service, 2);
  expect(await readPayout(service.db, id)).toMatchObject({ status: 'completed' });
  expect(await openBreakers(service.db)).toEqual([]);
  await ledgerIsChain(service, ours);
}

test('in another block it is found again, and booked again without what it has sent', { timeout: TIMEOUT }, async () => {
  const used = await count(await service.hot('USDT'));
  await replaced([[carrier.raw, 1]]);
  await service.mine(FINAL);
  expect(await count(await service.hot('USDT'))).toBe(used);
  await service.request(PAYEE);
  service.restart();
  await works(service, 1);
  expect((await openMovements(service.db)).map(({ txid }) => txid)).toEqual([carrier.txid]);
  expect(await recovers()).toMatchObject({ besides: [] });
  expect(await lost()).toBe(GONE);
  await payoutsGoOn();
});

test('two addresses of ours in one transaction: what one has sent to the other is not taken for what that has sent', {
  timeout: TIMEOUT,
}, async () => {
  const [dollars, ether] = [await service.hot('USDT'), await service.hot('ETH')];
  const [before, held] = [await lost(), await service.units(ether)];
  const nextTo = { dollars: `0x${'c1'.repeat(20)}`, ether: `0x${'c2'.repeat(20)}`, both: `0x${'c3'.repeat(20)}` };
  const calls = (address: string): string => `6000600060006000600073${address.slice(2)}5af150`;
  const { token } = service.anvil;
  await service.anvil.rpc('anvil_setCode', nextTo.dollars, sendsToAll(token, [{ to: ether, units: SENT }]));
  await service.anvil.rpc('anvil_setCode', nextTo.ether, sendsToAll(token, [{ to: NOBODY, units: held }]));
  await service.anvil.rpc('anvil_setCode', nextTo.both, `0x${calls(dollars)}${calls(ether)}00`);
  const list: Authorization[] = [];
  for (const [currency, address, code] of [
    ['USDT', dollars, nextTo.dollars],
    ['ETH', ether, nextTo.ether],
  ] as const)
    list.push(authorization(await service.secret(currency, { chain: 1, index: 0 }), { code, nonce: await count(address) }));
  const stranger = secretOf('carries two');
  await service.anvil.rpc('anvil_setBalance', addressOf(stranger), '0xde0b6b3a7640000');
  const { raw, txid } = carrying(stranger, { to: nextTo.both, list });
  await service.anvil.rpc('eth_sendRawTransaction', raw);
  await service.mine(FINAL);
  expect(await service.units(ether)).toBe(SENT);
  const books = (acceptsLoss: boolean) => recoverSent(service.ctx, txid, { by: 'operator test', acceptsLoss });
  await expect(books(false)).rejects.toThrow('--accept-loss');
  await books(true);
  expect((await lost()) - before).toBe(held);
  await payoutsGoOn();
});
