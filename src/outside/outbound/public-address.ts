// Which IP addresses are on the public internet: everything but the special ranges of IANA's registries (RFC 6890), and what clouds keep for
// themselves.
import { BlockList, isIPv4, isIPv6 } from 'node:net';

const SPECIAL_IPV4 = [
  '0.0.0.0/8', // this network
  '10.0.0.0/8', // private
  '100.64.0.0/10', // shared by carriers; 100.100.100.200 is the metadata service of one cloud
  '127.0.0.0/8', // loopback
  '168.63.129.16/32', // the platform's own address inside Azure
  '169.254.0.0/16', // link-local; 169.254.169.254 is the metadata service of most clouds
  '172.16.0.0/12', // private
  '192.0.0.0/24', // protocol assignments
  '192.0.2.0/24', // documentation
  '192.31.196.0/24', // AS112
  '192.52.193.0/24', // automatic multicast tunnels
  '192.88.99.0/24', // relays of 6to4
  '192.168.0.0/16', // private
  '192.175.48.0/24', // AS112
  '198.18.0.0/15', // benchmarks
  '198.51.100.0/24', // documentation
  '203.0.113.0/24', // documentation
  '224.0.0.0/4', // multicast
  '240.0.0.0/4', // reserved, broadcast
];

/** The part of IPv6 that is given out; loopback, mapped, NAT64, unique local, link-local and multicast addresses lie outside it. */
const GIVEN_OUT = '2000::/3';
const SPECIAL_IPV6 = [
  '2001::/23', // protocol assignments: Teredo, ORCHID, benchmarks
  '2001:db8::/32', // documentation
  '2002::/16', // 6to4: an IPv4 address inside
  '2620:4f:8000::/48', // AS112
  '3fff::/20', // documentation
];

const special4 = listOf(SPECIAL_IPV4, 'ipv4');
const given6 = listOf([GIVEN_OUT], 'ipv6');
const special6 = listOf(SPECIAL_IPV6, 'ipv6');

/** @param address an IP address as text; anything else is not public */
export function isPublicAddress(address: string): boolean {
  if (isIPv6(address)) return given6.check(address, 'ipv6') && !special6.check(address, 'ipv6');
  // BlockList finds nothing for what is no address
  return isIPv4(address) && !special4.check(address, 'ipv4');
}

function listOf(networks: readonly string[], family: 'ipv4' | 'ipv6'): BlockList {
  const list = new BlockList();
  for (const network of networks) {
    const [address = '', bits] = network.split('/');
    list.addSubnet(address, Number(bits), family);
  }
  return list;
}
