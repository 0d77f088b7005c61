// `bursar config check --nodes` for the Lightning node: its state, what it can receive, and what its macaroons permit, too little or too much.
import { LIGHTNING } from '../../core/currencies/lightning.ts';
import { formatAmount, mulDivDown } from '../../core/money.ts';
import { RECEIVING } from '../../outside/lightning/lnd.ts';
import { PAYING } from '../../outside/lightning/lnd-payer.ts';
import { bakeLine, permissionsOf } from '../../outside/lightning/permissions.ts';
import { lightningOf, macaroonOf } from '../wiring/lightning.ts';
import { lightningPayerOf, payMacaroon } from '../wiring/lightning-payer.ts';
import { fine, type Probe, wrong } from './probe-results.ts';
import type { Config } from './variables.ts';

const what = 'Lightning node';
const RECEIVES = `macaroon of the ${what}`;
const PAYS = `${RECEIVES} that pays`;

/** Empty where none is configured. */
export async function probeLightning(config: Config): Promise<readonly Probe[]> {
  const { network, lndUrl, lndMacaroon } = config;
  if (network === 'sandbox' || lndUrl === null || lndMacaroon === null) return [];
  // each by itself: what one macaroon does not permit, or a file that is not there, says nothing of the other
  const node = await nodeProbe(config);
  return [
    node.probe,
    await orWrong(RECEIVES, async () => macaroonProbe(RECEIVES, macaroonOf(lndMacaroon), RECEIVING, 'receiving')),
    ...(await payingProbes(config, node.isThere)),
  ];
}

async function orWrong(name: string, probe: () => Promise<Probe>): Promise<Probe> {
  try {
    return await probe();
  } catch (error) {
    return wrong(name, (error as Error).message);
  }
}

async function nodeProbe(config: Config): Promise<{ readonly probe: Probe; readonly isThere: boolean }> {
  let isThere = false;
  const probe = await orWrong(what, async () => {
    const port = lightningOf(config);
    if (port === null) return wrong(what, 'it is not configured');
    try {
      const condition = await port.condition();
      if (condition.state !== 'ready') {
        const isForeign = condition.state === 'wrong_network' && config.network === 'mainnet';
        return wrong(what, `${condition.state}: ${condition.reason}`, isForeign);
      }
      isThere = true;
      const receivable = mulDivDown(await port.receivableMsat(), 1n, 1_000n);
      const { version, identity, height } = condition;
      const says = `${config.network}, ${version}, ${identity}, synced to block ${height}, can receive ${formatAmount(receivable, LIGHTNING.code)} ${LIGHTNING.balance}`;
      return receivable > 0n ? fine(what, says) : wrong(what, says);
    } finally {
      port.close();
    }
  });
  return { probe, isThere };
}

/** Empty where nothing is paid from it. @param asks from the macaroon alone nobody sees that another node has made it, or that it was revoked */
async function payingProbes(config: Config, asks: boolean): Promise<readonly Probe[]> {
  let isSet = true;
  const probe = await orWrong(PAYS, async () => {
    const macaroon = payMacaroon();
    isSet = macaroon !== null;
    const said = macaroonProbe(PAYS, macaroon ?? '', PAYING, 'paying');
    const payer = said.ok && asks ? lightningPayerOf(config) : null;
    try {
      await payer?.identity();
    } finally {
      payer?.close();
    }
    return said;
  });
  return isSet ? [probe] : [];
}

function macaroonProbe(name: string, macaroon: string, needed: readonly string[], work: string): Probe {
  const permissions = permissionsOf(macaroon, needed);
  if (permissions === null) return wrong(name, 'it is no macaroon of LND (version 2)');
  const { missing, beyond } = permissions;
  const bake = `bake one that permits exactly this: ${bakeLine(needed)}`;
  if (missing.length > 0) return wrong(name, `it does not permit ${missing.join(', ')}; ${bake}`);
  if (beyond.length > 0) return wrong(name, `it permits more than ${work} needs (${beyond.join(', ')}): ${bake}`);
  return fine(name, `it permits ${work} and nothing else`);
}
