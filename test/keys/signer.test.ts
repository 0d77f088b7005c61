import { existsSync, mkdtempSync, readdirSync, readFileSync, realpathSync, statSync, writeFileSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { createConnection } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { HDKey } from '@scure/bip32';
import { mnemonicToSeedSync, validateMnemonic } from '@scure/bip39';
import { wordlist } from '@scure/bip39/wordlists/english.js';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { createFrameReader, encodeFrame } from '../../src/core/signer-wire.ts';
import { signerSocket } from '../../src/main/wiring/signer-paths.ts';
import { createSignerClient, type SignerClient } from '../../src/outside/signer-client.ts';
import { createAddressDerivers } from '../../src/outside/utxo/address-derivers.ts';
import { accountPath, accountsOf, mnemonicOf } from '../../src/signer/accounts.ts';
import { createKeyring, type KeyringOptions } from '../../src/signer/keyring.ts';
import { createSeed, openSeed } from '../../src/signer/seed-file.ts';
import { serveSigner } from '../../src/signer/server.ts';
import { watchPrivateKeys } from '../support/made-private-keys.ts';
import { canonicalVersions, FIRST_ADDRESSES } from './vectors.ts';

let folder: string;
const closers: (() => Promise<void> | void)[] = [];
beforeEach(() => {
  folder = realpathSync(mkdtempSync(join(tmpdir(), 'bk-')));
});
afterEach(async () => {
  for (const close of closers.splice(0)) await close();
  await rm(folder, { recursive: true, force: true });
});

const given = { kind: 'given', text: 'correct horse battery staple' } as const;
const generated = { kind: 'generated' } as const;

// signatures are tested in test/signer
const unused = () => Promise.reject(new Error('not in this test'));

async function signer(
  options: Partial<KeyringOptions> = {},
): Promise<{ client: SignerClient; socket: string; troubles: unknown[] }> {
  const keyring = createKeyring({
    folder: join(folder, 'signer'),
    network: 'sandbox',
    passphrase: generated,
    makesItsOwn: true,
    ...options,
  });
  const socket = signerSocket(folder);
  const troubles: unknown[] = [];
  const signing = { intentKeys: async () => [], sign: unused, signed: unused, show: unused as never };
  const server = await serveSigner(
    { path: socket, mode: 0o600 },
    { keyring, signing, onTrouble: (error) => troubles.push(error) },
  );
  const client = createSignerClient(socket);
  closers.push(
    () => client.close(),
    () => server.close(),
  );
  return { client, socket, troubles };
}

describe('the seed at rest', () => {
  it('opens with its passphrase only, and is not readable in the file', async () => {
    const entropy = await createSeed(folder, 'regtest', given);
    expect(entropy).toHaveLength(32);
    expect(await openSeed(folder, 'regtest', given)).toEqual(entropy);
    await expect(openSeed(folder, 'regtest', { kind: 'given', text: 'another' })).rejects.toMatchObject({ fault: 'passphrase' });
    const text = readFileSync(join(folder, 'seed.json'), 'utf8');
    expect(text).not.toContain(Buffer.from(entropy).toString('hex'));
    // two words side by side: one alone may be a word of the file
    const words = mnemonicOf(entropy).split(' ');
    for (const [at, word] of words.slice(1).entries()) expect(text).not.toMatch(new RegExp(`${words[at]}\\W+${word}`));
  });

  it('lies in files of mode 600 in a folder of mode 700; a generated passphrase says what it is', async () => {
    const own = join(folder, 'signer');
    await createSeed(own, 'sandbox', generated);
    expect(statSync(own).mode & 0o777).toBe(0o700);
    expect(readdirSync(own).sort()).toEqual(['passphrase', 'seed.json']);
    for (const name of readdirSync(own)) expect(statSync(join(own, name)).mode & 0o777).toBe(0o600);
    expect(readFileSync(join(own, 'passphrase'), 'utf8')).toMatch(/Generated, because this is a test network/);
  });

  it('is never overwritten, also when many are made at once', async () => {
    const tries = await Promise.allSettled(Array.from({ length: 6 }, () => createSeed(folder, 'sandbox', generated)));
    expect(tries.filter((one) => one.status === 'fulfilled')).toHaveLength(1);
    for (const one of tries) if (one.status === 'rejected') expect(one.reason).toMatchObject({ fault: 'exists' });
    const made = tries.find((one) => one.status === 'fulfilled');
    expect(await openSeed(folder, 'sandbox', generated)).toEqual(made?.value);
    expect(readdirSync(folder).sort()).toEqual(['passphrase', 'seed.json']);
  });

  it('does not open for another network, after any change of the file, or as another file', async () => {
    await createSeed(folder, 'sandbox', generated);
    await expect(openSeed(folder, 'mainnet', generated)).rejects.toMatchObject({ fault: 'wrong-network' });
    const path = join(folder, 'seed.json');
    const stored = JSON.parse(readFileSync(path, 'utf8'));
    writeFileSync(path, JSON.stringify({ ...stored, network: 'mainnet' }));
    await expect(openSeed(folder, 'mainnet', generated)).rejects.toMatchObject({ fault: 'passphrase' });
    writeFileSync(
      path,
      JSON.stringify({ ...stored, sealed: stored.sealed.replace(/^../, stored.sealed.startsWith('00') ? '01' : '00') }),
    );
    await expect(openSeed(folder, 'sandbox', generated)).rejects.toMatchObject({ fault: 'passphrase' });
    writeFileSync(path, '{}');
    await expect(openSeed(folder, 'sandbox', generated)).rejects.toMatchObject({ fault: 'damaged' });
    await rm(path);
    await expect(openSeed(folder, 'sandbox', generated)).rejects.toMatchObject({ fault: 'absent' });
  });

  it('is 256 random bits that the 24 words give back', async () => {
    const entropy = await createSeed(folder, 'regtest', generated);
    const words = mnemonicOf(entropy);
    expect(words.split(' ')).toHaveLength(24);
    expect(validateMnemonic(words, wordlist)).toBe(true);
    const root = HDKey.fromMasterSeed(mnemonicToSeedSync(words), canonicalVersions('regtest'));
    for (const account of accountsOf(entropy, 'regtest')) expect(root.derive(account.path).publicExtendedKey).toBe(account.xpub);
  });
});

describe('the accounts of a seed', () => {
  it('lie at the paths of BIP44 and BIP84 on mainnet, and give the published addresses', () => {
    expect(accountPath('BTC', 'mainnet')).toBe("m/84'/0'/0'");
    expect(accountPath('LTC', 'mainnet')).toBe("m/84'/2'/0'");
    expect(accountPath('BCH', 'mainnet')).toBe("m/44'/145'/0'");
    // the entropy of the twelve words that the vectors use
    const derivers = createAddressDerivers('mainnet');
    expect(accountPath('ETH', 'mainnet')).toBe("m/44'/60'/0'");
    // two currencies on one chain: nobody may get an address twice
    expect(accountPath('USDT', 'mainnet')).toBe("m/44'/60'/1'");
    for (const { currency, xpub } of accountsOf(new Uint8Array(16), 'mainnet')) {
      if (currency !== 'USDT') expect(derivers.of(currency, xpub).derive(0).address).toBe(FIRST_ADDRESSES[currency][0]);
    }
  });

  it('leave no private key behind, of the root, on the way, or of an account', () => {
    const keys = watchPrivateKeys();
    accountsOf(new Uint8Array(32).fill(7), 'mainnet');
    keys.stop();
    expect(keys.made).toHaveLength(1 + 3 * 7);
    for (const key of keys.made) expect(key.privateKey).toBeNull();
  });

  it.each(['mainnet', 'testnet', 'regtest', 'sandbox'] as const)('share no key between currencies on %s', (network) => {
    const accounts = accountsOf(new Uint8Array(32).fill(7), network);
    expect(accounts).toHaveLength(7);
    expect(new Set(accounts.map((account) => account.xpub)).size).toBe(7);
  });
});

describe('the signer on its socket', () => {
  it('gives public keys only, and confirms its own', async () => {
    const { client, socket } = await signer();
    expect(statSync(socket).mode & 0o777).toBe(0o600);
    expect(await client.ask({ op: 'ping' })).toEqual({ network: 'sandbox', keys: 'present' });
    const { accounts } = await client.ask({ op: 'xpubs' });
    expect(accounts.map((account) => account.currency)).toEqual(['BTC', 'LTC', 'ETH', 'BCH', 'DASH', 'DOGE', 'USDT']);
    for (const { currency, xpub, path } of accounts) {
      expect(xpub).toMatch(/^tpub/);
      expect(await client.ask({ op: 'confirm_xpub', currency, xpub })).toEqual({ confirmed: true, path });
    }
    const [first, second] = accounts;
    expect(await client.ask({ op: 'confirm_xpub', currency: 'BTC', xpub: second!.xpub })).toMatchObject({ confirmed: false });
    expect(await client.ask({ op: 'confirm_xpub', currency: 'XYZ', xpub: first!.xpub })).toEqual({
      confirmed: false,
      path: null,
    });
    expect(JSON.stringify(accounts)).not.toMatch(/"[a-z]?prv/);
  });

  it('keeps its seed over a restart, and answers many questions at once', async () => {
    const one = await signer();
    const before = await one.client.ask({ op: 'xpubs' });
    for (const close of closers.splice(0)) await close();
    const two = await signer();
    const answers = await Promise.all(Array.from({ length: 50 }, () => two.client.ask({ op: 'xpubs' })));
    for (const answer of answers) expect(answer).toEqual(before);
  });

  it('outside the sandbox has no keys until a seed is made, and finds it then', async () => {
    const { client } = await signer({ network: 'regtest', makesItsOwn: false });
    expect(await client.ask({ op: 'ping' })).toEqual({ network: 'regtest', keys: 'absent' });
    await expect(client.ask({ op: 'xpubs' })).rejects.toMatchObject({
      fault: 'no_keys',
      message: expect.stringContaining('keys init'),
    });
    await createSeed(join(folder, 'signer'), 'regtest', generated);
    expect(await client.ask({ op: 'ping' })).toEqual({ network: 'regtest', keys: 'present' });
  });

  it('says which variable is missing when the seed needs a passphrase', async () => {
    await createSeed(join(folder, 'signer'), 'mainnet', given);
    const { client, troubles } = await signer({ network: 'mainnet', makesItsOwn: false, passphrase: null });
    await expect(client.ask({ op: 'xpubs' })).rejects.toMatchObject({
      message: expect.stringContaining('BURSAR_SIGNER_PASSPHRASE'),
    });
    expect(troubles).toHaveLength(1);
  });

  it('refuses what is not its protocol and lives on', async () => {
    const { client, socket } = await signer();
    const send = (bytes: Uint8Array) =>
      new Promise<unknown[]>((resolve, reject) => {
        const reader = createFrameReader();
        const heard: unknown[] = [];
        const connection = createConnection(socket, () => connection.end(bytes));
        connection.on('data', (chunk: Buffer) => heard.push(...reader.push(chunk)));
        connection.on('close', () => resolve(heard));
        connection.on('error', reject);
      });
    const framed = (text: string) => Buffer.concat([Buffer.from([0, 0, 0, text.length]), Buffer.from(text)]);
    expect(await send(Buffer.from('GET / HTTP/1.1\r\n\r\n'))).toMatchObject([{ ok: false, error: 'bad_request' }]);
    expect(await send(framed('{"id":1,'))).toMatchObject([{ ok: false, error: 'bad_request' }]);
    expect(await send(framed('null'))).toMatchObject([{ ok: false, error: 'bad_request' }]);
    expect(await send(framed('{"op":"ping"}'))).toMatchObject([{ id: null, error: 'bad_request' }]);
    expect(await send(framed('{"id":1,"op":"signed"}'))).toMatchObject([{ id: 1, error: 'bad_request' }]);
    expect(await send(framed('{"id":2,"op":"confirm_xpub","xpub":5}'))).toMatchObject([{ id: 2, error: 'bad_request' }]);
    expect(await send(Buffer.alloc(0))).toEqual([]);
    expect(await client.ask({ op: 'ping' })).toMatchObject({ keys: 'present' });
  });

  it('reads frames however the stream is cut', () => {
    const frames = Buffer.concat([1, 2, 3].map((id) => encodeFrame({ id, op: 'ping' })));
    const reader = createFrameReader();
    const heard = [...frames].flatMap((byte) => reader.push(Uint8Array.of(byte)));
    expect(heard).toEqual([1, 2, 3].map((id) => ({ id, op: 'ping' })));
    expect(createFrameReader().push(frames)).toEqual(heard);
    expect(() => createFrameReader().push(Uint8Array.of(0xff, 0, 0, 0))).toThrow('too long');
  });

  it('takes the place of a dead signer, whose socket file is left', async () => {
    const path = signerSocket(folder);
    writeFileSync(path, '');
    const { client } = await signer();
    expect(await client.ask({ op: 'ping' })).toMatchObject({ keys: 'present' });
  });

  it('reports a signer that does not run', async () => {
    const client = createSignerClient(signerSocket(folder));
    await expect(client.ask({ op: 'ping' })).rejects.toMatchObject({
      fault: 'unreachable',
      message: expect.stringContaining('ENOENT'),
    });
  });

  it('has a short socket path of its own where the data folder lies deep', async () => {
    const deep = join(folder, 'x'.repeat(60), 'y'.repeat(60));
    const path = signerSocket(deep);
    closers.push(() => rm(join(path, '..'), { recursive: true }));
    expect(Buffer.byteLength(path)).toBeLessThanOrEqual(107);
    expect(signerSocket(deep)).toBe(path);
    expect(signerSocket(`${deep}z`)).not.toBe(path);
    closers.push(() => rm(join(signerSocket(`${deep}z`), '..'), { recursive: true }));
    expect(statSync(join(path, '..')).mode & 0o777).toBe(0o700);
    expect(existsSync(path)).toBe(false);
  });
});
