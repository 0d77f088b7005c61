// What a bank says of a file that it cannot know yet, or that it has not taken yet: somebody else's report, an old one, or a mistake. Nothing of
// it counts before a person has looked.
import { createHash } from 'node:crypto';
import { beforeEach, expect, test } from 'vitest';
import { readAchBytes } from '../../../src/store/ach/entries.ts';
import { clearBreakers, openBreakers } from '../../../src/store/ledger/breakers.ts';
import { BTC, ctx, ledgerFindings, merchantsForAll, of, row, shopWith, world } from '../payouts/merchants.ts';
import { entryOf, newBank, requested } from './new-bank.ts';

merchantsForAll();

const DAY = 86_400_000;
let bank: Awaited<ReturnType<typeof newBank>>;
beforeEach(async () => {
  await clearBreakers(ctx.db, 'test', world.now());
  bank = await newBank();
});
/** A file that is made, and waits because the signer does not say which APIs are trusted. */
async function built(merchantId: bigint, many: number): Promise<readonly string[]> {
  const ids: string[] = [];
  for (let n = 0; n < many; n++) ids.push(await requested(merchantId));
  world.pass(1);
  bank.cutOff();
  bank.state.isDiskFull = true;
  await bank.look().catch(() => undefined);
  bank.state.isDiskFull = false;
  expect((await entryOf(ids[0] as string)).state).toBe('built');
  await world.wait(60_000);
  return ids;
}

test.each([
  ['a return', 'acked'],
  ['a duplicate', 'acked'],
])('%s of a file that was never handed over gives nothing back and completes nobody: payouts stop', async (what) => {
  const merchantId = await shopWith(BTC);
  const [first = '', second = ''] = await built(merchantId, 2);
  const { trace, file } = await entryOf(first);
  if (what === 'a return') bank.answerTo({ trace, cents: 9_900n, code: 'R03' });
  else bank.hadBefore(file);
  await bank.look();
  await world.wait(30 * DAY);
  await bank.look();
  expect([(await row(first)).status, (await row(second)).status]).toEqual(['processing', 'processing']);
  expect([(await entryOf(first)).state, bank.executed]).toEqual(['built', []]);
  expect((await openBreakers(ctx.db)).flatMap(({ trippedBy }) => trippedBy)).toEqual(['INV-20']);
  expect(bank.troubles.join()).toContain(`${file}, which was never handed over`);
  // a person has found that it is nonsense
  for (const { id } of bank.reports()) await bank.acknowledge(id);
  await clearBreakers(ctx.db, 'ann', world.now());
  await bank.look();
  expect(bank.executed.map(({ name }) => name)).toEqual([file]);
  await world.wait(30 * DAY);
  await bank.look();
  expect([(await row(first)).status, (await row(second)).status]).toEqual(['completed', 'completed']);
  expect(await ledgerFindings()).toEqual([]);
});

test('a refusal of a file that the bank has had counts, though database and copies were put back to before its hand-over', async () => {
  const merchantId = await shopWith(BTC);
  const [id = ''] = await built(merchantId, 1);
  const { file } = await entryOf(id);
  const bytes = ctx.ports.sealing.open((await readAchBytes(ctx.db, file)) ?? new Uint8Array(), file);
  bank.executed.push({ name: file, bytes, sha256: createHash('sha256').update(bytes).digest() });
  bank.refuse(file);
  await bank.look();
  expect([(await row(id)).status, await of(merchantId, 'available'), bank.reports()]).toEqual(['failed', BTC, []]);
  expect(await openBreakers(ctx.db)).toEqual([]);
  expect(await ledgerFindings()).toEqual([]);
});

/** A file whose hand-over never reached the bank, of which our folder has a copy. */
async function lost(merchantId: bigint, many: number): Promise<readonly string[]> {
  const ids: string[] = [];
  for (let n = 0; n < many; n++) ids.push(await requested(merchantId));
  world.pass(1);
  bank.cutOff();
  bank.state.next = ['lost_request'];
  await bank.look();
  const { file, state } = await entryOf(ids[0] as string);
  const arrived = bank.executed.some(({ name }) => name === file);
  expect([state, bank.copies.has(file), arrived]).toEqual(['unknown', true, false]);
  return ids;
}

test.each(['a return', 'a duplicate', 'a refusal'])(
  '%s of a file of which we have a copy, and the bank has none, neither completes nor gives back: payouts stop',
  async (what) => {
    const merchantId = await shopWith(BTC);
    const ids = await lost(merchantId, 2);
    const { trace, file } = await entryOf(ids[0] as string);
    const before = await of(merchantId, 'available');
    if (what === 'a return') bank.answerTo({ trace, cents: 9_900n, code: 'R03' });
    else if (what === 'a duplicate') bank.hadBefore(file);
    else bank.refuse(file);
    // at first its hand-over is of unknown outcome; the bank says that it has none, and it waits with its copy
    for (let look = 0; look < 3; look++) {
      await bank.look();
      await world.wait(30 * DAY);
    }
    expect(await Promise.all(ids.map(async (id) => (await row(id)).status))).toEqual(['processing', 'processing']);
    expect([(await entryOf(ids[0] as string)).state, bank.executed, bank.reports().length]).toEqual(['built', [], 1]);
    expect(await of(merchantId, 'available')).toBe(before);
    expect((await openBreakers(ctx.db)).flatMap(({ trippedBy }) => trippedBy)).toEqual(['INV-20']);
    expect(bank.troubles.join()).toContain(`${file}, which was never handed over`);
    for (const { id } of bank.reports()) await bank.acknowledge(id);
    await clearBreakers(ctx.db, 'ann', world.now());
    await bank.look();
    await world.wait(30 * DAY);
    await bank.look();
    expect(bank.executed.map(({ name }) => name)).toEqual([file]);
    expect(await Promise.all(ids.map(async (id) => (await row(id)).status))).toEqual(['completed', 'completed']);
    expect(await ledgerFindings()).toEqual([]);
  },
);

test('a return beside one of a file that the bank cannot have holds back its own file too', async () => {
  const [one, two] = [await shopWith(BTC), await shopWith(BTC)];
  const paid = await requested(one);
  world.pass(1);
  bank.cutOff();
  await bank.look();
  const [early = ''] = await lost(two, 1);
  bank.returnBeside((await entryOf(paid)).trace, (await entryOf(early)).trace);
  await bank.look();
  await world.wait(30 * DAY);
  await bank.look();
  expect([(await row(paid)).status, (await row(early)).status]).toEqual(['processing', 'processing']);
  for (const { id } of bank.reports()) await bank.acknowledge(id);
  bank.answer((await entryOf(paid)).trace, 'R03');
  await clearBreakers(ctx.db, 'ann', world.now());
  await bank.look();
  expect((await row(paid)).status).toBe('failed');
});

test.each(['a return', 'a duplicate'])(
  '%s of a file that still lies where the bank takes it from waits: nobody would tell that it was never taken',
  async (what) => {
    const merchantId = await shopWith(BTC);
    const id = await requested(merchantId);
    world.pass(1);
    bank.cutOff();
    bank.state.isLeaving = true;
    await bank.look();
    const { file, trace } = await entryOf(id);
    if (what === 'a return') bank.answer(trace, 'R03');
    else bank.hadBefore(file);
    await bank.look();
    await world.wait(30 * DAY);
    await bank.look();
    expect([(await row(id)).status, (await entryOf(id)).state]).toEqual(['processing', 'unknown']);
    expect(bank.troubles.join()).toContain(`about file ${file}, which still lies where the bank takes it from`);
    expect(await openBreakers(ctx.db)).toEqual([]);
    bank.state.isLeaving = false;
    await bank.look();
    await bank.look();
    expect([(await row(id)).status, bank.reports()]).toEqual([what === 'a return' ? 'failed' : 'processing', []]);
  },
);

test('a refusal of a file that the bank has not taken yet waits until it has: it would be given back, and then paid', async () => {
  const merchantId = await shopWith(BTC);
  const id = await requested(merchantId);
  world.pass(1);
  bank.cutOff();
  bank.state.isLeaving = true;
  await bank.look();
  const { file, state } = await entryOf(id);
  expect(state).toBe('unknown');
  bank.refuse(file);
  await bank.look();
  await world.wait(60_000);
  await bank.look();
  expect([(await row(id)).status, await of(merchantId, 'available')]).not.toEqual(['failed', BTC]);
  expect(bank.troubles.join()).toContain(`about file ${file}, which still lies where the bank takes it from`);
  bank.state.isLeaving = false;
  await bank.look();
  await bank.look();
  expect([(await row(id)).status, await of(merchantId, 'available')]).toEqual(['failed', BTC]);
  expect(await ledgerFindings()).toEqual([]);
});
