// What our addresses have sent of a token did something else than it asks for, and no fee was kept either: nobody but a person knows what it has done.
// Payouts stop, and an operator's word ends it.
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { openBreakers } from '../../src/store/ledger/breakers.ts';
import { readPayout } from '../../src/store/payouts/reads.ts';
import { writeOffAt } from '../../src/worker/payouts/evm/write-off.ts';
import { type Alteration, receipts } from '../support/nodes/altered-node.ts';
import { FINAL, LATER_MS, receiveDollars } from './evm-lied-to.ts';
import { ledgerIsChain, works } from './evm-steps.ts';
import { openOnTwoNodes, type TwoNodes } from './two-nodes.ts';

const TIMEOUT = 300_000;
const PAYEE = `0x${'c7'.repeat(20)}`;
let nodes: TwoNodes;
let service: TwoNodes['service'];
const lost = () => service.balance('expense:written_off:USDT');
const ended = async (address: string) =>
  (await writeOffAt(service.ctx, { address, takesBack: false, by: 'operator test', evidence: 'as its events say' })).map(
    (one) => one.ended,
  );
const refusal = (what: string) => expect.objectContaining({ code: 'not_resolvable', message: expect.stringContaining(what) });
/** Of every transfer to somebody, both nodes show one more event: again, or of one unit to somebody else. */
function altered(payee: string, other: boolean, kept?: { readonly of: string; readonly units: bigint }): void {
  const balanceOf = `0x70a08231${kept?.of.slice(2).padStart(64, '0')}`;
  const word = (hex: string): string => `0x${hex.padStart(64, '0')}`;
  const alteration: Alteration = {
    ...receipts((one) => {
      const [log] = one.logs;
      if (log === undefined || one.logs.length > 1 || log.topics[2] !== word(payee.slice(2))) return one;
      const more = { ...log, topics: [...log.topics.slice(0, 2), word('e3'.repeat(20))], data: word('1') };
      return { ...one, logs: [log, other ? more : log] };
    }),
    instead: ({ method, params }) =>
      kept !== undefined && method === 'eth_call' && (params[0] as { data?: string }).data === balanceOf
        ? { result: word(kept.units.toString(16)) }
        : null,
  };
  for (const node of [nodes.read, nodes.other]) node.alter(alteration);
}
async function isWhole(): Promise<void> {
  const own = await Promise.all((['ETH', 'USDT'] as const).map((currency) => service.hot(currency)));
  const { rows } = await service.db.query<{ address: string }>({ text: 'select lower(address) as address from transactions' });
  await ledgerIsChain(service, [...own, ...rows.map(({ address }) => address)]);
}

beforeAll(async () => {
  nodes = await openOnTwoNodes();
  ({ service } = nodes);
  await receiveDollars(service, 500n);
  await works(service, 3);
}, TIMEOUT);
afterAll(() => nodes?.close(), TIMEOUT);
afterEach(() => {
  for (const node of [nodes.read, nodes.other]) node.alter({});
});

test('a payout is completed', { timeout: TIMEOUT }, async () => {
  const hot = await service.hot('USDT');
  altered(PAYEE, false);
  const id = await service.request(PAYEE);
  await service.work(LATER_MS);
  await service.mine(2);
  await service.work(LATER_MS);
  expect((await openBreakers(service.db)).flatMap(({ findings }) => findings)).toEqual([
    expect.stringContaining(`bursar chain write-off ${hot}`),
  ]);
  await service.findings();
  await expect(ended(hot)).rejects.toEqual(refusal('once two nodes call its block final'));
  await service.mine(FINAL);
  await works(service, 1);
  await expect(ended(hot)).rejects.toEqual(refusal('was not read twice yet'));
  await service.findings();
  // it has taken less than it asks for
  altered(PAYEE, false, { of: hot, units: (await service.units(hot)) + 1n });
  await expect(ended(hot)).rejects.toEqual(refusal('it has not taken all that it asks for'));
  expect(await readPayout(service.db, id)).toMatchObject({ status: 'processing' });
  altered(PAYEE, false);
  expect(await ended(hot)).toEqual([expect.stringMatching(/^0x/)]);
  expect(await readPayout(service.db, id)).toMatchObject({ status: 'completed' });
  const { rows } = await service.db.query<{ reason: string }>({
    text: `select reason from events where object_id = $1 and status = 'completed'`,
    values: [id],
  });
  expect(rows).toEqual([{ reason: 'an operator found it paid: as its events say' }]);
  await expect(ended(hot)).rejects.toEqual(refusal('lacks nothing'));
  await service.goOn();
  // also where it is looked at once more
  await service.db.query({ text: `update outgoing_batches set due_at = '-infinity'` });
  service.restart();
  await works(service, 2);
  expect(await openBreakers(service.db)).toEqual([]);
  expect(await lost()).toBe(0n);
  await isWhole();
});

test('a sweep with one more event of little is moved', { timeout: TIMEOUT }, async () => {
  altered(await service.hot('USDT'), true);
  const { address } = await service.owe('USDT', 300_00n);
  await service.pay('USDT', address, 300_000_000n);
  await service.mine(FINAL);
  await works(service, 3);
  expect((await openBreakers(service.db)).flatMap(({ findings }) => findings).join()).toContain(
    `bursar chain write-off ${address}`,
  );
  await service.findings();
  expect(await ended(address)).toEqual([expect.stringMatching(/^0x/)]);
  await service.goOn();
  await works(service, 2);
  expect(await openBreakers(service.db)).toEqual([]);
  expect(await lost()).toBe(0n);
  await isWhole();
});
