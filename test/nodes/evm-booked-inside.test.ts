// A booked payment by a contract that a reorganisation moves to another block, which another node shows by balances only: what balances show takes
// its place, with what was lost of it.
import { expect, test } from 'vitest';
import { callData, rawOf } from '../support/evm/anvil.ts';
import { FORWARDER } from '../support/evm/compiled.ts';
import { WITHOUT_TRACES } from '../support/nodes/altered-node.ts';
import { openOnTwoNodes } from './two-nodes.ts';

const TIMEOUT = 300_000;
const ETHER = 10n ** 18n;
const BOOKED = 15;
const FINAL = 70;

test('it is credited once, whatever became of its name', { timeout: TIMEOUT }, async () => {
  const { service, read, close } = await openOnTwoNodes({ other: WITHOUT_TRACES });
  const credited = async () => service.balance(`merchant:${service.merchantId}:available:ETH`);
  try {
    const { id, address } = await service.owe('ETH', 300_00n);
    const input = callData(FORWARDER, 'halves(address)', address);
    const sent = await service.anvil.send({ to: service.anvil.forwarder, input, value: ETHER / 10n });
    await service.mine(BOOKED);
    expect([await service.status(id), await credited()]).toEqual(['succeeded', ETHER / 10n]);
    // it is away, and the other one is read
    read.alter({ instead: () => ({ error: { code: -32005, message: 'limit exceeded' } }) });
    await service.anvil.rpc('anvil_reorg', BOOKED, [[rawOf(sent), 2]]);
    for (let tries = 0; tries < 5; tries++) await service.mine().catch(() => undefined);
    await service.mine(FINAL);
    const { rows } = await service.db.query<{ state: string; txid: string; amount: string }>({
      text: 'select state, txid, amount from payments where transaction_id = $1 order by id',
      values: [id],
    });
    expect(rows.map(({ state, amount }) => [state, BigInt(amount)])).toEqual([
      ['conflicted', ETHER / 20n],
      ['conflicted', ETHER / 20n],
      ['mined', ETHER / 10n],
    ]);
    expect([await service.status(id), await credited()]).toEqual(['succeeded', ETHER / 10n]);
    expect(await service.findings()).toEqual([]);
  } finally {
    await close();
  }
});
