// `bursar payout resolve --failed` of a payout over Lightning asks the node whether it may still arrive: the list of its channels by its own macaroon,
// and the payment itself through the signer's socket. On a simulated node.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import type { TrackedPayment } from '../../src/core/lightning/payer.ts';
import { listeningSocket } from '../../src/main/wiring/signer-paths.ts';
import { serveSigner } from '../../src/signer/server.ts';
import type { SimulatedEngine } from '../support/lightning-engines.ts';
import { type LightningPayouts, openSimulatedPayouts } from '../support/lightning-payouts.ts';
import { type Environment, runCli } from './run.ts';

// each command is a process of its own
vi.setConfig({ testTimeout: 90_000 });

const HOUR = 3_600_000;
const clock = { nowMs: Date.now(), now: () => clock.nowMs };
const folder = mkdtempSync(join(tmpdir(), 'bursar-resolve-'));
let at: LightningPayouts;
let engine: SimulatedEngine;
let close: () => Promise<void>;
let here: Environment;
beforeAll(async () => {
  ({ at, engine, close } = await openSimulatedPayouts(clock));
  const { url, certificate, macaroon } = engine.target();
  const lnd = { BURSAR_LND_URL: url, BURSAR_LND_CERT: certificate ?? '', BURSAR_LND_MACAROON: macaroon };
  here = { DATABASE_URL: at.url, BURSAR_DATA_DIR: folder, BURSAR_NETWORK: 'regtest', ...lnd };
});
afterAll(async () => {
  await close();
  rmSync(folder, { recursive: true, force: true });
});

/** The node has it under way, and no channel holds it; its operator was to decide because another node was there. */
async function unknown(): Promise<string> {
  const { outgoing } = engine.node();
  const { request, hash } = outgoing.invoice({ amountMsat: 1_000_000n, expirySeconds: 3_600, behaviour: 'hold' });
  const { id } = await at.request(request, '0.00001');
  await at.look();
  outgoing.leaveChannel(hash);
  clock.nowMs += HOUR + 60_000;
  const another = { ...(await at.paying.node()), identity: `02${'ab'.repeat(32)}` };
  await at.look({ node: async () => another, track: async () => ({ payment: null, isPending: false }) });
  expect(await at.payout(id)).toMatchObject({ status: 'processing', heldReason: 'unknown_outcome' });
  return id;
}
/** The signer's socket. @param more what its node says besides */
async function signing<T>(more: Partial<TrackedPayment>, work: () => Promise<T>): Promise<T> {
  const track = async (hash: string) => ({ ...(await at.signer.track(hash)), ...more });
  const unused = {} as never;
  const parts = { keyring: unused, signing: unused, paying: { ...at.signer, track }, onTrouble: () => undefined };
  const server = await serveSigner(listeningSocket({ dataFolder: folder, signerSocket: null }), parts);
  try {
    return await work();
  } finally {
    await server.close();
  }
}
async function failed(id: string, environment = here, ...words: readonly string[]): Promise<string> {
  const said = ['payout', 'resolve', id, '--failed', ...words, '--evidence', 'its recipient has nothing'];
  const { out, err } = await runCli(said, environment);
  return `${out}${err}`;
}

test('it is refused while the node that pays says that it may still arrive, and while nobody can be asked', async () => {
  const id = await unknown();
  const mayArrive = { isPending: true, arrivesUntil: 500 };
  expect(await signing(mayArrive, () => failed(id))).toContain('may still arrive, up to block 500');
  expect(await signing(mayArrive, () => failed(id, here, '--node-gone'))).toContain('may still arrive, up to block 500');
  expect(await failed(id)).toMatch(/cannot be asked whether it may still arrive \(the signer is not reachable on .*--node-gone/);
  const away = { ...here, BURSAR_LND_URL: 'https://127.0.0.1:9' };
  expect(await signing({}, () => failed(id, away))).toMatch(
    /cannot be asked whether it may still arrive \(.*127\.0\.0\.1:9.*--node-gone/,
  );
  expect(await at.payout(id)).toMatchObject({ status: 'processing', heldReason: 'unknown_outcome' });
  expect(await signing({}, () => failed(id))).toBe(`${id} is failed.\n`);
});

test('who says that the node is gone for good decides it with nobody to ask', async () => {
  const id = await unknown();
  const { out, err } = await runCli(['payout', 'resolve', id, '--paid', '--node-gone', '--evidence', 'x'], here);
  expect(`${out}${err}`).toContain('--node-gone goes with --failed');
  const { BURSAR_LND_URL: _url, BURSAR_LND_CERT: _certificate, BURSAR_LND_MACAROON: _macaroon, ...without } = here;
  expect(await failed(id, without, '--node-gone')).toBe(`${id} is failed.\n`);
});
