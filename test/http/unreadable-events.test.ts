// An event whose payout names a bank account that cannot be opened (its key is lost) is shown without the account, and one whose object is gone
// is not shown; nothing else of anybody is lost or held up by them.
import { expect, test } from 'vitest';
import { unreadablePayout } from '../support/unreadable-payout.ts';
import { useStreams } from './stream-calls.ts';

const calls = useStreams();

test('is listed and streamed without the account, and so is its payout; what was written with it is told to everybody else', async () => {
  const { api } = calls;
  const known = await calls.started('other');
  const other = await calls.open({}, {}, 'other');
  const mine = await calls.open();
  const cursor = mine.cursor();
  // an event of the other merchant in the same commit
  const id = await unreadablePayout(api, () =>
    api.sql(
      `insert into events (merchant_id, object_id, sequence, type, status, previous, reason, at)
         select merchant_id, id, 2, 'transaction.reorged', 'started', 'started', 'a test', now() from transactions where id = $1`,
      [known],
    ),
  );
  const after = await calls.started();
  const theirs = await calls.started('other');
  await other.count(2);
  await mine.count(2);
  expect(other.events().map(({ data: { object } }) => object.transaction_id)).toEqual([known, theirs]);
  expect(mine.events().map(({ data: { object } }) => object.id ?? object.transaction_id)).toEqual([id, after]);
  const [told] = mine.events();
  expect(told).toMatchObject({ type: 'payout.pending', data: { object: { id, destination: null } } });
  const again = await calls.open({}, { 'last-event-id': cursor });
  await again.count(2);
  expect(again.events()).toEqual(mine.events());
  const { status, json } = await api.call('/list_events', { object: 'payout' });
  expect([status, json.data]).toEqual([200, [told]]);
  const payout = (await api.call('/check_payout', { payout_id: id })).json.payout;
  expect(payout).toMatchObject({ id, destination: null });
  expect((await api.call('/list_payouts', {})).json.data).toEqual([payout]);
});

test('whose object is gone is told to nobody, and what was written around it is', async () => {
  const { api } = calls;
  const other = await calls.open({}, {}, 'other');
  const mine = await calls.open();
  const cursor = mine.cursor();
  const before = await calls.started();
  await api.sql(
    `insert into events (merchant_id, object_id, sequence, type, status, reason, at)
       select id, 'txn_' || repeat('z', 22), 1, 'transaction.started', 'started', 'a test', now() from merchants where affiliate_id = $1`,
    [api.affiliateId],
  );
  const after = await calls.started();
  const theirs = await calls.started('other');
  await other.count(1);
  await mine.count(2);
  const told = [mine, other].map((one) => one.events().map(({ data: { object } }) => object.transaction_id));
  expect(told).toEqual([[before, after], [theirs]]);
  const again = await calls.open({}, { 'last-event-id': cursor });
  await again.count(2);
  expect(again.events()).toEqual(mine.events());
  const { status, json } = await api.call('/list_events', { object: 'transaction', limit: 3 });
  expect([
    status,
    json.data.map((event: { data: { object: { transaction_id: string } } }) => event.data.object.transaction_id),
  ]).toEqual([200, [after, before]]);
});
