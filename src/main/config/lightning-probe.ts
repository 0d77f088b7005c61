// `bursar config check --nodes` for the Lightning node: its state, what it can receive, and what its macaroon permits, too little or too much.
import { LIGHTNING } from '../../core/currencies/lightning.ts';
import { formatAmount, mulDivDown } from '../../core/money.ts';
import { RECEIVING } from '../../outside/lightning/lnd.ts';
import { PAYING } from '../../outside/lightning/lnd-payer.ts';
import { bakeLine, permissionsOf } from '../../outside/lightning/permissions.ts';
import { configuredTarget, lightningOf } from '../wiring/lightning.ts';
import { payMacaroon } from '../wiring/lightning-payer.ts';
import { fine, type Probe, wrong } from './probe-results.ts';
import type { Config } from './variables.ts';

const what = 'Lightning node';

/** Empty where none is configured. */
export async function probeLightning(config: Config): Promise<readonly Probe[]> {
  if (config.network === 'sandbox') return [];
  try {
    const target = await configuredTarget(config)?.();
    const port = lightningOf(config);
    if (target === undefined || port === null) return [];
    try {
      const condition = await port.condition();
      if (condition.state !== 'ready') {
        const isForeign = condition.state === 'wrong_network' && config.network === 'mainnet';
        return [wrong(what, `${condition.state}: ${condition.reason}`, isForeign), ...macaroonProbes(target.macaroon)];
      }
      const receivable = mulDivDown(await port.receivableMsat(), 1n, 1_000n);
      const { version, identity, height } = condition;
      const says = `${config.network}, ${version}, ${identity}, synced to block ${height}, can receive ${formatAmount(receivable, LIGHTNING.code)} ${LIGHTNING.balance}`;
      return [receivable > 0n ? fine(what, says) : wrong(what, says), ...macaroonProbes(target.macaroon)];
    } finally {
      port.close();
    }
  } catch (error) {
    return [wrong(what, (error as Error).message)];
  }
}

function macaroonProbes(receiving: string): readonly Probe[] {
  const paying = payMacaroon();
  const name = 'macaroon of the Lightning node';
  return [
    macaroonProbe(name, receiving, RECEIVING, 'receiving'),
    ...(paying === null ? [] : [macaroonProbe(`${name} that pays`, paying, PAYING, 'paying')]),
  ];
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
