// Payments in ether and USDT move from the addresses of their transactions to the ones that payouts leave from, on a real EVM: once, whatever
// happens on the way, and what the ledger holds is what the chain holds.
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { requestTokenPayout } from '../../src/flow/evm/request.ts';
import { recordOutgoing } from '../../src/store/payouts/outgoing-facts.ts';
import { readPayout } from '../../src/store/payouts/reads.ts';
import { DRIVER_STEPS } from '../../src/worker/payouts/driver-options.ts';
import { type EvmService, openEvmService } from './evm-service.ts';

const TIMEOUT = 300_000;
const CENTS = 300_00n;
const TENTH = 10n ** 17n;
const UNITS = 300_000_000n;
const GWEI = 10n ** 9n;
const FINAL = 65;
/** Longer than a lease and than a transaction waits for its replacement. */
const LATER_MS = 61_000;
let service: EvmService;
const ours: string[] = [];

beforeAll(async () => {
  service = await openEvmService();
}, TIMEOUT);
afterAll(() => service?.close(), TIMEOUT);
beforeEach(() => {
  service.told.length = 0;
  service.restart();
});

/** Transactions that were paid whole, at final depth. */
async function paid(...currencies: readonly ('ETH' | 'USDT')[]) {
  const made = [];
  for (const currency of currencies) {
    const owed = await service.owe(currency, CENTS);
    await service.pay(currency, owed.address, currency === 'ETH' ? TENTH : UNITS);
    ours.push(owed.address);
    made.push(owed);
  }
  await service.mine(FINAL);
  return made;
}
/** Runs the worker and mines until nothing is on its way, and all of it is final. */
async function moved(): Promise<void> {
  for (let turn = 0; turn < 12; turn++) {
    await service.work(LATER_MS);
    await service.mine();
    const all = [...(await service.batches('sweep')), ...(await service.batches('top_up'))];
    if (turn > 1 && all.every(({ state }) => ['mined', 'final', 'dead'].includes(state))) break;
  }
  await service.mine(FINAL);
  await service.work(LATER_MS);
}
/** What all our addresses hold on the chain is what the ledger holds, and the audit finds nothing. */
async function ledgerIsChain(): Promise<void> {
  const all = [...ours, await service.hot('ETH'), await service.hot('USDT')];
  const total = async (read: (address: string) => Promise<bigint>): Promise<bigint> =>
    (await Promise.all(all.map(read))).reduce((a, b) => a + b, 0n);
  expect(await service.balance('asset:chain:ETH')).toBe(await total(service.ether));
  expect(await service.balance('asset:chain:USDT')).toBe(await total(service.units));
  expect(await service.findings()).toEqual([]);
}
const baseFee = (gwei: bigint): Promise<unknown> =>
  service.anvil.rpc('anvil_setNextBlockBaseFeePerGas', `0x${(gwei * GWEI).toString(16)}`);

test('a payment is moved whole: ether less its gas, USDT after ether for gas was sent there, which is nobody’s payment', {
  timeout: TIMEOUT,
}, async () => {
  const [ether, usdt] = await paid('ETH', 'USDT');
  const before = { ether: await service.balance('asset:chain:ETH'), usdt: await service.units(await service.hot('USDT')) };
  await moved();
  expect(service.told).toEqual([]);
  expect(await service.ether(ether?.address as string)).toBe(0n);
  expect(await service.units(usdt?.address as string)).toBe(0n);
  expect((await service.units(await service.hot('USDT'))) - before.usdt).toBe(UNITS);
  expect(await service.batches('sweep')).toMatchObject([
    { currency: 'ETH', state: 'final', attempts: 1 },
    { currency: 'USDT', state: 'final', attempts: 1 },
  ]);
  expect(await service.batches('top_up')).toMatchObject([{ currency: 'ETH', state: 'final', attempts: 1 }]);
  for (const { id } of [ether, usdt] as { id: string }[]) expect(await service.status(id)).toBe('succeeded');
  expect(await service.balance(`suspense:${usdt?.id}:ETH`)).toBe(0n);
  const gas = await service.balance('expense:network_fee:ETH');
  expect(gas).toBeGreaterThan(0n);
  expect(before.ether - (await service.balance('asset:chain:ETH'))).toBe(gas);
  await ledgerIsChain();
});

test('whoever dies at any step: each payment is moved by one transaction', {
  timeout: TIMEOUT,
}, async () => {
  const earlier = (await service.batches('sweep')).length;
  const made = await paid('ETH', 'USDT');
  const died = new Set<string>();
  const dies = async (step: string): Promise<void> => {
    if (!step.startsWith('sweep-') || died.has(step)) return;
    died.add(step);
    throw new Error(`dies at ${step}`);
  };
  for (let turn = 0; turn < 24; turn++) {
    service.restart(dies);
    await service.work(LATER_MS).catch((error: Error) => expect(error.message).toMatch(/^dies at/));
    if (turn % 2 === 1) await service.mine();
  }
  await service.mine(FINAL);
  for (let turn = 0; turn < 3; turn++) {
    service.restart(dies);
    await service.work(LATER_MS).catch((error: Error) => expect(error.message).toMatch(/^dies at/));
  }
  await moved();
  expect([...died].sort()).toEqual(
    DRIVER_STEPS.filter((step) => step !== 'queued')
      .map((step) => `sweep-${step}`)
      .sort(),
  );
  const swept = (await service.batches('sweep')).slice(earlier);
  expect(swept.map(({ currency, state }) => `${currency} ${state}`).sort()).toEqual(['ETH final', 'USDT final']);
  expect(await service.ether(made[0]?.address as string)).toBe(0n);
  expect(await service.units(made[1]?.address as string)).toBe(0n);
  await ledgerIsChain();
});

test('answers of the signer are lost, and what arrives while an address is emptied is booked, and moved by the next one at its next nonce', {
  timeout: TIMEOUT,
}, async () => {
  const earlier = (await service.batches('sweep')).length;
  const [ether, usdt] = (await paid('ETH', 'USDT')) as [{ id: string; address: string }, { id: string; address: string }];
  service.loseAnswers(true);
  const workTwice = async (): Promise<void> => {
    await service.work(LATER_MS);
    await service.work(LATER_MS);
  };
  await workTwice();
  await service.pay('ETH', ether.address, TENTH);
  await service.mine();
  await workTwice();
  await service.mine();
  await workTwice();
  await service.pay('USDT', usdt.address, UNITS);
  await service.mine(FINAL);
  expect(await service.balance(`suspense:${ether.id}:ETH`)).toBe(TENTH);
  expect(await service.balance(`suspense:${usdt.id}:USDT`)).toBe(UNITS);
  await moved();
  await moved();
  service.loseAnswers(false);
  const swept = (await service.batches('sweep')).slice(earlier);
  expect(swept.map(({ currency, nonce, state }) => `${currency} ${nonce} ${state}`).sort()).toEqual([
    'ETH 0 final',
    'ETH 1 final',
    'USDT 0 final',
    'USDT 1 final',
  ]);
  expect(await service.ether(ether.address)).toBe(0n);
  expect(await service.units(usdt.address)).toBe(0n);
  await ledgerIsChain();
});

test('a reorganisation sends the same bytes again, and fees that have risen replace them at their nonce', {
  timeout: TIMEOUT,
}, async () => {
  const earlier = (await service.batches('sweep')).length;
  const made = await paid('ETH', 'USDT');
  await service.work(LATER_MS);
  await service.mine();
  await service.anvil.rpc('anvil_reorg', 1, []);
  await service.anvil.rpc('anvil_dropAllTransactions');
  await service.settle();
  await baseFee(300n);
  await service.mine();
  await service.work(LATER_MS);
  await service.work(LATER_MS);
  await moved();
  await moved();
  const swept = (await service.batches('sweep')).slice(earlier);
  expect(swept.map(({ currency, state }) => `${currency} ${state}`).sort()).toEqual(['ETH final', 'USDT final']);
  expect(await service.ether(made[0]?.address as string)).toBe(0n);
  expect(await service.units(made[1]?.address as string)).toBe(0n);
  await ledgerIsChain();
  await baseFee(1n);
  await service.mine();
});

test('a token that stops between signature and block leaves the payment where it is, and it is moved later', {
  timeout: TIMEOUT,
}, async () => {
  const [usdt] = await paid('USDT');
  const address = usdt?.address as string;
  const before = (await service.batches('sweep')).length;
  for (let turn = 0; turn < 4; turn++) {
    await service.work(LATER_MS);
    if ((await service.batches('sweep')).length > before) break;
    await service.mine();
  }
  await service.anvil.whilePaused(async () => {
    await service.work(LATER_MS);
    await service.mine(FINAL);
    await service.work(LATER_MS);
    expect((await service.batches('sweep')).at(-1)).toMatchObject({ currency: 'USDT', state: 'dead' });
    expect(await service.units(address)).toBe(UNITS);
    await ledgerIsChain();
  });
  await service.settle();
  await service.work(6 * 3_600_000 + 1);
  await moved();
  expect(await service.units(address)).toBe(0n);
  await ledgerIsChain();
});

test('a restored database learns from the signer what was moved, and moves nothing twice', { timeout: TIMEOUT }, async () => {
  const made = await paid('ETH', 'USDT');
  const counts = [(await service.batches('sweep')).length, (await service.batches('top_up')).length];
  await moved();
  const [sweeps, topUps] = [await service.batches('sweep'), await service.batches('top_up')];
  expect([sweeps.length, topUps.length]).toEqual([(counts[0] as number) + 2, (counts[1] as number) + 1]);
  await service.forgetMoves([...sweeps.slice(counts[0]), ...topUps.slice(counts[1])].map(({ id }) => id));
  service.restart();
  await moved();
  expect((await service.batches('sweep')).map(({ id, state }) => `${id} ${state}`)).toEqual(
    sweeps.map(({ id, state }) => `${id} ${state}`),
  );
  expect((await service.batches('top_up')).map(({ id }) => id)).toEqual(topUps.map(({ id }) => id));
  expect(await service.ether(made[0]?.address as string)).toBe(0n);
  expect(await service.units(made[1]?.address as string)).toBe(0n);
  await ledgerIsChain();
});

test('an address that holds less than is known is red by name, and one that holds more is told and stops nothing', {
  timeout: TIMEOUT,
}, async () => {
  const [ether, usdt] = await paid('ETH', 'USDT');
  const setBalance = (address: string, wei: bigint) => service.anvil.rpc('anvil_setBalance', address, `0x${wei.toString(16)}`);
  const deal = (address: string, units: bigint) =>
    service.anvil.rpc('anvil_dealERC20', address, service.anvil.token, `0x${units.toString(16)}`);
  await setBalance(ether?.address as string, TENTH - 1n);
  await deal(usdt?.address as string, UNITS + 1n);
  await service.mine(FINAL);
  const found = (await service.findings()).filter((one) => one.startsWith('EVM'));
  expect(found).toEqual([
    expect.stringMatching(`^EVM-1: ${ether?.address} of ${ether?.id} had ${TENTH - 1n} of ETH.*: 1 are missing`),
    expect.stringMatching(`^EVM-2: ${usdt?.address} of ${usdt?.id} had ${UNITS + 1n} of USDT.* 1 more than is known`),
  ]);
  await setBalance(ether?.address as string, TENTH);
  await deal(usdt?.address as string, UNITS);
  await service.mine(FINAL);
  await moved();
  await ledgerIsChain();
});

test('dust stays where it is, nothing moves while payouts are stopped, and a payout that lacks funds says what is still to be moved', {
  timeout: TIMEOUT,
}, async () => {
  const before = (await service.batches('sweep')).length;
  const dust = await service.owe('ETH', 1_00n);
  ours.push(dust.address);
  await service.pay('ETH', dust.address, 10n ** 12n);
  const [usdt] = await paid('USDT');
  await service.stop('INV-7');
  await service.work(LATER_MS);
  await service.mine();
  await service.work(LATER_MS);
  expect((await service.batches('sweep')).length).toBe(before);
  await service.goOn();
  await service.anvil.rpc('anvil_dealERC20', await service.hot('USDT'), service.anvil.token, '0x1');
  const payee = `0x${'a1'.repeat(20)}`;
  const { id } = await requestTokenPayout(service.ctx, { merchantId: service.merchantId, amount: '50', destination: payee });
  await service.work(LATER_MS);
  expect(service.told.join()).toMatch(/too little USDT.*300\.000000 USDT are still at the addresses of their transactions/);
  await moved();
  expect(await service.units(usdt?.address as string)).toBe(0n);
  expect(await service.ether(dust.address)).toBe(10n ** 12n);
  expect((await service.batches('sweep')).length).toBe(before + 1);
  await moved();
  expect(await service.units(payee)).toBe(50_000_000n);
  expect((await readPayout(service.db, id))?.status).toBe('completed');
});

test('what a sweep brings from the address of a forgotten transaction is capital', { timeout: TIMEOUT }, async () => {
  await paid('ETH');
  await moved();
  const { rows } = await service.db.query<{ txid: string; height: number; hash: string; script: string }>({
    text: `select a.txid, a.height, a.block_hash as hash, encode(b.target, 'hex') as script from outgoing_batches b
             join outgoing_attempts a on a.id = b.mined_attempt where b.purpose = 'sweep' and b.currency = 'ETH' order by b.id desc limit 1`,
  });
  const [{ txid, height, hash, script }] = rows as [(typeof rows)[0]];
  // the signer has told a restored database of the sweep; to whoever reads its block the sender is a stranger
  const facts = { txid, coinbase: false, inputs: [{ txid: '12'.repeat(32), vout: 0 }], spends: [] };
  const outputs = [{ vout: 0, script, amountMinor: TENTH }];
  await recordOutgoing(service.db, 'ETH', { height, hash }, [{ ...facts, outputs }], new Set());
  await service.work(LATER_MS);
  const entries = await service.db.query({
    text: `select kind from ledger.entry where key like '%' || $1 || '%'`,
    values: [txid],
  });
  expect(entries.rows).toEqual([{ kind: 'capital' }]);
  expect((await service.findings()).filter((finding) => /^(INV-7|EVM-1.* of ETH )/.test(finding))).toEqual([]);
});
