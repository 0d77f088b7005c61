// Something is gone from addresses of ours, and one of two nodes goes on saying that it is there, whichever of them is read: nothing stops by one node's
// word, and what the other one says is told wherever an operator looks.
import { afterAll, beforeAll, expect, test } from 'vitest';
import { evmAddressOf, evmScript } from '../../src/core/currencies/evm.ts';
import { readReadiness } from '../../src/flow/readiness.ts';
import { balancesToCompare } from '../../src/store/sweeps/balances.ts';
import { auditJobs } from '../../src/worker/audit-jobs.ts';
import type { Alteration } from '../support/nodes/altered-node.ts';
import { readsBalances } from './altered-anvil.ts';
import { FINAL } from './evm-lied-to.ts';
import { earnsDollars, isDestroyed } from './evm-steps.ts';
import { openOnTwoNodes, type TwoNodes } from './two-nodes.ts';

const TIMEOUT = 300_000;
const UNITS = 300_000_000n;
/** At so many addresses what a node has denied is asked about before others. */
const MOST_DENIED = 50;
const BALANCE_OF = '0x70a08231';
let nodes: TwoNodes;
let service: TwoNodes['service'];

beforeAll(async () => {
  nodes = await openOnTwoNodes();
  ({ service } = nodes);
  await earnsDollars(service);
}, TIMEOUT);
afterAll(() => nodes?.close(), TIMEOUT);

const word = (amount: bigint): string => amount.toString(16).padStart(64, '0');
/** An address has so many units, it says. */
const saysUnits = (address: string, units: bigint): Alteration => ({
  instead({ method, params: [call] }) {
    const data = (call as { readonly data?: string } | undefined)?.data ?? '';
    return method === 'eth_call' && data.startsWith(BALANCE_OF) && data.endsWith(address.slice(2))
      ? { result: `0x${word(units)}` }
      : null;
  },
});
/** The same of ether, among those that are asked for together. */
const saysEther = (address: string, wei: bigint): Alteration => ({
  afterwards(call, answer) {
    if (!readsBalances(call) || typeof answer.result !== 'string') return answer;
    const asked = (call.params[0] as { readonly data: string }).data.slice(2);
    const count = (answer.result.length - 2) / 64 - 2;
    const all = Array.from({ length: count }, (_, at) => asked.slice(asked.length - (count - at) * 40).slice(0, 40));
    const words = (answer.result.slice(2).match(/.{64}/g) ?? []).map((one, at) =>
      at >= 2 && `0x${all[at - 2]}` === address ? word(wei) : one,
    );
    return { result: `0x${words.join('')}` };
  },
});
const problems = async () => (await readReadiness(service.ctx, service.ctx.currencies)).problems.join();
async function logged(): Promise<string> {
  const told: string[] = [];
  await service.db.query({ text: `delete from schedules where name = 'audit'` });
  const job = auditJobs(service.ctx, service.ctx.currencies, (_, error) => told.push((error as Error).message)).find(
    ({ name }) => name === 'audit',
  );
  await job?.run();
  return told.join();
}

test.each(['read', 'other'] as const)(
  'the one that is %s hides what is destroyed of USDT, and ether that has left: both are told, and stop nothing',
  { timeout: TIMEOUT },
  async (liar) => {
    const { address } = await service.owe('USDT', 300_00n);
    const owed = await service.owe('ETH', 30_00n);
    await service.pay('USDT', address, UNITS);
    await service.pay('ETH', owed.address, 10n ** 16n);
    await service.mine(FINAL);
    expect(await service.findings()).toEqual([]);
    await isDestroyed(service, address);
    await service.anvil.rpc('anvil_setBalance', owed.address, '0x1');
    const [units, ether] = [saysUnits(address, UNITS), saysEther(owed.address, 10n ** 16n)];
    nodes[liar].alter({ ...units, ...ether });
    await service.mine(FINAL);
    const honest = new URL(nodes[liar === 'read' ? 'other' : 'read'].url).host;
    const ofEther = `${owed.address} of ${owed.id} had ${10n ** 16n} of ETH after block [0-9]+ by the word of one node, and only 1 by that of ${honest}, where ${10n ** 16n} are known`;
    const ofUnits = `${address} of txn_[^ ]+ had ${UNITS} of USDT after block [0-9]+ by the word of one node, and only 0 by that of ${honest}, where ${UNITS} are known`;
    const findings = (await service.findings()).filter((one) => !one.startsWith('EVM-2'));
    expect(findings).toEqual(
      [expect.stringMatching(`^EVM-3: ${ofEther}`), expect.stringMatching(`^EVM-3: ${ofUnits}`)].sort((a, b) =>
        Number(String(a) > String(b)),
      ),
    );
    for (const told of [await problems(), await logged()])
      for (const one of [ofEther, ofUnits]) expect(told).toMatch(new RegExp(one));
    // both say the same again: it is missing, or it is there
    nodes[liar].alter({});
    expect((await service.findings()).filter((one) => /^EVM-[13]/.test(one))).toEqual([
      expect.stringMatching(/^EVM-1: .* of ETH/),
      expect.stringMatching(/^EVM-1: .* of USDT/),
    ]);
    expect(await problems()).not.toContain('by the word of one node');
    await service.anvil.rpc('anvil_setBalance', owed.address, `0x${(10n ** 16n).toString(16)}`);
    await service.anvil.deal(address, UNITS);
    await service.mine(FINAL);
    expect((await service.findings()).filter((one) => /^EVM-[13]/.test(one))).toEqual([]);
  },
);

test('what a node has denied is asked about again before what was never compared, but for where that would be all', {
  timeout: TIMEOUT,
}, async () => {
  const { address } = await service.owe('USDT', 300_00n);
  await service.pay('USDT', address, UNITS);
  await service.mine(FINAL);
  nodes.other.alter(saysUnits(address, 0n));
  expect((await service.findings()).filter((one) => one.startsWith('EVM-3'))).toEqual([expect.stringContaining(address)]);
  const { rows } = await service.db.query<{ first: number }>({
    text: `select count(*)::int as first from (select script from own_addresses where currency = 'USDT'
             union select script from address_balances c where currency = 'USDT' and found <> known) s`,
  });
  const first = rows[0]?.first as number;
  const fresh = await service.owe('USDT', 300_00n);
  await service.pay('USDT', fresh.address, UNITS);
  await service.mine(FINAL);
  const chosen = async (limit: number): Promise<readonly string[]> =>
    (await balancesToCompare(service.db, 'USDT', { height: 2 ** 30, limit })).map(({ script }) =>
      evmAddressOf(script.toString('hex')),
    );
  expect(await chosen(first + 1)).toEqual(expect.arrayContaining([address]));
  expect(await chosen(first + 1)).not.toContain(fresh.address);
  const others = Array.from({ length: 60 }, (_, at) =>
    Buffer.from(evmScript(`0x${(at + 1).toString(16).padStart(40, '0')}`), 'hex'),
  );
  await service.db.query({
    text: `insert into address_balances (currency, script, height, known, found, said_less, said_less_by, compared_at)
             select 'USDT', u.script, 1, 5, 5, 0, 'node:1', now() from unnest($1::bytea[]) as u(script)`,
    values: [others],
  });
  expect(await chosen(first + MOST_DENIED + 1)).toContain(fresh.address);
});
