// How long a name is looked for: its own time, whatever other names took, and not for a name server that is down.
import { setTimeout as after } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { namesByDns } from '../../src/outside/outbound/names.ts';
import { type NameServer, startNameServer } from '../support/name-server.ts';
import { closing, outboundServersForEach } from './outbound-servers.ts';

outboundServersForEach();

const ADDRESS = '93.184.215.14';
const FOUND = [{ address: ADDRESS, family: 4 }];

test('a name that takes its time is found beside many that come at once', async () => {
  const names: NameServer = await startNameServer(async () => {
    if (names.asked.at(-1) === 'slow.example 1') await after(1_200);
    return [ADDRESS];
  });
  closing.push(() => names.close());
  const find = namesByDns([names.address]);
  for (let n = 0; n < 10; n++) expect(await find(`quick${n}.example`)).toEqual(FOUND);
  let isOver = false;
  const slow = find('slow.example').finally(() => {
    isOver = true;
  });
  for (let n = 10; !isOver; n++) await find(`quick${n}.example`);
  expect(await slow).toEqual(FOUND);
});

test('a name server that is down is not waited for each time', async () => {
  const [down, up] = [await startNameServer(() => undefined), await startNameServer(() => [ADDRESS])];
  closing.push(
    () => down.close(),
    () => up.close(),
  );
  const find = namesByDns([down.address, up.address]);
  expect(await find('first.example')).toEqual(FOUND);
  const began = performance.now();
  for (let n = 0; n < 5; n++) expect(await find(`later${n}.example`)).toEqual(FOUND);
  expect(performance.now() - began).toBeLessThan(6_000);
});

test('a name that took long leaves the others to the name server that has them, though the next one cannot say', async () => {
  const names: NameServer = await startNameServer(async (name) => {
    if (name === 'slow.example') await after(1_200);
    return [ADDRESS];
  });
  const bad = await startNameServer(() => 'SERVFAIL');
  closing.push(
    () => names.close(),
    () => bad.close(),
  );
  const find = namesByDns([names.address, bad.address]);
  for (let n = 0; n < 10; n++) expect(await find(`quick${n}.example`)).toEqual(FOUND);
  expect(await find('slow.example')).toEqual(FOUND);
  for (let n = 10; n < 20; n++) expect(await find(`quick${n}.example`)).toEqual(FOUND);
});

test('an IPv4 address that takes its time is found beside an IPv6 one that comes at once', async () => {
  const six = '2606:2800:220:1::1';
  const names: NameServer = await startNameServer(async (name) => {
    if (name === 'slow.example' && names.asked.at(-1) === 'slow.example 1') await after(1_200);
    return name === 'slow.example' ? [ADDRESS, six] : [ADDRESS];
  });
  closing.push(() => names.close());
  const find = namesByDns([names.address]);
  for (let n = 0; n < 10; n++) await find(`quick${n}.example`);
  expect(await find('slow.example')).toEqual([...FOUND, { address: six, family: 6 }]);
});
