// Signing as the worker sees it, over the socket; the signer's own process; and that nothing secret is in what it says or keeps.

import { appendFileSync, mkdtempSync, readdirSync, readFileSync, realpathSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { HDKey } from '@scure/bip32';
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import { openIntentKey } from '../../src/main/wiring/intent-key.ts';
import { signerSocket } from '../../src/main/wiring/signer-paths.ts';
import { createSignerClient, type SignerClient } from '../../src/outside/signer-client.ts';
import { accountPath, mnemonicOf } from '../../src/signer/accounts.ts';
import { changeTrust } from '../../src/signer/intent-trust.ts';
import { openSeed } from '../../src/signer/seed-file.ts';
import { serveSigner } from '../../src/signer/server.ts';
import { SIGNATURES } from '../../src/signer/signature-journal.ts';
import { type Ran, startCli } from '../cli/run.ts';
import { canonicalVersions } from '../keys/vectors.ts';
import { watchPrivateKeys } from '../support/made-private-keys.ts';
import { freshDatabase, type TestDatabase } from '../support/postgres.ts';
import { eventually } from '../support/service.ts';
import { openTestSigner, requestFor, type TestSigner, WHOLE } from './setup.ts';

vi.setConfig({ testTimeout: 60_000 });
const closers: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

describe('the worker at the socket', () => {
  let at: TestSigner;
  let client: SignerClient;
  const troubles: string[] = [];
  beforeAll(async () => {
    at = await openTestSigner();
    const socket = signerSocket(at.folder);
    const signing = await at.start();
    const server = await serveSigner(
      { path: socket, mode: 0o600 },
      {
        keyring: at.keyring,
        signing,
        onTrouble: (error) => troubles.push(String(error)),
      },
    );
    client = createSignerClient(socket);
    expect(statSync(socket).mode & 0o777).toBe(0o600);
    return async () => {
      client.close();
      await server.close();
      await at.close();
    };
  });

  it('is told whose payouts count, as it stands at that moment', async () => {
    const { keyId } = at.intents.sign(new Uint8Array());
    expect(await client.ask({ op: 'intent_keys' })).toEqual({ keys: [keyId] });
    await changeTrust(at.signerFolder, 'distrust', keyId);
    expect(await client.ask({ op: 'intent_keys' })).toEqual({ keys: [] });
    await changeTrust(at.signerFolder, 'trust', keyId);
    expect(await client.ask({ op: 'intent_keys' })).toEqual({ keys: [keyId] });
  });

  it('gets signatures, pages of them, and refusals that name the rule, which are logged too', async () => {
    const payout = await at.payout({ batchId: await at.batch() });
    const request = requestFor([payout], [at.input(WHOLE)]);
    const signed = await client.ask({ op: 'sign', ...request });
    expect(signed).toMatchObject({ sequence: 1, request });
    expect(await client.ask({ op: 'signed', after: 0 })).toEqual({ transactions: [signed], more: false });
    expect(await client.ask({ op: 'signed', after: 0, batchId: 'other' })).toEqual({ transactions: [], more: false });
    const refused = {
      fault: 'refused',
      message: expect.stringMatching(/^rule number \(each number of a batch is signed once\): /),
    };
    await expect(client.ask({ op: 'sign', ...request, change: null })).rejects.toMatchObject(refused);
    expect(troubles).toEqual([expect.stringMatching(/SigningRefused: rule number/)]);
  });

  it('is told which field of a request is not accepted, and what is', async () => {
    const payout = await at.payout({ batchId: await at.batch() });
    const good = requestFor([payout], [at.input(WHOLE)]);
    const [input] = good.inputs;
    const [output] = good.outputs;
    const wrong: [object, RegExp][] = [
      [{ currency: 'XYZ' }, /currency must be one of BTC/],
      [{ currency: 'ETH' }, /evm must be an object/],
      [{ batchId: '' }, /batchId must be/],
      [{ batchId: 5 }, /batchId must be/],
      [{ number: 0 }, /number must be a whole number from 1/],
      [{ number: 1.5 }, /number must be a whole number/],
      [{ leaseEpoch: 1 }, /leaseEpoch must be a whole number as text/],
      [{ inputs: [] }, /inputs and outputs must not be empty/],
      [{ outputs: [] }, /inputs and outputs must not be empty/],
      [{ inputs: null }, /inputs must be a list of at most 500/],
      [{ inputs: Array(501).fill(input) }, /inputs must be a list of at most 500/],
      [{ inputs: [null] }, /an input must be an object/],
      [{ inputs: [{ ...input, txid: 'AB'.repeat(32) }] }, /txid must be 64 digits of hex/],
      [{ inputs: [{ ...input, vout: -1 }] }, /vout must be a whole number from 0/],
      [{ inputs: [{ ...input, amount: 5 }] }, /amount must be whole minor units above zero as text/],
      [{ inputs: [{ ...input, amount: '0' }] }, /amount must be/],
      [{ inputs: [{ ...input, amount: '-5' }] }, /amount must be/],
      [{ inputs: [{ ...input, amount: '1.5' }] }, /amount must be/],
      [{ inputs: [{ ...input, chain: 2 }] }, /chain must be 0 or 1/],
      [{ inputs: [{ ...input, index: 2 ** 31 }] }, /index must be a whole number from 0 to 2147483647/],
      [{ inputs: [{ ...input, xpub: 'x' }] }, /xpub must be/],
      [{ outputs: [{ ...output, payoutId: undefined }] }, /payoutId must be/],
      [{ outputs: [{ ...output, script: '0g' }] }, /script must be an output script in hex/],
      [{ change: { index: -1, amount: '5' } }, /index of change must be/],
      [{ change: undefined }, /change must be an object/],
      [{ previous: 'ab' }, /previous must be a list/],
      [{ previous: ['zz'] }, /previous must be raw transactions in hex/],
    ];
    for (const [change, message] of wrong) {
      const asked = client.ask({ op: 'sign', ...good, ...change } as Parameters<typeof client.ask>[0]);
      await expect(asked, JSON.stringify(change)).rejects.toMatchObject({
        fault: 'bad_request',
        message: expect.stringMatching(message),
      });
    }
    await client.ask({ op: 'sign', ...good });
    for (const [change, message] of [
      [{ raw: 'ab' }, /raw must be a raw transaction in hex/],
      [{ raw: 'ff'.repeat(60) }, /raw must be a raw transaction in hex/],
      [{ inputs: null }, /inputs must be a list of at most 500/],
      [{ inputs: [{ txid: 'ab', vout: 0 }] }, /txid must be 64 digits of hex/],
      [{ inputs: [{ txid: 'ab'.repeat(32) }] }, /vout must be a whole number from 0/],
    ] as const) {
      const { previous } = at.madeOutput('DASH', WHOLE, { chain: 0, index: 3 });
      const asked = client.ask({ op: 'show', raw: previous, inputs: [], ...change } as Parameters<typeof client.ask>[0]);
      await expect(asked).rejects.toMatchObject({ fault: 'bad_request', message: expect.stringMatching(message) });
    }
  });

  it('never sees a secret: not in an answer, a log, the journal, or an error; and no private key is left behind', async () => {
    const entropy = await openSeed(at.signerFolder, 'regtest', { kind: 'generated' });
    const root = HDKey.fromMasterSeed(await seedOf(entropy), canonicalVersions('regtest'));
    const path = accountPath('BTC', 'regtest');
    const secrets = [path, `${path}/0`, `${path}/0/3`, `${path}/1`].map((one) => root.derive(one)).flatMap(secretsOf);
    secrets.push(Buffer.from(entropy).toString('hex'), ...secretsOf(root));
    const keys = watchPrivateKeys();
    const said: string[] = [];
    try {
      const payout = await at.payout({ batchId: await at.batch() });
      const request = requestFor([payout], [at.input(WHOLE)]);
      said.push(JSON.stringify(await client.ask({ op: 'sign', ...request })));
      for (const change of [{ number: 7 }, { change: null }, { leaseEpoch: '9', number: 2 }])
        said.push(
          (await client
            .ask({ op: 'sign', ...request, ...change })
            .catch((error: Error) => `${error.message}${error.stack}`)) as string,
        );
      said.push(JSON.stringify(await client.ask({ op: 'signed', after: 0 })));
    } finally {
      keys.stop();
    }
    expect(keys.made.filter((key) => key.privateKey !== null)).toEqual([]);
    expect(keys.made.length).toBeGreaterThan(6);
    const files = readdirSync(at.signerFolder).filter((name) => name.endsWith('.jsonl') || name.endsWith('keys.json'));
    expect(files.sort()).toEqual([SIGNATURES, 'trusted-intent-keys.json']);
    const all = [...said, ...troubles, ...files.map((name) => readFileSync(join(at.signerFolder, name), 'utf8'))].join('\n');
    for (const secret of secrets) expect(all).not.toContain(secret);
  });
});

async function seedOf(entropy: Uint8Array): Promise<Uint8Array> {
  const { mnemonicToSeedSync } = await import('@scure/bip39');
  return mnemonicToSeedSync(mnemonicOf(entropy));
}

function secretsOf(key: HDKey): string[] {
  const bytes = Buffer.from(key.privateKey as Uint8Array);
  return [bytes.toString('hex'), bytes.toString('base64').replaceAll('=', ''), key.privateExtendedKey];
}

describe("the signer's process", () => {
  let database: TestDatabase;
  let folder: string;
  beforeAll(async () => {
    database = await freshDatabase();
    return () => database.drop();
  });
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  /** `bursar signer` on the database, until the test ends. */
  async function run(): Promise<{ client: SignerClient; stop: () => Promise<Ran> }> {
    const environment = {
      BURSAR_DATA_DIR: folder,
      DATABASE_URL: database.url,
      BURSAR_NETWORK: 'sandbox',
      BURSAR_SIGNER_LIMITS: 'BTC:day=1',
    };
    const { child, ended } = startCli(['signer'], environment);
    const client = createSignerClient(signerSocket(folder));
    const stop = async () => {
      client.close();
      child.kill('SIGTERM');
      return ended;
    };
    closers.push(stop);
    await eventually('the signer answers', async () => (await client.ask({ op: 'ping' }).catch(() => null)) !== null);
    return { client, stop };
  }

  it('signs by its own journal, role and trust; a damaged journal stops signatures and nothing else', async () => {
    folder = realpathSync(mkdtempSync(join(tmpdir(), 'bs-')));
    const { keyId } = (await openIntentKey(folder)).sign(new Uint8Array());
    const one = await run();
    expect(await one.client.ask({ op: 'signed', after: 0 })).toEqual({ transactions: [], more: false });
    const { accounts } = await one.client.ask({ op: 'xpubs' });
    const xpub = accounts[0]?.xpub as string;
    const request = requestFor(
      [
        {
          id: 'po_1',
          currency: 'BTC',
          amount: WHOLE,
          feeMax: 1n,
          script: `0014${'ab'.repeat(20)}`,
          ...{ batchId: 'batch_1', merchantId: 1n, reimburses: null },
        },
      ],
      [{ txid: 'cd'.repeat(32), vout: 0, amount: (2n * WHOLE).toString(), xpub, chain: 0, index: 0 }],
    );
    await expect(one.client.ask({ op: 'sign', ...request })).rejects.toMatchObject({
      fault: 'refused',
      message: expect.stringContaining('there is no batch batch_1 of BTC'),
    });
    const { err } = await one.stop();
    expect(err).toContain('signer: rule batch');
    expect(err).toContain(`payouts that are signed with ${keyId} count from now on`);

    const path = join(folder, 'signer', SIGNATURES);
    const whole = readFileSync(path);
    appendFileSync(path, 'not a line\n');
    const two = await run();
    await expect(two.client.ask({ op: 'signed', after: 0 })).rejects.toMatchObject({
      fault: 'failed',
      message: expect.stringContaining(`${path} cannot be read`),
    });
    await expect(two.client.ask({ op: 'sign', ...request })).rejects.toMatchObject({ fault: 'failed' });
    expect(await two.client.ask({ op: 'ping' })).toMatchObject({ keys: 'present' });
    writeFileSync(path, whole);
    expect(await two.client.ask({ op: 'signed', after: 0 })).toEqual({ transactions: [], more: false });
  });
});
