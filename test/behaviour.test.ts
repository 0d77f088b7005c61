// docs/behaviour.md is the one contract that code and tests cite: every citation exists there, and its rules, operations, refusals and
// depths are those of the code's own tables.
import { readdirSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { describe, expect, test } from 'vitest';
import { PAGE } from '../src/contract/endpoint.ts';
import { MERCHANT_API } from '../src/contract/merchant-api.ts';
import { STREAM_API } from '../src/contract/webhook-api.ts';
import { requiredDepth } from '../src/core/confirmations.ts';
import { CURRENCIES, UTXO_CODES } from '../src/core/currency.ts';
import { EVENT_TYPES } from '../src/core/events.ts';
import {
  BOOKED_GONE_MS,
  GRACE_MS,
  HOUR_MS,
  LATE_BLOCK_AFTER_MS,
  LOOKUP_AFTER_MS,
  MINUTE_MS,
  OUTAGE_GRACE_MS,
  UNBOOKED_GONE_MS,
  WINDOW_MS,
} from '../src/core/judge/times.ts';
import { formatMinor } from '../src/core/money.ts';
import { PAYOUT_STATUSES } from '../src/core/payouts/states.ts';
import { PAYOUT_METHODS, PAYOUT_UNITS } from '../src/core/payouts/units.ts';
import { MOST_DEVIATION_PERCENT, MOST_SPREAD_PERCENT, OLDEST_MS } from '../src/core/rate-median.ts';
import { REFUSALS } from '../src/core/refusal.ts';
import { LIFETIME_SECONDS } from '../src/core/sign-in-ports.ts';
import { TRANSACTION_STATUSES, TRANSITIONS } from '../src/core/transaction-states.ts';
import { FORMER_SECRET_MS, MOST_WEBHOOKS, RETRY_AFTER_MS } from '../src/core/webhooks.ts';
import { LOOSENING_WAITS_MS } from '../src/flow/merchants/settings.ts';
import { DESTINATION_WAITS_MS } from '../src/flow/payouts/settings.ts';
import { FAILURES_COUNT_MS } from '../src/flow/sign-in/lockout.ts';
import * as rotation from '../src/flow/sign-in/refresh-tokens.ts';
import { MAX_USD_MINOR, MIN_USD_MINOR } from '../src/flow/transactions/quote.ts';
import { FAILED_SIGN_INS } from '../src/http/handlers/merchant.ts';
import { MAX_BYTES } from '../src/http/read-body.ts';
import { ANONYMOUS } from '../src/http/server-context.ts';
import { TABLE } from '../src/main/config/variables.ts';

const ROOT = resolve(import.meta.dirname, '..');
const CONTRACT = readFileSync(join(ROOT, 'docs/behaviour.md'), 'utf8');
const SELF = 'test/behaviour.test.ts';
const FILES = ['src', 'test', 'bench', 'bin', 'db', 'scripts', 'docs']
  .flatMap((folder) => readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' }).map((name) => `${folder}/${name}`))
  .concat(readdirSync(ROOT).filter((name) => name.endsWith('.md')))
  .filter((path) => /\.(ts|mjs|sql|sh|md)$/.test(path) && path !== SELF)
  .map((path) => ({ path, text: readFileSync(join(ROOT, path), 'utf8') }));

const SECTIONS = new Set([...CONTRACT.matchAll(/^## (\d+)\. /gm)].map((match) => Number(match[1])));
/** The rows of the table of rules: number, from, to. */
const RULES = [...CONTRACT.matchAll(/^\| (\d+) \| ([^|]*) \| [^|]* \| ([^|]*) \|/gm)].map((match) => ({
  rule: Number(match[1]),
  from: (match[2] ?? '').trim(),
  to: (match[3] ?? '').trim(),
}));
const WITHOUT_ROW = [21, 23];

function citing(pattern: RegExp, isWrong: (cited: number) => boolean): string[] {
  return FILES.flatMap(({ path, text }) =>
    [...text.matchAll(pattern)].filter((match) => isWrong(Number(match[1]))).map((match) => `${path}: ${match[0]}`),
  );
}

describe('citations', () => {
  test('name a section of the contract that exists', () => {
    expect(SECTIONS.size).toBe(9);
    expect(citing(/behaviour(?:\.md)?`?(?:\]\([^)]*\))? §\s?(\d+)/g, (section) => !SECTIONS.has(section))).toEqual([]);
  });

  test('name a rule that exists', () => {
    expect(RULES.map(({ rule }) => rule)).toEqual(Array.from({ length: 24 }, (_, index) => index + 1));
    // of a list (`rules 4, 11 and 99`) every number
    const listed = /(?<=\b[Rr]ules? (?:\d+(?:, | and | or | to ))*)(\d+)(?!\d)/g;
    expect([...'rules 4, 11 and 99'.matchAll(listed)].map((match) => match[1])).toEqual(['4', '11', '99']);
    expect(citing(listed, (rule) => rule < 1 || rule > RULES.length)).toEqual([]);
  });

  test('name no document that is not in the repository', () => {
    expect(citing(/interface\.md|\(issue[: ]/g, () => true)).toEqual([]);
  });
});

describe('the contract and the tables of the code say the same:', () => {
  test('each rule has its row in the table of transitions, or a sentence why not', () => {
    const rows = new Set(TRANSITIONS.map(({ rule }) => rule));
    expect(RULES.map(({ rule }) => rule).filter((rule) => !rows.has(rule))).toEqual(WITHOUT_ROW);
    expect(CONTRACT).toMatch(/Rules 21 and 23 have no row there, because/);
  });

  test('every arrow of the table leads where its rule says', () => {
    for (const { rule, from, to } of TRANSITIONS) {
      // described in words beside the table: the last sentence of rule 18, and the way back of rule 17
      if ((rule === 2 || rule === 17) && from === 'review') continue;
      const row = RULES.find((one) => one.rule === rule);
      const said = row?.to === 'unchanged' ? row.from : row?.to;
      expect(said, `rule ${rule}`).toContain(to);
      if (from !== null) expect(row?.from, `rule ${rule}`).toContain(from);
    }
  });

  test('every status is explained', () => {
    for (const status of TRANSACTION_STATUSES) expect(CONTRACT).toContain(`| \`${status}\` |`);
  });

  test('every operation and every refusal is named', () => {
    for (const { path } of Object.values({ ...MERCHANT_API, ...STREAM_API })) expect(CONTRACT, path).toContain(`\`${path}\``);
    for (const [code, [status]] of Object.entries(REFUSALS)) {
      const row = CONTRACT.split('\n').find((line) => line.startsWith('|') && line.includes(`\`${code}\``));
      expect(row, code).toBeDefined();
      expect(row, code).toContain(String(status));
    }
  });

  test.each(UTXO_CODES.filter((code) => code !== 'DASH'))('%s needs the depths of the table', (code) => {
    const row = CONTRACT.split('\n').find((line) => line.startsWith(`| ${CURRENCIES[code].code} | `) && !line.includes('USD'));
    const depths = (row ?? '')
      .split('|')
      .slice(2, 6)
      .map((cell) => Number(cell.trim()));
    expect([50_00n, 500_00n, 5_000_00n, 50_000_00n].map((usd) => requiredDepth(code, usd).depth)).toEqual(depths);
  });
});

const section = (number: number): string => CONTRACT.split(/^## /m).find((text) => text.startsWith(`${number}. `)) ?? '';
const grouped = (value: number | bigint): string => value.toLocaleString('en-US');
const usd = (minor: bigint): string => formatMinor(minor, 2).replace(/\B(?=(\d{3})+\.)/g, ',');
const SECONDS = 1_000;
/** `5 s`, `30 min`, `2 h` */
const short = (ms: number): string =>
  ms < MINUTE_MS ? `${ms / SECONDS} s` : ms < HOUR_MS ? `${ms / MINUTE_MS} min` : `${ms / HOUR_MS} h`;

describe('the figures of the contract are those of the code:', () => {
  test('the rate limit of every operation', () => {
    const rows = section(1)
      .split('\n')
      .filter((line) => line.startsWith('| ') && /\d a minute/.test(line));
    for (const { path, limit } of Object.values(MERCHANT_API) as {
      path: string;
      limit: { perMinute: number; burst?: number };
    }[]) {
      const row = rows.find((line) => line.includes(`\`${path}\``)) ?? rows.find((line) => line.includes('the other operations'));
      expect(row, path).toContain(`| ${grouped(limit.perMinute)} a minute`);
      expect(/burst (\d+)/.exec(row ?? '')?.[1], path).toBe(limit.burst?.toString());
    }
    expect(rows.find((line) => line.startsWith('| anything without a sign-in'))).toContain(
      `| ${ANONYMOUS.perMinute} a minute per IP`,
    );
  });

  test.each([
    ['the payment window', `ends ${WINDOW_MS / MINUTE_MS} minutes after creation`],
    ['on time', `saw the payment by \`W\` + ${GRACE_MS / SECONDS} s`],
    ['on time after an outage', `by \`W\` + ${short(OUTAGE_GRACE_MS)}`],
    ['rule 8', `| ${short(LOOKUP_AFTER_MS)} after creation the address was looked up`],
    ['rule 15', `out of the mempool for ${short(UNBOOKED_GONE_MS)}`],
    ['rule 17', `neither in the mempool nor in the chain for ${short(BOOKED_GONE_MS)}`],
    ['rule 24', `dated after \`W\` + ${short(LATE_BLOCK_AFTER_MS)}`],
    ['the bounds of an order', `On chain ${usd(MIN_USD_MINOR)} to ${usd(MAX_USD_MINOR)} USD`],
    [
      'the lives of tokens',
      `lives ${LIFETIME_SECONDS.access} seconds, a refresh token ${grouped(LIFETIME_SECONDS.refresh)} seconds`,
    ],
    ['a lost answer to a refresh', `within ${rotation.GRACE_MS / SECONDS} seconds of the first use`],
    ['a lost answer that nobody used', `within ${rotation.UNUSED_GRACE_MS / MINUTE_MS} minutes while neither new token`],
    ['failed sign-ins', `${FAILED_SIGN_INS} failures in ${FAILURES_COUNT_MS / MINUTE_MS} minutes per username and IP`],
    ['a loosened allow-list', `Loosening it takes effect after ${LOOSENING_WAITS_MS / HOUR_MS} hours`],
    ['a new destination of automatic payouts', `A new or changed destination waits ${DESTINATION_WAITS_MS / HOUR_MS} hours`],
    ['the largest body', `A body has at most ${MAX_BYTES / 1024} KiB`],
    ['lists', `\`limit\` is ${PAGE.least} to ${PAGE.most}, default ${PAGE.usual};`],
    ['prices', `older than ${OLDEST_MS / SECONDS} seconds, has a spread above ${MOST_SPREAD_PERCENT} %`],
    ['prices beside the median', `more than ${MOST_DEVIATION_PERCENT} % off the median`],
    ['webhooks of a merchant', `A merchant has at most ${MOST_WEBHOOKS} (`],
    ['a secret that was replaced', `signs along for ${FORMER_SECRET_MS / HOUR_MS} hours`],
    [
      'attempts of a delivery',
      `${RETRY_AFTER_MS.slice(0, -1).map(short).join(', ')} and ${short(RETRY_AFTER_MS.at(-1) ?? 0)} after the attempt before`,
    ],
  ])('%s', (_what, sentence) => {
    expect(CONTRACT).toContain(sentence);
  });

  test('the minimum and the unit of every method of payouts', () => {
    for (const method of PAYOUT_METHODS) {
      const [, , unit, minimum] = (
        section(5)
          .split('\n')
          .find((line) => line.startsWith(`| \`${method}\` |`)) ?? ''
      ).split('|');
      expect(unit, method).toContain(PAYOUT_UNITS[method].code);
      if (PAYOUT_UNITS[method].minimumMinor > 1n) expect(minimum, method).toContain(` ${PAYOUT_UNITS[method].minimum} `);
    }
    for (const status of PAYOUT_STATUSES) expect(section(5)).toContain(`| \`${status}\` |`);
  });

  test.each(UTXO_CODES)('the dust limit of %s', (code) => {
    const { dustMinor, decimals } = CURRENCIES[code];
    const line =
      section(3)
        .split('\n')
        .find((one) => one.includes('the dust limit')) ?? '';
    const said =
      line
        .slice(line.indexOf('the dust limit'))
        .split(/, (?=[\d,.]+ )|: /)
        .find((part) => part.includes(code)) ?? '';
    const text = formatMinor(dustMinor, decimals).replace(/0+$/, '');
    expect([grouped(dustMinor), text]).toContain(/^[\d.,]+/.exec(said)?.[0]);
  });

  test('every type of event', () => {
    const families = ['transaction.<status>', 'payout.<status>'].filter((family) => section(8).includes(`\`${family}\``));
    const statuses = [
      ...TRANSACTION_STATUSES.map((status) => `transaction.${status}`),
      ...PAYOUT_STATUSES.map((status) => `payout.${status}`),
    ];
    expect(families).toHaveLength(2);
    for (const type of EVENT_TYPES) if (!statuses.includes(type)) expect(section(8)).toContain(`\`${type}\``);
    const named = [...section(8).matchAll(/`((?:transaction|payout)\.[a-z_]+)`/g)].map((match) => match[1]);
    expect(named.filter((type) => !EVENT_TYPES.includes(type as string))).toEqual([]);
  });

  test('every operation that it names, but those that it says are not built', () => {
    const paths = new Set<string>(Object.values({ ...MERCHANT_API, ...STREAM_API }).map(({ path }) => path));
    const other = ['/healthz', '/readyz', '/openapi.json', '/docs', '/ops', '/metrics'];
    const named = [...CONTRACT.matchAll(/`(\/[a-z][a-z_]+(?:\.json)?)`/g)].map((match) => match[1] as string);
    expect(named.filter((path) => !paths.has(path) && !other.includes(path))).toEqual([]);
  });

  test('every setting, with its default', () => {
    const rows = section(9)
      .split('\n')
      .filter((line) => line.startsWith('| `'));
    for (const { name, fallback } of TABLE) {
      const brief = /^BURSAR_([A-Z]+)_RPC_URL$/.exec(name)?.[1];
      const row = rows.find((line) => line.includes(`\`${name}\``) || (brief !== undefined && line.includes(`\`…${brief}…\``)));
      expect(row, name).toBeDefined();
      if (fallback !== null) expect(row?.split('|')[2], name).toContain(fallback);
    }
    const known = new Set(TABLE.map(({ name }) => name));
    const named = [...CONTRACT.matchAll(/\b(BURSAR_[A-Z_]*[A-Z])\b/g)].map((match) => match[1] as string);
    expect(named.filter((name) => !known.has(name))).toEqual([]);
  });

  test('every command', () => {
    const commands = FILES.filter(({ path }) => path.startsWith('src/main/cli/')).flatMap(({ text }) =>
      [...text.matchAll(/\bleaf\(\s*(\w+),\s*'([a-z-]+)/g)].map(([, parent, name]) =>
        parent === 'bursar' ? `${name}` : `${parent} ${name}`,
      ),
    );
    expect(commands.length).toBeGreaterThan(20);
    const text = section(7).replace(/\\\|([a-z]+) (<\w+>)/g, '|$1 $2');
    for (const command of commands) {
      const [group, leaf = ''] = command.split(' ');
      const isNamed = new RegExp(`\`${group}${leaf === '' ? '' : ` (?:[a-z-]+\\|)*${leaf}`}(?![a-z-])`).test(
        text.replaceAll('\\|', '|'),
      );
      expect(isNamed, command).toBe(true);
    }
  });
});
