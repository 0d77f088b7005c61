// Transactions that made the inputs and are as large as a miner can make them: all of them together are more than the socket takes at once.
import { beforeAll, expect, it, vi } from 'vitest';
import { signerSocket } from '../../src/main/wiring/signer-paths.ts';
import { askToSign, createSignerClient, type SignerClient } from '../../src/outside/signer-client.ts';
import { serveSigner } from '../../src/signer/server.ts';
import { openTestSigner, requestFor, type TestSigner, WHOLE } from './setup.ts';

vi.setConfig({ testTimeout: 60_000 });
let at: TestSigner;
let client: SignerClient;
/** As after a start of the signer: it remembers nothing that it was shown. */
let restart: () => Promise<void>;
beforeAll(async () => {
  at = await openTestSigner();
  const path = signerSocket(at.folder);
  const serve = async () =>
    serveSigner({ path, mode: 0o600 }, { keyring: at.keyring, signing: await at.start(), onTrouble: () => undefined });
  let server = await serve();
  client = createSignerClient(path);
  restart = async () => {
    await server.close();
    server = await serve();
  };
  return async () => {
    client.close();
    await server.close();
    await at.close();
  };
});

const NEARLY_A_BLOCK = 1_990_000;
async function request(change: { readonly amount?: bigint } = {}) {
  const payout = await at.payout({ batchId: await at.batch({ currency: 'DASH' }), currency: 'DASH' });
  const made = [4, 5, 6].map((index) => at.madeOutput('DASH', WHOLE, { chain: 0, index }, NEARLY_A_BLOCK));
  const inputs = made.map(({ input }) => (change.amount === undefined ? input : { ...input, amount: change.amount.toString() }));
  return requestFor([payout], inputs, { previous: made.map(({ previous }) => previous) });
}

it('signs what they made, and the same bytes when it is asked again', async () => {
  const asked = await request();
  const signed = await askToSign(client, asked);
  expect(signed.request).toMatchObject({ batchId: asked.batchId, inputs: asked.inputs });
  expect(await askToSign(client, asked)).toEqual(signed);
});

it('compares their amounts all the same, and signs nothing of what it was not shown', async () => {
  await expect(askToSign(client, await request({ amount: WHOLE / 2n }))).rejects.toMatchObject({
    fault: 'refused',
    message: expect.stringContaining('another amount or script'),
  });
  const { previous = [], ...rest } = await request();
  const show = (raw: string) => client.ask<'show'>({ op: 'show', raw, inputs: rest.inputs });
  for (const raw of previous.slice(1)) await show(raw);
  const missing = { fault: 'refused', message: expect.stringContaining('previous has no transaction') };
  await expect(client.ask<'sign'>({ op: 'sign', ...rest })).rejects.toMatchObject(missing);
  await show(previous[0] as string);
  await restart();
  await expect(client.ask<'sign'>({ op: 'sign', ...rest })).rejects.toMatchObject(missing);
});
