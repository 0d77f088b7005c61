// The key by which an API process signs payouts, and whose keys the signer trusts: files only, never the database.
import { mkdtempSync, readdirSync, readFileSync, realpathSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { PayoutIntent } from '../../src/core/payouts/intent.ts';
import { intentBytes } from '../../src/core/payouts/intent.ts';
import { openIntentKey, readIntentPublicKey } from '../../src/main/wiring/intent-key.ts';
import { changeTrust, isIntentSigned, trustedIntentKeys, trustFirstIntentKey } from '../../src/signer/intent-trust.ts';
import { askCli, runCli } from '../cli/run.ts';

let folder: string;
beforeEach(() => {
  folder = realpathSync(mkdtempSync(join(tmpdir(), 'bursar-intent-')));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const intent: PayoutIntent = {
  network: 'regtest',
  payoutId: 'po_1',
  merchantId: 7n,
  method: 'bitcoin',
  currency: 'BTC',
  amount: 100_000n,
  feeMax: 4_000n,
  destination: `0014${'ab'.repeat(20)}`,
  createdAtMs: 1_780_000_000_000,
  reimburses: null,
};
const A = 'a'.repeat(64);
const B = 'b'.repeat(64);

describe("the API's intent key", () => {
  it('is made once, for its user only, also when many processes start at once, and is the same afterwards', async () => {
    const keys = await Promise.all(Array.from({ length: 8 }, () => openIntentKey(folder)));
    const ids = new Set(keys.map((key) => key.sign(new Uint8Array()).keyId));
    expect(ids.size).toBe(1);
    expect((await openIntentKey(folder)).sign(new Uint8Array()).keyId).toBe([...ids][0]);
    expect(await readIntentPublicKey(folder)).toBe([...ids][0]);
    expect(statSync(join(folder, 'api')).mode & 0o777).toBe(0o700);
    expect(statSync(join(folder, 'api', 'intent-key')).mode & 0o777).toBe(0o600);
    expect(readdirSync(join(folder, 'api'))).toEqual(['intent-key']);
    expect(readdirSync(folder).sort()).toEqual(['api', 'intent-key.pub']);
  });

  it('signs what the signer verifies, and no other intent', async () => {
    const { keyId, signature } = (await openIntentKey(folder)).sign(intentBytes(intent));
    expect(isIntentSigned(intent, keyId, signature)).toBe(true);
    const others: Partial<PayoutIntent>[] = [
      { network: 'mainnet' },
      { payoutId: 'po_2' },
      { merchantId: 8n },
      { method: 'usdt' },
      { currency: 'LTC' },
      { amount: 100_001n },
      { feeMax: 4_001n },
      { destination: `0014${'ac'.repeat(20)}` },
      { createdAtMs: 1_780_000_000_001 },
    ];
    for (const other of others) expect(isIntentSigned({ ...intent, ...other }, keyId, signature)).toBe(false);
    expect(isIntentSigned(intent, A, signature)).toBe(false);
    expect(isIntentSigned(intent, keyId, signature.subarray(1))).toBe(false);
  });

  it('is never repeated in an error, and a damaged one is not replaced', async () => {
    await openIntentKey(folder);
    const path = join(folder, 'api', 'intent-key');
    const text = readFileSync(path, 'utf8').replace('MC4', 'MC5');
    writeFileSync(path, text);
    const failure = await openIntentKey(folder).catch((error: Error) => error.message);
    expect(failure).toContain('holds no Ed25519 key');
    for (const line of text.split('\n').filter((one) => one !== '')) expect(failure).not.toContain(line);
    expect(readFileSync(path, 'utf8')).toBe(text);
  });
});

describe('the keys that a signer trusts', () => {
  it('begin with the first that it finds, and grow by command only', async () => {
    expect(await trustedIntentKeys(folder)).toBeNull();
    expect(await trustFirstIntentKey(folder, A)).toEqual([A]);
    expect(await trustFirstIntentKey(folder, B)).toEqual([A]);
    expect(await changeTrust(folder, 'trust', B)).toEqual([A, B]);
    expect(await changeTrust(folder, 'distrust', A)).toEqual([B]);
    expect(await changeTrust(folder, 'distrust', B)).toEqual([]);
    // nobody is trusted any more: the next one that is found is not the first
    expect(await trustFirstIntentKey(folder, A)).toEqual([]);
  });

  it('are not guessed when their file is damaged', async () => {
    await trustFirstIntentKey(folder, A);
    writeFileSync(join(folder, 'trusted-intent-keys.json'), `{"keys":["${B}`);
    await expect(trustedIntentKeys(folder)).rejects.toThrow('is damaged');
    await expect(trustFirstIntentKey(folder, B)).rejects.toThrow('is damaged');
  });

  it('are shown and changed by commands', async () => {
    const here = { BURSAR_DATA_DIR: folder };
    const { keyId } = (await openIntentKey(folder)).sign(new Uint8Array());
    expect(await askCli(['keys', 'show-intent'], here)).toEqual({ api: keyId, trusted: [] });
    expect(await askCli(['keys', 'trust-intent', keyId], here)).toEqual({ trusted: [keyId] });
    expect(await askCli(['keys', 'show-intent'], here)).toEqual({ api: keyId, trusted: [keyId] });
    expect(await askCli(['keys', 'distrust-intent', keyId], here)).toEqual({ trusted: [] });
    const refused = await runCli(['keys', 'trust-intent', 'abc'], here);
    expect([refused.code, refused.err]).toEqual([1, expect.stringContaining('64 digits of hex')]);
  });
});
