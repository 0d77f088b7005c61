// The chain of hashes over the ledger against the owner of the database, who can change every row and has not the key that seals.
import { afterAll, beforeAll, expect, test } from 'vitest';
import { auditLinks, extendLinks } from '../../src/flow/ledger-links.ts';
import { vouch } from '../../src/flow/merchants/seals.ts';
import { createRowSeals } from '../../src/outside/row-seals.ts';
import { batchesOf } from '../support/batches.ts';
import { openServiceOnDatabase, type ServiceOnDatabase } from '../support/service-on-database.ts';

let service: ServiceOnDatabase;
let batches: ReturnType<typeof batchesOf>;
beforeAll(async () => {
  service = await openServiceOnDatabase();
  batches = batchesOf(service);
  await batches.earn(2);
  await extendLinks(service.ctx);
  await batches.earn(2);
  await extendLinks(service.ctx);
  // nothing new makes no link
  await extendLinks(service.ctx);
});
afterAll(() => service.drop());

const audited = async (): Promise<readonly string[]> => (await auditLinks(service.ctx)).findings;
/** What the audit says after a change by the database's owner, which is then put back. */
async function after(change: string, back: string): Promise<readonly string[]> {
  const owner = (text: string) =>
    service.admin.query(`set session_replication_role = replica; ${text}; set session_replication_role = origin`);
  await owner(change);
  const found = await audited();
  await owner(back);
  expect(await audited()).toEqual([]);
  return found;
}

test('every entry is covered once, in the order of the entries', async () => {
  const { rows } = await service.admin.query('select number, last_entry from ledger.link order by number');
  const last = (await service.admin.query('select max(id) as id from ledger.entry')).rows[0].id;
  expect(rows.map(({ number }) => Number(number))).toEqual([1, 2]);
  expect(rows[1].last_entry).toEqual(last);
  expect(await audited()).toEqual([]);
});

test('amounts, owners, times and parts that were changed, and entries that were added or taken away, are named (INV-18)', async () => {
  const first = (await service.admin.query('select min(id) as id, max(id) as last from ledger.entry')).rows[0];
  const covered = (await service.admin.query('select last_entry from ledger.link where number = 1')).rows[0].last_entry;
  const said = [`entries 1 to ${covered} are not what they were`];
  const twice = (text: string): [string, string] => [text.replace('%', '+'), text.replace('%', '-')];
  const swapped = 'update ledger.posting set amount = -amount';
  expect(await after(`${swapped} where entry_id = ${first.id}`, `${swapped} where entry_id = ${first.id}`)).toEqual(said);
  expect(await after(...twice(`update ledger.posting set account_id = account_id % 1000 where entry_id = ${first.id}`))).toEqual(
    said,
  );
  expect(
    await after(...twice(`update ledger.entry set created_at = created_at % interval '1 s' where id = ${first.id}`)),
  ).toEqual(said);
  expect(await after(...twice(`update ledger.part set amount = amount % 1 where entry_id = ${first.id}`))).toEqual(said);
  const gone = `create table gone as select * from ledger.entry where id = ${first.last}; delete from ledger.entry where id = ${first.last}`;
  const back = 'insert into ledger.entry overriding system value select * from gone; drop table gone';
  expect(await after(gone, back)).toEqual([`entries ${BigInt(covered) + 1n} to ${first.last} are not what they were`]);
});

test('a link that was computed anew over changed entries has no seal, and one that was taken away is missed', async () => {
  const flip = 'update ledger.posting set amount = -amount where entry_id = 1';
  const anew = `update ledger.link set hash = ledger.link_hash('\\x${'00'.repeat(32)}', 0, last_entry) where number = 1`;
  expect(await after(`${flip}; ${anew}`, `${flip}; ${anew}`)).toContain(
    `link 1 of the ledger, which ends with entry ${(await service.admin.query('select last_entry from ledger.link where number = 1')).rows[0].last_entry}, is not what was sealed`,
  );
  expect(
    await after('update ledger.link set number = 3 where number = 2', 'update ledger.link set number = 2 where number = 3'),
  ).toEqual(['link 2 of the ledger is gone']);
});

test('another key vouches for nothing until an operator says so', async () => {
  const seals = createRowSeals(
    () => new Uint8Array(32).fill(9),
    () => undefined,
  );
  const other = { ...service.ctx, ports: { ...service.ctx.ports, seals } };
  expect((await auditLinks(other)).findings).toHaveLength(2);
  await vouch(other);
  expect((await auditLinks(other)).findings).toEqual([]);
  expect(await audited()).toEqual([]);
});
