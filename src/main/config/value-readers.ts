// The forms of settings: each turns the text of a variable into its value, or throws an Error whose message says what is accepted.

import { isIP } from 'node:net';
import { isRouting } from '../../core/ach/bank-account.ts';
import type { AchOrigin } from '../../core/ach/nacha-file.ts';
import { CURRENCIES, CURRENCY_CODES, type CurrencyCode, ETHER } from '../../core/currency.ts';
import { parseAmount } from '../../core/money.ts';
import { parseRate, type Rate } from '../../core/rate.ts';
import { RATE_SOURCES, type RateSourceName } from '../../outside/rates/sources.ts';
import type { Limit, SignerLimits } from '../../signer/limits.ts';

export type Reader<T> = (text: string) => T;

/** Whole decimal numbers between two limits, both included; no sign, at most 15 digits. */
export function integer(low: number, high: number): Reader<number> {
  return (text) => {
    const value = Number(text);
    if (!/^\d{1,15}$/.test(text) || value < low || value > high) throw new Error(`a whole number from ${low} to ${high}`);
    return value;
  };
}

/** Decimal numbers between two limits, both included; no sign, no exponent, at most nine digits on each side of the point. */
export function decimal(low: number, high: number): Reader<number> {
  return (text) => {
    const value = Number(text);
    if (!/^\d{1,9}(\.\d{1,9})?$/.test(text) || value < low || value > high) throw new Error(`a number from ${low} to ${high}`);
    return value;
  };
}

/** One of these words, exactly as written. */
export function oneOf<const T extends string>(...names: readonly T[]): Reader<T> {
  return (text) => {
    const found = names.find((name) => name === text);
    if (found === undefined) throw new Error(`one of ${names.join(', ')}`);
    return found;
  };
}

/** An absolute URL of one of these schemes (without colon), kept as it was written. */
export function url(...schemes: readonly string[]): Reader<string> {
  return (text) => {
    const parsed = URL.canParse(text) ? new URL(text) : null;
    if (parsed === null || !schemes.includes(parsed.protocol.slice(0, -1)))
      throw new Error(`a URL of the form ${schemes[0]}://…`);
    return text;
  };
}

/** A list separated by commas; no URL twice. */
export function urls(...schemes: readonly string[]): Reader<readonly string[]> {
  const read = url(...schemes);
  return (text) => {
    const list = text.split(',').map((one) => read(one.trim()));
    if (new Set(list).size < list.length) throw new Error('a list without duplicate URLs');
    return list;
  };
}

/** The setting for what announces Ethereum's blocks: name, reader, help. */
export const ETHEREUM_HEADS = [
  `BURSAR_${ETHER}_WS_URL`,
  urls('ws', 'wss'),
  `where a node of ${ETHER} announces new blocks (newHeads): ws://user:password@host:8546; several, separated by commas; a block is then looked for at once, and by polling all the same; unset: by polling only`,
] as const;

/** libpq leaves the host out where `?host=` names a socket's folder, but a URL with a user must have one. */
export const postgresUrl: Reader<string> = (value) =>
  url('postgresql', 'postgres')(value.replace(/^(postgres(?:ql)?:\/\/[^/?#]*@)(?=\/)/, '$1localhost'));

/** Any text. */
export const text: Reader<string> = (value) => value;

/** An IP address or a host name to listen on. */
export const host: Reader<string> = (value) => {
  if (isIP(value) === 0 && !/^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$/i.test(value)) throw new Error('an IP address or a host name');
  return value;
};

/** IP addresses and networks in CIDR notation (RFC 4632, RFC 4291), separated by commas. */
export const networks: Reader<readonly string[]> = (value) => {
  const list = value.split(',').map((part) => part.trim());
  const wrong = list.find((part) => {
    const [address = '', bits, rest] = part.split('/');
    const family = isIP(address);
    const most = family === 4 ? 32 : 128;
    return family === 0 || rest !== undefined || (bits !== undefined && (!/^\d{1,3}$/.test(bits) || Number(bits) > most));
  });
  if (wrong !== undefined) throw new Error('IP addresses or networks such as 10.0.0.0/8, separated by commas');
  return list;
};

/** Dollars with at most two decimals; the result is in cents. */
export const dollars: Reader<bigint> = (value) => {
  const match = /^(\d{1,15})(?:\.(\d{1,2}))?$/.exec(value);
  if (match === null) throw new Error('an amount of dollars such as 10000 or 10000.00');
  return BigInt(`${match[1]}${(match[2] ?? '').padEnd(2, '0')}`);
};

/** An Ethereum address; its EIP-55 checksum is not looked at. */
export const evmAddress: Reader<string> = (value) => {
  if (!/^0x[0-9a-fA-F]{40}$/.test(value)) throw new Error('an Ethereum address (0x and 40 hexadecimal digits)');
  return value;
};

/** A secret of at least this many characters and at most 128. */
export const secretOf =
  (shortest: number): Reader<string> =>
  (value) => {
    if (value.length < shortest || value.length > 128) throw new Error(`${shortest} to 128 characters`);
    return value;
  };

/** Exchanges with the address to ask each at. */
export type RateSourceUrls = Readonly<Partial<Record<RateSourceName, string>>>;

/**
 * Exchanges by name, each with the address to ask it at, separated by commas: `kraken, coinbase=https://proxy.example.org/coinbase`. An
 * exchange without an address is asked at its public one.
 */
export const rateSources: Reader<RateSourceUrls> = (value) => {
  const names = Object.keys(RATE_SOURCES) as RateSourceName[];
  const accepted = new Error(
    `two or more of ${names.join(', ')}, separated by commas, each once, each with =https://… where it is asked at another address`,
  );
  const chosen: [RateSourceName, string][] = value.split(',').map((part) => {
    const [, word = '', , address] = /^\s*([a-z]*)\s*(=\s*(\S+)\s*)?$/.exec(part) ?? [];
    const name = names.find((one) => one === word);
    if (name === undefined || (address !== undefined && !isHttp(address))) throw accepted;
    return [name, address ?? RATE_SOURCES[name].url];
  });
  if (chosen.length < 2 || new Set(chosen.map(([name]) => name)).size < chosen.length) throw accepted;
  return Object.fromEntries(chosen);
};

function isHttp(address: string): boolean {
  const url = URL.canParse(address) ? new URL(address) : null;
  return url !== null && /^https?:$/.test(url.protocol) && url.username === '' && url.search === '' && url.hash === '';
}

/** Prices in USD by currency. */
export type FixedRates = Readonly<Partial<Record<CurrencyCode, Rate>>>;

/** How prices are written. */
export const FIXED_RATES_EXAMPLE = `${CURRENCY_CODES[0]}=65000.00,${CURRENCY_CODES.at(-1)}=1.00`;

/** Prices as in {@link FIXED_RATES_EXAMPLE}. */
export const fixedRates: Reader<FixedRates> = (value) => {
  const accepted = new Error(
    `a list such as ${FIXED_RATES_EXAMPLE}: each of ${CURRENCY_CODES.join(', ')} at most once, a price above zero with at most 8 decimals`,
  );
  const prices: [CurrencyCode, Rate][] = value.split(',').map((part) => {
    const [name = '', price = '', ...rest] = part.split('=').map((one) => one.trim());
    const code = CURRENCY_CODES.find((one) => one === name.toUpperCase());
    const rate = parseRate(price);
    if (code === undefined || rate === null || rest.length > 0) throw accepted;
    return [code, rate];
  });
  if (new Set(prices.map(([code]) => code)).size < prices.length) throw accepted;
  return Object.fromEntries(prices);
};

/** `BTC:payout=1,hour=5,day=20;LTC:day=100`, in whole units of the currency; the result is in minor units. */
export const signerLimits: Reader<SignerLimits> = (value) => {
  const accepted = new Error(
    `limits such as ${CURRENCY_CODES[0]}:payout=1,hour=5,day=20 in whole units of the currency, separated by semicolons: each of ${CURRENCY_CODES.join(', ')} at most once, with payout, hour or day`,
  );
  const limits: [CurrencyCode, Limit][] = value.split(';').map((part) => {
    const [name = '', list = '', ...rest] = part.trim().split(':');
    const code = CURRENCY_CODES.find((one) => one === name.trim().toUpperCase());
    if (code === undefined || rest.length > 0) throw accepted;
    return [code, limitOf(list, CURRENCIES[code].decimals, accepted)];
  });
  if (new Set(limits.map(([code]) => code)).size < limits.length) throw accepted;
  return Object.fromEntries(limits);
};

function limitOf(list: string, decimals: number, accepted: Error): Limit {
  const limit: { -readonly [K in keyof Limit]: Limit[K] } = { payout: null, hour: null, day: null };
  for (const part of list.split(',')) {
    const [, name, text = ''] = /^\s*(payout|hour|day)\s*=\s*(\S+)\s*$/.exec(part) ?? [];
    const amount = parseAmount(text, decimals);
    if (name === undefined || 'problem' in amount || limit[name as keyof Limit] !== null) throw accepted;
    limit[name as keyof Limit] = amount.minor;
  }
  return limit;
}

/** The names and numbers by which a bank knows the company whose files it takes. */
export const bankOrigin: Reader<AchOrigin> = (value) => {
  const accepted = new Error(
    'routing=091000019;name=WELLS FARGO BANK;company_id=1234567890;company=EXAMPLE INC: the routing number of the bank, its name, the ten digits that it has given the company, the company',
  );
  const parts = new Map(
    value.split(';').map((part) => {
      const [name = '', ...rest] = part.split('=');
      return [name.trim(), rest.join('=').trim()] as const;
    }),
  );
  const at = (name: string): string => parts.get(name) ?? '';
  const [bankRouting, bankName, companyId, companyName] = [at('routing'), at('name'), at('company_id'), at('company')];
  const isWhole = isRouting(bankRouting) && bankName !== '' && /^\d{10}$/.test(companyId) && companyName !== '';
  if (!isWhole || parts.size !== 4) throw accepted;
  return { bankRouting, bankName, companyId, companyName };
};

/** Ports, separated by commas. */
export const portList: Reader<readonly number[]> = (value) => {
  const ports = value.split(',').map((one) => one.trim());
  if (!ports.every((one) => /^\d{1,5}$/.test(one) && Number(one) >= 1 && Number(one) <= 65_535))
    throw new Error('ports from 1 to 65535, separated by commas');
  return ports.map(Number);
};

/** A key of 32 bytes in hex. */
export const hexKey: Reader<Uint8Array> = (value) => {
  if (!/^[0-9a-fA-F]{64}$/.test(value)) throw new Error('64 hexadecimal digits, as "openssl rand -hex 32" prints them');
  return Buffer.from(value, 'hex');
};
