// The signer's socket where its worker runs as another user: in a folder of a group, which that user belongs to and nobody else.
import { spawnSync } from 'node:child_process';
import { chmodSync, chownSync, mkdirSync, mkdtempSync, realpathSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeAll, expect, it, vi } from 'vitest';
import { listeningSocket, signerSocket, signerSocketOf } from '../../src/main/wiring/signer-paths.ts';
import { serveSigner } from '../../src/signer/server.ts';
import { openTestSigner } from './setup.ts';

vi.setConfig({ testTimeout: 60_000 });
const closers: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

let above = '';
beforeAll(() => {
  above = realpathSync(mkdtempSync(join(tmpdir(), 'bs-')));
  chmodSync(above, 0o711);
  return () => rmSync(above, { recursive: true, force: true });
});
const folderOf = (name: string, mode: number): string => {
  const folder = join(above, name);
  mkdirSync(folder);
  chmodSync(folder, mode);
  return folder;
};
const setTo = (signerSocket: string) => ({ dataFolder: above, signerSocket });
it('lies where the setting says, for the worker and for the signer', () => {
  const path = join(folderOf('right', 0o750), 'signer.sock');
  expect(signerSocketOf(setTo(path))).toBe(path);
  expect(listeningSocket(setTo(path))).toEqual({ path, mode: 0o660 });
  expect(signerSocketOf({ dataFolder: above, signerSocket: null })).toBe(signerSocket(above));
});

it('is refused in a folder that is missing, open to others, or writable by the group, and with too long a path', () => {
  expect(() => listeningSocket(setTo(join(above, 'nowhere', 's')))).toThrow(`BURSAR_SIGNER_SOCKET: there is no folder ${above}`);
  for (const mode of [0o755, 0o770, 0o751])
    expect(() => listeningSocket(setTo(join(folderOf(`mode-${mode}`, mode), 's')))).toThrow('(mode 750)');
  const long = join(folderOf('long', 0o750), 'x'.repeat(100));
  expect(() => listeningSocket(setTo(long))).toThrow('at most 107 bytes');
});

it.runIf(process.getuid?.() === 0)('answers members of its group, and nobody else can open it', async () => {
  const [user, group] = [65_501, 65_502];
  const folder = folderOf('shared', 0o750);
  chownSync(folder, 0, group);
  // the socket gets the folder's group, as that of a signer whose own group it is
  chmodSync(folder, 0o2750);
  const at = await openTestSigner();
  const socket = listeningSocket(setTo(join(folder, 'signer.sock')));
  const server = await serveSigner(socket, { keyring: at.keyring, signing: await at.start(), onTrouble: () => undefined });
  closers.push(() => at.close(), server.close);
  expect(statSync(socket.path).mode & 0o777).toBe(0o660);
  const connects = (gid: number): boolean => {
    const script = 'use IO::Socket::UNIX; exit(IO::Socket::UNIX->new(Peer => shift) ? 0 : 1)';
    return spawnSync('perl', ['-e', script, socket.path], { uid: user, gid }).status === 0;
  };
  expect(connects(group)).toBe(true);
  expect(connects(group + 1)).toBe(false);
});
