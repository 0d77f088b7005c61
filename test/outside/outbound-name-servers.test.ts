// Which of several name servers is believed: as the machine's own programs do, whatever one of them, or somebody's slow name, does.
import { setTimeout as after } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { namesByDns } from '../../src/outside/outbound/names.ts';
import { type NameServer, startNameServer } from '../support/name-server.ts';
import { closing, outboundServersForEach } from './outbound-servers.ts';

outboundServersForEach();

const ADDRESS = '93.184.215.14';
const FOUND = [{ address: ADDRESS, family: 4 }];
const AAAA = ' 28';

async function started(...answers: readonly Parameters<typeof startNameServer>[0][]): Promise<NameServer[]> {
  const servers = await Promise.all(answers.map((answer) => startNameServer(answer)));
  closing.push(() => servers.map((server) => server.close()));
  return servers;
}
const found = () => [ADDRESS];
const silent = () => undefined;
const cannotSay = () => 'SERVFAIL' as const;
const addressesOf = (servers: readonly NameServer[]) => servers.map(({ address }) => address);

async function took(work: () => Promise<unknown>): Promise<number> {
  const began = performance.now();
  await work();
  return performance.now() - began;
}

test('a name server that cannot say leaves the name to the next one', async () => {
  const servers = await started(cannotSay, found);
  const find = namesByDns(addressesOf(servers));
  for (let n = 0; n < 3; n++) expect(await find(`name${n}.example`)).toEqual(FOUND);
});

test('so does one that is down, and it is waited for once', async () => {
  const find = namesByDns(addressesOf(await started(silent, cannotSay, found)));
  expect(await find('first.example')).toEqual(FOUND);
  expect(await took(async () => expect(await find('later.example')).toEqual(FOUND))).toBeLessThan(1_000);
});

test.each([
  ['has no addresses of it', () => []],
  ['says that there is no such name', () => null],
])('a name that takes long is not lost, nor are others, because the second name server %s', async (_, answer) => {
  const servers = await started(async (name) => {
    if (name === 'slow.example') await after(2_500);
    return [ADDRESS];
  }, answer);
  const find = namesByDns(addressesOf(servers));
  for (let n = 0; n < 5; n++) expect(await find(`quick${n}.example`)).toEqual(FOUND);
  const slow = find('slow.example');
  await after(2_200);
  for (let n = 5; n < 10; n++) expect(await find(`quick${n}.example`)).toEqual(FOUND);
  expect(await slow).toEqual(FOUND);
  for (let n = 10; n < 15; n++) expect(await find(`quick${n}.example`)).toEqual(FOUND);
});

test('what a name server says counts where those before it are down', async () => {
  const find = namesByDns(addressesOf(await started(silent, () => null)));
  await expect(find('missing.example')).rejects.toMatchObject({ code: 'ENOTFOUND' });
});

test('an IPv4 address does not wait for an IPv6 one that never comes, however long names take otherwise', async () => {
  const servers: NameServer[] = await started(
    ...[0, 1].map((n) => async (name: string) => {
      const isSix = servers[n]?.asked.at(-1)?.endsWith(AAAA) === true;
      await after(400);
      return name === 'half.example' && isSix ? undefined : [ADDRESS];
    }),
  );
  const find = namesByDns(addressesOf(servers));
  for (let n = 0; n < 4; n++) await find(`name${n}.example`);
  expect(await took(async () => expect(await find('half.example')).toEqual(FOUND))).toBeLessThan(2_000);
});

test('an IPv6 address waits for an IPv4 one that takes its time, and not for ever', async () => {
  const six = '2606:2800:220:1::1';
  const [server] = await started(async (name) => {
    const isFour = server?.asked.at(-1) === `${name} 1`;
    if (isFour && name === 'slow.example') await after(1_500);
    return isFour && name === 'never.example' ? undefined : [ADDRESS, six];
  });
  const find = namesByDns([server?.address ?? '']);
  expect(await find('slow.example')).toEqual([...FOUND, { address: six, family: 6 }]);
  expect(await took(async () => expect(await find('never.example')).toEqual([{ address: six, family: 6 }]))).toBeLessThan(5_000);
});

test('a name server that was silent, or has one slow name, is believed without the next one once it answers again', async () => {
  let isDown = false;
  const [first, second] = (await started(async (name) => {
    if (name === 'slow.example') await after(2_500);
    if (name.startsWith('late')) await after(400);
    return isDown ? undefined : [ADDRESS];
  }, found)) as [NameServer, NameServer];
  const find = namesByDns(addressesOf([first, second]));
  const asksNext = async (name: string): Promise<boolean> => {
    expect(await find(name)).toEqual(FOUND);
    return second.asked.some((one) => one.startsWith(`${name} `));
  };
  const slow = asksNext('slow.example');
  await after(1_000);
  expect(await asksNext('quick.example')).toBe(false);
  expect(await slow).toBe(true);
  expect(await asksNext('late1.example')).toBe(false);
  isDown = true;
  expect([await asksNext('down.example'), await asksNext('late2.example')]).toEqual([true, true]);
  isDown = false;
  for (let n = 0; await asksNext(`back${n}.example`); n++) expect(n).toBeLessThan(10);
  expect(await asksNext('late3.example')).toBe(false);
});
