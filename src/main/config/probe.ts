// `bursar config check --nodes`: asks everything that the settings name, and reports the state of each and whether it would stop a start.
// Nothing is created or changed; an embedded database that is not running is started for the check and stopped again.
import { existsSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { type CurrencyCode, ETHER, isToken, UTXO_CODES } from '../../core/currency.ts';
import type { NodeCondition } from '../../core/ports.ts';
import { formatRate } from '../../core/rate.ts';
import { systemClock } from '../../outside/clock.ts';
import { createSignerClient } from '../../outside/signer-client.ts';
import { createChainNodes } from '../../outside/utxo/by-currency.ts';
import { createKeyring } from '../../signer/keyring.ts';
import { type Inspection, inspectDatabase } from '../../store/postgres/inspect.ts';
import { openDatabase } from '../postgres/embedded.ts';
import { pricing } from '../wiring/nodes.ts';
import { keyringOptions, signerFolder } from '../wiring/signer-paths.ts';
import { configuredNodes, tokenContractAtNodes } from './configured-nodes.ts';
import { probeLightning } from './lightning-probe.ts';
import { fine, type Probe, wrong } from './probe-results.ts';
import { secretFiles } from './read-config.ts';
import type { Config } from './variables.ts';

const SIGNER_WITHIN_MS = 5_000;

/** All at once; each has its own time-out. */
export async function probeAll(config: Config): Promise<readonly Probe[]> {
  const database = probeDatabase(config);
  const [{ probes, inspection }, nodes, lightning, rates] = await Promise.all([
    database,
    probeNodes(config),
    probeLightning(config),
    probeRates(config),
  ]);
  return [
    ...probes,
    ...nodes,
    ...lightning,
    ...rates,
    ...probeFiles(config),
    ...(await probeKeys(config, inspection)),
    ...(await probeSigner(config)),
  ];
}

async function probeDatabase(
  config: Config,
): Promise<{ readonly probes: readonly Probe[]; readonly inspection: Inspection | null }> {
  const what = 'database';
  const isThere = ['postgres', 'postgres-elsewhere'].some((name) => existsSync(join(config.dataFolder, name)));
  if (config.databaseUrl === null && !isThere)
    return { probes: [fine(what, `embedded, made in ${config.dataFolder} by the first start`)], inspection: null };
  try {
    const database = await openDatabase(config);
    try {
      const inspection = await inspectDatabase(database.url);
      const { network, pending } = inspection;
      if (network !== null && network !== config.network) {
        const says = `it belongs to ${network}, but BURSAR_NETWORK is ${config.network}`;
        return { probes: [wrong(what, says, true)], inspection };
      }
      const schema = pending === 0 ? 'schema up to date' : `${pending} migrations are applied by the next start`;
      return { probes: [fine(what, `${database.description}, ${schema}`)], inspection };
    } finally {
      await database.close();
    }
  } catch (error) {
    return { probes: [wrong(what, (error as Error).message, true)], inspection: null };
  }
}

async function probeNodes(config: Config): Promise<readonly Probe[]> {
  if (config.network === 'sandbox') return [fine('nodes and price sources', 'simulated: the sandbox brings its own')];
  const urls = [...configuredNodes(config)].flatMap(([currency, list]) => list.map((url) => ({ currency, url })));
  const contract = tokenContractAtNodes(config);
  if (urls.length === 0)
    return [wrong('nodes', `none is configured: no currency is available (BURSAR_${UTXO_CODES[0]}_RPC_URL …)`)];
  return Promise.all(
    urls.map(async ({ currency, url }) => {
      const nodes = createChainNodes({
        network: config.network,
        clock: systemClock,
        urls: new Map([[currency, [url]]]),
        tokenContract: contract,
      });
      const node = nodes.chains.get(currency);
      if (node === undefined) throw new Error(`no adapter for ${currency}`);
      try {
        return probeOf(`${currency} node ${node.name}`, await node.condition(), config);
      } finally {
        await nodes.close();
      }
    }),
  );
}

function probeOf(what: string, condition: NodeCondition, { network }: Config): Probe {
  if (condition.state !== 'ready')
    return wrong(what, `${condition.state}: ${condition.reason}`, condition.state === 'wrong_network' && network === 'mainnet');
  const { height, peers, prunedBelow } = condition;
  const pruned =
    prunedBelow === undefined
      ? 'not pruned'
      : `pruned below block ${prunedBelow}: enough to receive, older blocks cannot be read again (audit --full, chain rescan)`;
  return fine(what, `${network}, synced to block ${height}, ${peers} peers, ${pruned}; txindex is not needed`);
}

async function probeRates(config: Config): Promise<readonly Probe[]> {
  if (config.network === 'sandbox') return [];
  const currencies = [...configuredNodes(config).keys()];
  return Promise.all(
    pricing(config, systemClock, null).map(async (feed) => {
      const what = `price source ${feed.source}`;
      try {
        const samples = await feed.read();
        const missing = currencies.filter((code) => !samples.some(({ currency }) => currency === code));
        const said = samples.map(({ currency, bid }) => `${currency} ${formatRate(bid)}`).join(', ');
        return samples.length === 0
          ? wrong(what, 'it answers without a usable price')
          : fine(what, `${said}${missing.length === 0 ? '' : `; none of ${missing.join(', ')}`}`);
      } catch (error) {
        return wrong(what, (error as Error).message);
      }
    }),
  );
}

/** Files with secrets that others than their owner can read. */
function probeFiles({ dataFolder }: Config): readonly Probe[] {
  const own = ['seed.json', 'passphrase'].map((name) => join(signerFolder(dataFolder), name));
  return [...secretFiles(), ...own].filter(existsSync).map((path) => {
    const mode = statSync(path).mode & 0o777;
    const shown = mode.toString(8).padStart(3, '0');
    return (mode & 0o077) === 0
      ? fine(path, `mode ${shown}`)
      : wrong(path, `mode ${shown}: others can read or change this secret; chmod 600 it`);
  });
}

/** Where the seed is, the signer runs with these settings. */
function probeLimits({ network, signerLimits }: Config): readonly Probe[] {
  if (network !== 'mainnet') return [];
  const limited = Object.keys(signerLimits ?? {}) as CurrencyCode[];
  const what = 'limits of the signer';
  if (limited.length === 0) return [wrong(what, 'none: on mainnet no payout is signed without (BURSAR_SIGNER_LIMITS)')];
  const gasless = limited.includes(ETHER) ? [] : limited.filter((code) => isToken(code));
  const signed = limited.filter((code) => !gasless.includes(code));
  return [
    ...(signed.length === 0 ? [] : [fine(what, `payouts are signed in ${signed.join(', ')}`)]),
    ...gasless.map((code) =>
      wrong(what, `${code} without ${ETHER}: gas counts for the limits of ${ETHER}, so nothing is signed in ${code}`),
    ),
  ];
}

/** A signer of another user answers where the settings say, and lets this user in. */
async function probeSigner(config: Config): Promise<readonly Probe[]> {
  if (config.signerSocket === null) return [];
  const what = `signer at ${config.signerSocket}`;
  const client = createSignerClient(config.signerSocket, { timeoutMs: SIGNER_WITHIN_MS });
  try {
    const { keys } = await client.ask({ op: 'ping' });
    return [fine(what, keys === 'present' ? 'answers' : 'answers; it has no seed')];
  } catch (error) {
    return [wrong(what, `${(error as Error).message}; payouts wait until it answers`)];
  } finally {
    client.close();
  }
}

async function probeKeys(config: Config, inspection: Inspection | null): Promise<readonly Probe[]> {
  const what = 'seed';
  const receiving = inspection?.receiving ?? [];
  const isNeeded = config.network === 'mainnet' && receiving.length === 0;
  try {
    const accounts = await createKeyring({ ...keyringOptions(config, config.dataFolder), makesItsOwn: false }).accounts();
    if (accounts !== null) {
      const opens = fine(what, `opens; accounts of ${accounts.map(({ currency }) => currency).join(', ')}`);
      return [opens, ...probeLimits(config)];
    }
  } catch (error) {
    return [wrong(what, (error as Error).message, true)];
  }
  if (config.network === 'sandbox') return [fine(what, 'made by the first start')];
  if (receiving.length > 0) return [fine(what, `none here; the database receives ${receiving.join(', ')} to keys that it knows`)];
  return [
    wrong(
      what,
      'none yet: make it with "bursar keys init", or receive to keys kept elsewhere with "bursar keys import-xpub"',
      isNeeded,
    ),
  ];
}
