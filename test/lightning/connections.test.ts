// Calls of a Lightning node that follow each other use the connections that are open: each handshake costs it and us more than a short call.
import https from 'node:https';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { createLnd } from '../../src/outside/lightning/lnd.ts';
import { createLndPayer } from '../../src/outside/lightning/lnd-payer.ts';
import { createLndRest } from '../../src/outside/lightning/lnd-rest.ts';
import { selfSignedCertificate } from '../../src/sandbox/lightning/certificate.ts';
import { closeServer, listen } from '../../src/sandbox/server.ts';
import { type AnswerRelay, openAnswerRelay } from '../support/answer-relay.ts';
import { type SimulatedEngine, simulatedEngine } from '../support/lightning-engines.ts';
import { eventually } from '../support/service.ts';

let engine: SimulatedEngine;
let relay: AnswerRelay;
beforeEach(async () => {
  engine = await simulatedEngine();
  relay = await openAnswerRelay(engine.target().url);
});
afterEach(async () => {
  relay.close();
  await engine.close();
});
const target = async () => ({ ...engine.payTarget(), url: relay.url });

test('looks at a pinned node open no more connections than one look needs, and payments one besides', async () => {
  const payer = createLndPayer(target);
  const { identity } = await payer.node();
  const atOnce = relay.opened();
  for (let n = 0; n < 5; n++) expect((await payer.node()).identity).toBe(identity);
  expect(relay.opened()).toBe(atOnce);
  for (let n = 0; n < 5; n++) {
    const { request } = await engine.invoice({ sat: 100 });
    const order = { paymentRequest: request, amount: null, feeLimit: 10n, notAfterMs: Date.now() + 60_000 };
    expect(await payer.send(order)).toMatchObject({ state: 'taken', payment: { status: 'succeeded' } });
  }
  // an answer that was read to its last word may still have its end before it
  expect(relay.opened()).toBeLessThanOrEqual(atOnce + 2);
  payer.close();
});

test('a node with another certificate gets connections of its own, and is compared with that', async () => {
  const stranger = await simulatedEngine();
  let certificate = engine.target().certificate;
  const rest = createLndRest(async () => ({ ...(await target()), certificate }));
  const asks = () => rest.call('GET', '/v1/state', { deadlineMs: 5_000 });
  expect(await asks()).toMatchObject({ state: 'SERVER_ACTIVE' });
  certificate = stranger.target().certificate;
  await expect(asks()).rejects.toMatchObject({ state: 'unauthorized' });
  certificate = engine.target().certificate;
  await eventually('the first one is right again', async () => (await asks()).state === 'SERVER_ACTIVE');
  rest.close();
  await stranger.close();
});

test('a pinned certificate that has expired is refused, and its operator told what to do', async () => {
  const { key, certificate } = selfSignedCertificate('20210101000000Z');
  let heard = 0;
  const server = https.createServer({ key, cert: certificate }, (_request, response) => {
    heard += 1;
    response.end('{"state":"SERVER_ACTIVE"}');
  });
  const port = await listen(server, 0);
  const lnd = createLnd(async () => ({ url: `https://127.0.0.1:${port}`, certificate, macaroon: '00' }), { chain: 'regtest' });
  expect(await lnd.condition()).toEqual({
    state: 'unauthorized',
    reason: expect.stringMatching(/certificate has expired \(LND makes another when it is started again: BURSAR_LND_CERT/),
  });
  expect(heard).toBe(0);
  lnd.close();
  await closeServer(server);
});
