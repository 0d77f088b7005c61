// Calls to addresses that a stranger chose: every way into our own network ends before a connection.
import { describe, expect, test } from 'vitest';
import type { Refusal } from '../../src/core/refusal.ts';
import type { Context } from '../../src/flow/context.ts';
import { askForInvoice } from '../../src/flow/lightning/lnurl.ts';
import { createDestinations } from '../../src/outside/destinations.ts';
import { namesByDns } from '../../src/outside/outbound/names.ts';
import { createOutbound } from '../../src/outside/outbound/outbound.ts';
import { ANYWHERE, publicInternet } from '../../src/outside/outbound/policy.ts';
import { isPublicAddress } from '../../src/outside/outbound/public-address.ts';
import { startNameServer } from '../support/name-server.ts';
import { asking, closing, listening, opened, outboundServersForEach } from './outbound-servers.ts';

outboundServersForEach();

const PUBLIC = '93.184.215.14';

/** Outside the sandbox, with a name server of the attacker, and something that must not be reached on loopback. */
async function attacked(...attack: Parameters<typeof startNameServer>) {
  const victim = await listening();
  const names = await startNameServer(...attack);
  closing.push(() => names.close());
  const outbound = opened(createOutbound(publicInternet([443, 8443, victim.port], namesByDns([names.address]))));
  return { victim, names, outbound, url: (host: string) => `https://${host}:${victim.port}/hook` };
}

describe('addresses', () => {
  test.each([
    ['loopback', ['127.0.0.1', '127.255.0.9', '::1', '0.0.0.0', '::']],
    ['private', ['10.0.0.1', '172.16.0.1', '172.31.255.255', '192.168.1.1', 'fc00::1', 'fd12:3456::1', 'fec0::1']],
    [
      'link-local and cloud metadata',
      ['169.254.169.254', 'fe80::1', 'fd00:ec2::254', '100.100.100.200', '192.0.0.192', '168.63.129.16'],
    ],
    ['multicast and broadcast', ['224.0.0.1', '239.1.2.3', '255.255.255.255', 'ff02::1']],
    [
      'IPv4 inside IPv6',
      [
        '::ffff:127.0.0.1',
        '::ffff:8.8.8.8',
        '::ffff:a9fe:a9fe',
        '::ffff:0:7f00:1',
        '::127.0.0.1',
        '::8.8.8.8',
        '64:ff9b::7f00:1',
        '64:ff9b::808:808',
        '64:ff9b:1::1',
        '64:ff9b:1:7f00:0:100::',
        '2002:7f00:1::',
        '2002:808:808::1',
        '2001:0:4136:e378::1',
        '2001:0:7f00:1::',
        'fe80::5efe:7f00:1',
      ],
    ],
    [
      'reserved, for benchmarks and for documents',
      [
        '240.0.0.1',
        '198.18.0.1',
        '198.19.255.255',
        '192.0.2.1',
        '198.51.100.1',
        '203.0.113.1',
        '2001:db8::1',
        '3fff::1',
        '100::1',
      ],
    ],
    ['shared by carriers', ['100.64.0.1', '100.127.255.255']],
    [
      'no address at all',
      ['', 'localhost', '1.2.3', '0x7f000001', '2130706433', '256.1.1.1', '1.2.3.4.5', '01.2.3.4', 'fe80::1%lo'],
    ],
  ])('that are %s are not public', (_what, addresses) => {
    expect(addresses.filter(isPublicAddress)).toEqual([]);
  });

  test('beside those are public', () => {
    const addresses = [
      PUBLIC,
      '8.8.8.8',
      '100.63.255.255',
      '100.128.0.1',
      '172.15.0.1',
      '172.32.0.1',
      '2606:4700::1111',
      '2a00:1450::1',
    ];
    expect(addresses.filter((address) => !isPublicAddress(address))).toEqual([]);
  });
});

describe('outside the sandbox', () => {
  const { problemOf } = createOutbound(publicInternet([443, 8443]));

  test.each([
    'https://shop.example/hook',
    'https://shop.example:8443/a?b=c#d',
    'HTTPS://Shop.Example/',
    'https://xn--bcher-kva.example/',
    'https://bücher.example/ordner',
    'https://shop.example./hook',
    'https://\u0646\u0627\u0645\u0647\u200C\u0627\u06CC.com/x',
    'https://shop.example/\u{1F469}\u200D\u{1F680}',
    'https://shop.example/a@127.0.0.1/',
  ])('%s may be called', (url) => {
    expect(problemOf(url)).toBeNull();
  });

  test.each([
    ['http://shop.example/', 'https'],
    ['ftp://shop.example/', 'https'],
    ['file:///etc/passwd', 'https'],
    ['//shop.example/', 'https'],
    ['https:shop.example', 'https'],
    ['https://', 'https'],
    ['https:///shop.example', 'https'],
    ['https://\\shop.example/', 'https'],
    ['https:\\\\shop.example/', 'https'],
    ['shop.example', 'https'],
    ['', 'https'],
    ['https://user:secret@shop.example/', 'user name'],
    ['https://user@shop.example/', 'user name'],
    ['https://@shop.example/', 'user name'],
    ['https://:@shop.example/', 'user name'],
    ['https://shop.example:80/', 'port 443 or 8443'],
    ['https://shop.example:22/', 'port 443 or 8443'],
    ['https://shop.example:0/', 'port 443 or 8443'],
    ['https://shop.example/a b', 'white space'],
    ['https://shop.exam\nple/', 'white space'],
    ['https://shop.example/\u202Egpj', 'invisible'],
    ['https://shop.exam\u00ADple/', 'invisible'],
    ['https://127.0.0.1/', 'host name'],
    ['https://8.8.8.8/', 'host name'],
    ['https://2130706433/', 'host name'],
    ['https://0x7f000001/', 'host name'],
    ['https://0177.0.0.1/', 'host name'],
    ['https://127.1/', 'host name'],
    ['https://１２７.0.0.1/', 'host name'],
    ['https://①②⑦.0.0.1/', 'host name'],
    ['https://127。0。0。1/', 'host name'],
    ['https://0/', 'host name'],
    ['https://017700000001/', 'host name'],
    ['https://3232235521./', 'host name'],
    ['https://0xa9fea9fe/latest/meta-data/', 'host name'],
    ['https://shop.example@127.0.0.1/', 'user name'],
    ['https://shop.example:443@10.0.0.1/', 'user name'],
    ['https://shop.example%00.internal/', 'https'],
    ['https://[fe80::1%25lo]/', 'https'],
    ['https://[::127.0.0.1]/', 'host name'],
    ['https://[2002:7f00:1::]/', 'host name'],
    ['https://127.0.0.1./', 'host name'],
    ['https://[::1]/', 'host name'],
    ['https://[::ffff:127.0.0.1]/', 'host name'],
    ['https://[64:ff9b::7f00:1]/', 'host name'],
    ['https://[2606:4700::1111]/', 'host name'],
  ])('%s may not be called', async (url, why) => {
    expect(problemOf(url)).toContain(why);
    const outbound = opened(createOutbound(publicInternet([443, 8443])));
    expect(await outbound.addressProblemOf(url)).toBe(problemOf(url));
    expect(await outbound.call({ ...asking, url })).toMatchObject({ kind: 'failed', failure: 'url_not_allowed', tookMs: 0 });
  });

  test.each(['https://shop.example/@', 'https://shop.example?@', 'https://shop.example#@'])('%s may be called', (url) => {
    expect(problemOf(url)).toBeNull();
  });

  test('a URL of 2,048 characters may be called, and one of 2,049 or of 10 kB may not', () => {
    const long = (length: number): string => 'https://shop.example/'.padEnd(length, 'a');
    expect([problemOf(long(2_048)), problemOf(long(2_049))]).toEqual([null, expect.stringContaining('at most 2048')]);
    expect(problemOf(`https://shop.example/${'a'.repeat(10_000)}`)).toContain('at most 2048');
  });

  test.each([
    ['loopback', ['127.0.0.1']],
    ['a private network', ['10.1.2.3']],
    ['cloud metadata', ['169.254.169.254']],
    ['loopback of IPv6', ['::1']],
    ['a mapped address', ['::ffff:127.0.0.1']],
    ['NAT64', ['64:ff9b::7f00:1']],
    ['the internet and loopback at once', [PUBLIC, '127.0.0.1']],
  ])('a name that leads to %s is refused before a connection', async (_what, addresses) => {
    const { outbound, victim, url } = await attacked(() => addresses);
    expect(await outbound.addressProblemOf(url('evil.example'))).toContain('public internet');
    expect(await outbound.call({ ...asking, url: url('evil.example') })).toMatchObject({
      kind: 'failed',
      failure: 'address_not_allowed',
    });
    expect(victim.connections()).toBe(0);
  });

  test.each([
    ['a private network', ['10.1.2.3']],
    ['the internet and a private network at once', [PUBLIC, '192.168.0.7']],
    ['a mapped address', ['::ffff:10.1.2.3']],
  ])('a name that is another name for a name that leads to %s is refused before a connection', async (_what, addresses) => {
    const { outbound, victim, url } = await attacked(() => addresses, ['cdn.example', 'db.internal']);
    expect(await outbound.addressProblemOf(url('chain.example'))).toContain('public internet');
    expect(await outbound.call({ ...asking, url: url('chain.example') })).toMatchObject({ failure: 'address_not_allowed' });
    expect(victim.connections()).toBe(0);
  });

  test('a name with a full stop at its end leads nowhere else', async () => {
    const { outbound, victim, url } = await attacked(() => ['127.0.0.1']);
    for (const host of ['localhost.', 'evil.example.'])
      expect(await outbound.call({ ...asking, url: url(host) })).toMatchObject({ failure: 'address_not_allowed' });
    expect(victim.connections()).toBe(0);
  });

  test('a Lightning address whose host is in our own network is refused without a word of where that is', async () => {
    const { outbound, victim } = await attacked(() => ['10.1.2.3']);
    const ctx = { ports: { outbound, destinations: createDestinations('mainnet') } } as unknown as Context;
    const wanted = { merchantId: 1n, destination: `shop@db.internal:${victim.port}`, amount: 1n };
    const error = await askForInvoice(ctx, wanted).catch((caught: Refusal) => caught);
    expect(error).toMatchObject({ code: 'invalid_destination', message: expect.stringContaining('public internet') });
    expect((error as Refusal).message).not.toContain('10.1.2.3');
  });

  test('a name that leads to the internet when it is checked and to loopback when it is called is not reached', async () => {
    const { outbound, victim, url } = await attacked((_name, before) => (before === 0 ? [PUBLIC] : ['127.0.0.1']));
    expect(await outbound.addressProblemOf(url('rebind.example'))).toBeNull();
    expect(await outbound.call({ ...asking, url: url('rebind.example') })).toMatchObject({ failure: 'address_not_allowed' });
    expect(victim.connections()).toBe(0);
  });

  test('the address that was checked is the one that is connected to: a name is asked for once', async () => {
    const { outbound, victim, url, names } = await attacked((_name, before) => (before === 0 ? [PUBLIC] : ['127.0.0.1']));
    // nobody answers there
    const result = await outbound.call({ ...asking, url: url('once.example'), withinMs: 400 });
    expect(result).toMatchObject({ kind: 'failed' });
    expect(result).not.toMatchObject({ failure: 'address_not_allowed' });
    expect(names.asked.filter((one) => one === 'once.example 1')).toHaveLength(1);
    expect(victim.connections()).toBe(0);
  });

  test('a name is asked for addresses of both kinds', async () => {
    const names = await startNameServer(() => ['2606:4700::1111', PUBLIC]);
    closing.push(() => names.close());
    const found = [
      { address: PUBLIC, family: 4 },
      { address: '2606:4700::1111', family: 6 },
    ];
    expect(await namesByDns([names.address])('both.example')).toEqual(found);
  });

  test('a name that does not exist may come later, and cannot be called now', async () => {
    const { outbound, url } = await attacked(() => null);
    expect(await outbound.addressProblemOf(url('later.example'))).toBeNull();
    expect(await outbound.call({ ...asking, url: url('later.example') })).toMatchObject({ failure: 'host_not_found' });
  });

  test('a name server that never answers takes no longer than the call may', async () => {
    const { outbound, url } = await attacked(() => undefined);
    const began = performance.now();
    expect(await outbound.call({ ...asking, url: url('silent.example'), withinMs: 300 })).toMatchObject({ failure: 'timed_out' });
    expect(performance.now() - began).toBeLessThan(3_000);
  });

  test('names of this machine alone are refused, whatever the name server says of them', async () => {
    const { outbound, victim, url, names } = await attacked(() => null);
    for (const host of ['localhost', 'LOCALHOST.', 'shop.localhost']) {
      expect(await outbound.addressProblemOf(url(host))).toContain('public internet');
      expect(await outbound.call({ ...asking, url: url(host) })).toMatchObject({ failure: 'address_not_allowed' });
    }
    expect(names.asked).toEqual([]);
    expect(victim.connections()).toBe(0);
  });

  test('a server without a certificate for its name gets nothing', async () => {
    const said: Buffer[] = [];
    const plain = await listening((socket) => {
      socket.on('data', (part: Buffer) => said.push(part));
      socket.write('HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n');
    });
    const policy = { ...publicInternet([plain.port], async () => [{ address: '127.0.0.1', family: 4 }]), allows: () => true };
    const outbound = opened(createOutbound(policy));
    const result = await outbound.call({ ...asking, url: `https://shop.example:${plain.port}/secret-path` });
    expect(result).toMatchObject({ kind: 'failed', failure: 'tls_failed' });
    expect(Buffer.concat(said).toString('latin1')).not.toContain('secret-path');
  });
});

test('in the sandbox every port may be called but 0, which is none', () => {
  const { problemOf } = createOutbound(ANYWHERE);
  expect(['http://127.0.0.1:1/', 'http://127.0.0.1/', 'https://[::1]:65535/'].map(problemOf)).toEqual([null, null, null]);
  expect(problemOf('http://127.0.0.1:0/')).toBe('a URL with port 1 to 65535');
});
