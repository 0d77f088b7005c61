// The macaroons that operators are told to make are exactly those that the service needs, in the document, and in what is said where one permits too little.
import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { createLnd, RECEIVING } from '../../src/outside/lightning/lnd.ts';
import { PAYING } from '../../src/outside/lightning/lnd-payer.ts';
import { bakeLine } from '../../src/outside/lightning/permissions.ts';
import { eachWithSimulatedNode, engine } from './simulated-service.ts';

eachWithSimulatedNode();

test('the commands that make both macaroons stand in the document as the service needs them', () => {
  const document = readFileSync(new URL('../../docs/behaviour.md', import.meta.url), 'utf8').split('\n');
  for (const needed of [RECEIVING, PAYING]) expect(document).toContain(bakeLine(needed));
});

test('a macaroon that cannot read what the node has is told with the command that makes one which can', async () => {
  // the one that pays reads channels, and no wallet
  const poor = createLnd(async () => engine.payTarget(), { chain: 'regtest' });
  const refused = { state: 'unauthorized', message: expect.stringContaining(bakeLine(RECEIVING)) };
  await expect(poor.holdings()).rejects.toMatchObject(refused);
  await expect(poor.forwarded(0n)).rejects.toMatchObject(refused);
  await expect(poor.chainEvents(1, 2)).rejects.toMatchObject(refused);
  poor.close();
});
