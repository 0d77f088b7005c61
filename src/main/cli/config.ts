// `bursar config check`: the settings in force, where they come from, and what would stop a start.
import { createServer } from 'node:net';
import type { Command } from 'commander';
import type { RateLimits } from '../../contract/endpoint.ts';
import type { CurrencyCode } from '../../core/currency.ts';
import { formatAmount } from '../../core/money.ts';
import { formatRate } from '../../core/rate.ts';
import type { Limit, SignerLimits } from '../../signer/limits.ts';
import { describeSettings, readConfigOfAll, readSignerSecrets } from '../config/read-config.ts';
import type { Config, SignerSecrets } from '../config/variables.ts';
import { TABLE, VARIABLES } from '../config/variables.ts';
import { checkDataFolder } from '../process/data-folder.ts';
import { listenRefused, StartRefused } from '../process/start-refused.ts';
import { EXIT, group, leaf, print, verdict } from './output.ts';

type JsonOption = { readonly json?: boolean };

/** Adds `config check`, which ends with 1 when something would stop a start. */
export function addConfigCommands(bursar: Command): void {
  const config = group(bursar, 'config', 'Settings: the environment, and the file .env beside package.json.');
  leaf(config, 'check', 'Reads every setting and says what is wrong, all at once; exit code 1 when something would stop a start.')
    .option(
      '--nodes',
      'also asks the database, the nodes and the price sources, and looks at the seed and the files with secrets',
    )
    .action(check);
}

async function check({ json, nodes }: JsonOption & { readonly nodes?: boolean }): Promise<void> {
  const config = readConfigOfAll();
  const values = shownSettings({ ...config, ...readSignerSecrets() });
  await checkPlaces(config);
  const { file, isRead, unused } = describeSettings(config);
  // most of the program: loaded only when it is needed
  const probes = nodes === true ? await (await import('../config/probe.ts')).probeAll(config) : null;
  const stops = probes?.some((one) => one.stops) ?? false;
  const value = {
    ok: !stops,
    file: isRead ? file : null,
    settings: values,
    unused,
    ...(probes === null ? {} : { checks: probes }),
  };
  print(json, value, [
    ...Object.entries(values).map(([name, one]) => `${name}=${one ?? ''}`),
    isRead ? `Read ${file} below the environment.` : `There is no ${file}: only the environment was read.`,
    ...unused,
    ...(probes ?? []).map(
      ({ what, ok, stops: isStop, says }) => `${verdict(ok, ok ? 'ok   ' : isStop ? 'STOPS' : 'wrong')}  ${what}: ${says}`,
    ),
    lastWord(probes ?? []),
  ]);
  process.exitCode = stops ? EXIT.failed : EXIT.done;
}

function lastWord(probes: readonly { readonly ok: boolean; readonly stops: boolean }[]): string {
  const wrong = probes.filter(({ ok }) => !ok);
  if (wrong.length === 0) return 'The configuration is right.';
  return wrong.some(({ stops }) => stops)
    ? 'Something would stop a start.'
    : 'Nothing would stop a start, but something is wrong.';
}

/** What a start would refuse about its folder and its host; nothing is created, and the service itself may be using the port. */
async function checkPlaces({ dataFolder, host, port }: Config): Promise<void> {
  const problems: string[] = [];
  const note = (error: Error): void => void problems.push(error.message);
  try {
    checkDataFolder(dataFolder);
  } catch (error) {
    note(error as Error);
  }
  await new Promise<void>((resolve, reject) => {
    const server = createServer();
    server.once('error', (error) => reject(listenRefused(host, port, error)));
    server.listen(0, host, () => server.close(() => resolve()));
  }).catch(note);
  if (problems.length > 0) throw new StartRefused(problems.join('\n'));
}

type Settings = Config & SignerSecrets;

/** Every setting by its variable's name; a secret only as set or not set. */
function shownSettings(settings: Settings): Record<string, string | null> {
  const keys = Object.keys(VARIABLES) as (keyof typeof VARIABLES)[];
  return Object.fromEntries(
    keys.map((key, index) => {
      const row = TABLE[index];
      const value = settings[key];
      const shown = value === null ? null : shownAs(key, settings, value);
      return [row?.name ?? key, row?.secret === true && value !== null ? '(set)' : shown];
    }),
  );
}

function shownAs(key: keyof Settings, settings: Settings, value: NonNullable<Settings[keyof Settings]>): string {
  if (key === 'signerLimits') return shownLimits(settings[key] ?? {});
  return key === 'rateLimits' ? shownRateLimits(settings[key] ?? {}) : shownValue(value);
}

/** In the form in which they are set. */
function shownRateLimits(limits: RateLimits): string {
  return Object.entries(limits)
    .map(([name, { perMinute, burst }]) => `${name}=${perMinute}${burst === undefined ? '' : `/${burst}`}`)
    .join(',');
}

/** In the form in which they are set. */
function shownLimits(limits: SignerLimits): string {
  return (Object.entries(limits) as [CurrencyCode, Limit][])
    .map(([code, limit]) => {
      const set = Object.entries(limit).filter(([, amount]) => amount !== null);
      return `${code}:${set.map(([name, amount]) => `${name}=${formatAmount(amount as bigint, code)}`).join(',')}`;
    })
    .join(';');
}

function shownValue(value: NonNullable<Settings[keyof Settings]>): string {
  if (typeof value === 'bigint') return formatAmount(value, 'USD');
  if (typeof value !== 'object') return String(value);
  if (Array.isArray(value)) return value.join(',');
  return Object.entries(value)
    .map(([name, one]) => `${name}=${typeof one === 'bigint' ? formatRate(one) : one}`)
    .join(',');
}
