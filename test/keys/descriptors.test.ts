// The descriptors of `bursar keys show-descriptors`, accepted by a real bitcoind and a real litecoind; and spending with nothing but the 24
// words.
import { mkdtempSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { HDKey } from '@scure/bip32';
import { mnemonicToSeedSync } from '@scure/bip39';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import type { UtxoCode } from '../../src/core/currency.ts';
import { withChecksum } from '../../src/core/descriptor.ts';
import { createAddressPool } from '../../src/flow/addresses/pool.ts';
import { importKey } from '../../src/store/chain/xpubs.ts';
import { askCli, runCli } from '../cli/run.ts';
import { startBitcoind } from '../support/bitcoind.ts';
import type { CoreDaemon } from '../support/core-daemon.ts';
import { startLitecoind } from '../support/litecoind.ts';
import { freshDatabase } from '../support/postgres.ts';
import { openSigner, type RunningSigner } from '../support/signer.ts';
import { keyContext } from './context.ts';
import { account, canonicalVersions } from './vectors.ts';

vi.setConfig({ testTimeout: 120_000, hookTimeout: 120_000 });

type Import = { desc: string; range: [number, number] };
type Account = {
  currency: string;
  in_use: boolean;
  origin: string;
  path: string | null;
  descriptor: string;
  ranges: { first: number; last: number; certain: boolean }[];
  import: Import[];
};
let database: Awaited<ReturnType<typeof freshDatabase>>;
let folder: string;
let here: Record<string, string>;
let signer: RunningSigner;
let words: string;
let bitcoind: CoreDaemon;

beforeAll(async () => {
  database = await freshDatabase();
  folder = mkdtempSync(join(tmpdir(), 'bursar-descriptors-'));
  here = { DATABASE_URL: database.url, BURSAR_DATA_DIR: folder, BURSAR_NETWORK: 'regtest' };
  words = (await askCli<{ mnemonic: string }>(['keys', 'init'], here)).mnemonic;
  signer = await openSigner(database.db);
  bitcoind = await startBitcoind();
  await bitcoind.mine(101);
});
afterAll(async () => {
  await bitcoind?.remove();
  await signer?.close();
  await database?.drop();
  await rm(folder, { recursive: true, force: true });
});

async function give(currency: UtxoCode, count: number): Promise<{ address: string; index: number }[]> {
  const pool = createAddressPool(keyContext(database.db, 'regtest'), currency, { ready: 10 });
  return Promise.all(Array.from({ length: count }, async () => pool.next()));
}
const accounts = async (currency: string): Promise<Account[]> => {
  const shown = await askCli<{ accounts: Account[] }>(['keys', 'show-descriptors'], here);
  return shown.accounts.filter((one) => one.currency === currency);
};

test('a node derives our addresses from them, in the ranges that were given out, of earlier accounts too', async () => {
  const before = await give('BTC', 12);
  await importKey(database.db, {
    currency: 'BTC',
    xpub: account('BTC', 'regtest').publicExtendedKey,
    at: new Date(),
    start: 700,
  });
  const after = await give('BTC', 12);
  const shown = await accounts('BTC');
  expect(shown.map((one) => [one.origin, one.in_use, one.path])).toEqual([
    ['signer', false, "m/84'/1'/0'"],
    ['imported', true, null],
  ]);
  for (const [at, given] of [before, after].entries()) {
    const { descriptor, ranges } = shown[at]!;
    expect(await bitcoind.rpc<{ descriptor: string }>('getdescriptorinfo', descriptor)).toMatchObject({ isrange: true });
    const [range] = ranges;
    expect(ranges).toEqual([{ first: at === 0 ? 0 : 700, last: range!.last, certain: true }]);
    const derived = await bitcoind.rpc<string[]>('deriveaddresses', descriptor, [range!.first, range!.last]);
    for (const { address, index } of given) expect(derived[index - range!.first]).toBe(address);
  }
  await importKey(database.db, { currency: 'BTC', xpub: (await ownKey("m/84'/1'/0'")).publicExtendedKey, at: new Date() });
});

test('a litecoind derives ours of LTC', async () => {
  const litecoind = await startLitecoind({ mweb: false });
  try {
    const given = await give('LTC', 5);
    const [shown] = await accounts('LTC');
    const derived = await litecoind.rpc<string[]>('deriveaddresses', shown!.descriptor, [0, 10]);
    for (const { address, index } of given) expect(derived[index]).toBe(address);
  } finally {
    await litecoind.remove();
  }
});

test('payments are watched with the import list, and spent with the words alone', async () => {
  const [given] = await give('BTC', 1);
  await bitcoind.pay(given!.address, '1.5');
  await bitcoind.mine(1);
  const list = (await accounts('BTC')).flatMap((one) => one.import);
  await bitcoind.rpc('createwallet', 'watching', true, true);
  const watched = await bitcoind.walletRpc<{ success: boolean }[]>(
    'watching',
    'importdescriptors',
    list.map((one) => ({ ...one, timestamp: 0 })),
  );
  expect(watched.every(({ success }) => success)).toBe(true);
  const balances = await bitcoind.walletRpc<{ mine: { trusted: number } }>('watching', 'getbalances');
  expect(balances.mine.trusted).toBe(1.5);

  const root = await ownKey('m');
  const desc = withChecksum(`wpkh(${root.privateExtendedKey}/84h/1h/0h/0/*)`);
  await bitcoind.rpc('createwallet', 'spending', false, true);
  const own = list.find(({ desc: one }) => one.includes('/84h/1h/0h]'))!;
  const taken = await bitcoind.walletRpc<{ success: boolean }[]>('spending', 'importdescriptors', [
    { desc, range: own.range, timestamp: 0 },
  ]);
  expect(taken).toMatchObject([{ success: true }]);
  const txid = await bitcoind.walletRpc<{ txid: string; complete: boolean }>('spending', 'sendall', [
    await bitcoind.walletRpc('w', 'getnewaddress'),
  ]);
  expect(txid.complete).toBe(true);
});

/** A key of the words. */
async function ownKey(path: string): Promise<HDKey> {
  const root = HDKey.fromMasterSeed(mnemonicToSeedSync(words), canonicalVersions('regtest'));
  return path === 'm' ? root : root.derive(path);
}

test('indexes that may have been given out are a range of their own, and no range is too large to import', async () => {
  await database.db.query({
    text: `with key as (update account_xpubs set next_index = 2500100 where currency = 'DASH' returning id)
           insert into skipped_addresses (account_xpub_id, first_index, end_index, cause) select id, 100, 2500050, 'journal_lost' from key`,
  });
  const [dash] = await accounts('DASH');
  expect(dash!.ranges).toEqual([
    { first: 0, last: 99, certain: true },
    { first: 100, last: 1_000_099, certain: false },
    { first: 1_000_100, last: 2_000_099, certain: false },
    { first: 2_000_100, last: 2_500_049, certain: false },
    { first: 2_500_050, last: 2_500_099, certain: true },
  ]);
  const shown = await askCli<{ skipped: { currency: string; last_index: number }[] }>(['keys', 'show-xpubs'], here);
  expect(shown.skipped).toMatchObject([{ currency: 'DASH', last_index: 2_500_049, cause: 'journal_lost' }]);
});

test('keys verify says who was asked, and answers without a signer and without its seed too', async () => {
  type Verified = {
    ok: boolean;
    signer: { runs: boolean; asked: string | null; trouble: string | null };
    keys: { verdict: string }[];
  };
  expect(await askCli<Verified>(['keys', 'verify'], here)).toMatchObject({ ok: true, signer: { runs: true, asked: 'seed' } });
  await signer.close();
  const text = await runCli(['keys', 'verify'], here);
  expect(text).toMatchObject({ code: 0 });
  expect(text.out).toMatch(/its seed, opened here: no signer runs on this data folder/);
  expect(text.out).toMatch(/No signer runs on this database: only addresses that are ready already are given out/);
  await rm(join(folder, 'signer', 'seed.json'));
  const blind = await askCli<Verified>(['keys', 'verify'], here, 1);
  expect(blind).toMatchObject({ ok: false, signer: { runs: false, asked: null } });
  expect(blind.signer.trouble).toMatch(/no signer runs on this data folder, and there is no seed in/);
  expect(new Set(blind.keys.map(({ verdict }) => verdict))).toEqual(new Set(['unknown', 'imported']));
  signer = await openSigner(database.db);
});
