// Of several transactions with one nonce of our address, which the database has forgotten, a block takes one for good: nothing is asked about the others
// any more, which can never be mined, and payouts go on.
import { afterAll, beforeAll, expect, test } from 'vitest';
import { evmInput } from '../../src/core/currencies/evm.ts';
import { restoreSignature } from '../../src/flow/payouts/after-restore/restored-signatures.ts';
import { recordUnknown } from '../../src/flow/payouts/after-restore/unknown-movements.ts';
import { openBreakers } from '../../src/store/ledger/breakers.ts';
import { readPayout } from '../../src/store/payouts/reads.ts';
import { openMovements } from '../../src/store/payouts/unknown-movements.ts';
import { recoverSent } from '../../src/worker/payouts/evm/passed-nonces.ts';
import { FINAL, LATER_MS } from './evm-lied-to.ts';
import { type EvmService, openEvmService } from './evm-service.ts';
import { earnsDollars, GAS_PRICE, ledgerIsChain, transfer, works } from './evm-steps.ts';

const TIMEOUT = 300_000;
const PAYEE = `0x${'b5'.repeat(20)}`;
const STRANGER = `0x${'c5'.repeat(20)}`;
const FIFTY = 50_000_000n;
let service: EvmService;
let hot: string;
const ours = new Set<string>();
const recovers = (txid: string) => recoverSent(service.ctx, txid, { by: 'operator test', acceptsLoss: true });
const found = async (): Promise<readonly (string | null)[]> => (await openMovements(service.db)).map(({ txid }) => txid);
const used = async (): Promise<number> => Number(await service.anvil.rpc<string>('eth_getTransactionCount', hot, 'latest'));
/** As this server did before it was put back, with the next nonce: the dearer one is mined. */
async function sentElsewhere(gasPrice: bigint): Promise<string> {
  await service.anvil.rpc('anvil_impersonateAccount', hot);
  const data = transfer(PAYEE, FIFTY);
  const asked = { from: hot, to: service.anvil.token, data, gas: '0x186a0', gasPrice: `0x${gasPrice.toString(16)}` };
  return service.anvil.rpc<string>('eth_sendTransaction', { ...asked, nonce: `0x${(await used()).toString(16)}` });
}

beforeAll(async () => {
  service = await openEvmService();
  for (const one of await earnsDollars(service)) ours.add(one);
  hot = await service.hot('USDT');
  await service.request(PAYEE);
  await works(service, 1);
}, TIMEOUT);
afterAll(() => service?.close(), TIMEOUT);

async function goesOn(): Promise<void> {
  service.restart();
  await service.work(LATER_MS);
  expect(await found()).toEqual([]);
  await ledgerIsChain(service, ours);
  await service.goOn();
  service.restart();
  const [id, before] = [await service.request(STRANGER), await service.units(STRANGER)];
  await works(service, 2);
  expect(await readPayout(service.db, id)).toMatchObject({ status: 'completed' });
  expect(await openBreakers(service.db)).toEqual([]);
  expect(await service.units(STRANGER)).toBe(before + FIFTY);
  await ledgerIsChain(service, ours);
}

test('the signer knows both, for a payout that is not known here', { timeout: TIMEOUT }, async () => {
  const signed = await service.journal.read(service.journal.count());
  const nonce = await used();
  const first = await sentElsewhere(GAS_PRICE);
  const second = await sentElsewhere(2n * GAS_PRICE);
  await service.mine(2);
  for (const [nth, txid] of [first, second].entries()) {
    const inputs = signed.request.inputs.map((input) => ({ ...input, ...evmInput(hot, nonce) }));
    const outputs = signed.request.outputs.map((output) => ({ ...output, payoutId: 'payout_gone' }));
    const request = { ...signed.request, batchId: 'batch_gone', number: nth + 1, inputs, outputs };
    expect(await restoreSignature(service.ctx, { ...signed, txid, request })).toBe('unknown_payout');
  }
  service.restart();
  await service.work(LATER_MS);
  expect(await found()).toEqual([first, second]);
  await service.mine(FINAL);
  await recovers(second);
  await goesOn();
});

test('signer and database have forgotten both, and a reorganisation puts one in the place of the other', {
  timeout: TIMEOUT,
}, async () => {
  const [before, nonce, id] = [await service.units(PAYEE), await used(), await service.request(PAYEE)];
  const then = await service.anvil.rpc('evm_snapshot');
  const first = await sentElsewhere(GAS_PRICE);
  await service.mine(2);
  service.restart();
  await service.work(LATER_MS);
  expect(await found()).toEqual([first]);
  await service.anvil.rpc('evm_revert', then);
  const second = await sentElsewhere(2n * GAS_PRICE);
  await service.mine(2);
  service.restart();
  await service.work(LATER_MS);
  expect(await found()).toEqual([first, second]);
  await service.mine(FINAL);
  expect(await recovers(second)).toMatchObject({ payoutIds: [id] });
  // a look had found it before that
  const again = { currency: 'USDT', txid: second, blockHash: null, finding: 'found', spends: [evmInput(hot, nonce)] } as const;
  await recordUnknown(service.ctx, 'USDT', { movements: [again], payoutIds: [] });
  expect(await found()).toEqual([first]);
  const other = `0x${'ab'.repeat(32)}`;
  await recordUnknown(service.ctx, 'USDT', { movements: [{ ...again, txid: other }], payoutIds: [] });
  expect(await found()).toEqual([first, other]);
  await works(service, 1);
  expect(await readPayout(service.db, id)).toMatchObject({ status: 'completed', txid: second });
  expect(await service.units(PAYEE)).toBe(before + FIFTY);
  await goesOn();
});
