// Whoever writes the script of another payee into a transaction of his own gets no payout that goes there: what is booked to a transaction here
// leaves no trace on the chain, so its address must be one that a key of ours gives.
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { Context } from '../../../src/flow/context.ts';
import { requestPayout } from '../../../src/flow/payouts/bitcoin-request.ts';
import { bookInternalPayouts } from '../../../src/flow/payouts/internal-payouts.ts';
import { isTrusted } from '../../../src/signer/intent-trust.ts';
import { batchesOf } from '../../support/batches.ts';
import { OUTSIDE, tellFee } from '../../support/funded.ts';
import { INTENT_KEY } from '../../support/ports.ts';
import { openServiceOnDatabase, type ServiceOnDatabase } from '../../support/service-on-database.ts';

const KEY = INTENT_KEY.sign(new Uint8Array()).keyId;
let service: ServiceOnDatabase;
let ctx: Context;
let batches: ReturnType<typeof batchesOf>;
let thiefs: string;
beforeEach(async () => {
  service = await openServiceOnDatabase();
  ({ ctx } = service);
  await tellFee(ctx);
  batches = batchesOf(service);
  await batches.earn(3);
  ({ transactionId: thiefs } = await service.create(1_000_00n, 'BTC', await service.openShop('thief')));
});
afterEach(() => service.drop());
const asService = (text: string, values: unknown[]) => ctx.db.query({ text, values });
const pay = (destination: string) => requestPayout(ctx, { merchantId: service.merchantId, amount: '0.01', destination });

test('a payout to it is refused when it is requested', async () => {
  const script = Buffer.from(ctx.ports.destinations.outputScript('BTC', OUTSIDE));
  await asService('update transactions set script = $2 where id = $1', [thiefs, script]);
  await expect(pay(OUTSIDE)).rejects.toMatchObject({ code: 'invalid_destination' });
  expect((await service.admin.query('select count(*)::int as n from payouts')).rows[0].n).toBe(0);
});

test('and waits where it would be booked, with an alarm', async () => {
  const { rows } = await service.admin.query('select address from transactions where id = $1', [thiefs]);
  const { id } = await pay(rows[0].address);
  await asService('update transactions set address_index = address_index + 1 where id = $1', [thiefs]);
  const troubles: string[] = [];
  await bookInternalPayouts(ctx, {
    intents: async () => (intent, keyId, signature) => isTrusted([KEY], intent, keyId, signature),
    onTrouble: (what) => troubles.push(what),
  });
  expect(await batches.row(id)).toMatchObject({ status: 'pending', held_reason: 'approval' });
  expect(troubles).toEqual([`payout ${id} pays no transaction of another merchant`]);
});
