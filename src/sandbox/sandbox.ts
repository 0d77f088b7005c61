// The sandbox: simulated chains, exchanges and controls behind one server on loopback, durable in one folder.
import { randomBytes } from 'node:crypto';
import { mkdirSync, readFileSync } from 'node:fs';
import type { RequestListener, Server } from 'node:http';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { CURRENCY_CODES, type CurrencyCode, isUtxo, type PaymentMethod, type UtxoCode } from '../core/currency.ts';
import { openBank } from './bank/bank.ts';
import type { ControlledNode } from './controlled-node.ts';
import { controlledUtxo } from './controlled-utxo.ts';
import { controlledEvm } from './evm/controlled.ts';
import { openSimulatedEvm } from './evm/simulated-evm.ts';
import { serveLightning } from './lightning/lnd-server.ts';
import { openLightningNode } from './lightning/node.ts';
import { openExchanges, writeWhole } from './rates.ts';
import { closeServer, listen, sandboxHandler } from './server.ts';
import type { Sandbox, SandboxLog, SandboxOptions, SandboxService } from './service-side.ts';
import { openAnnouncer } from './utxo/announcer.ts';
import { DIALECTS } from './utxo/dialects.ts';
import { openSimulatedNode, type SimulatedNode } from './utxo/simulated-node.ts';

// not by an import: that would read every export, and one of them loads a whole HTTP client (14 MB)
const { createServer } = process.getBuiltinModule('node:http');

/** How long an earlier sandbox may take to release its port. */
const PREDECESSOR_MS = 6_000;
/** How long a control waits until the service has seen its effect. */
const NUDGE_MS = 10_000;
/** Controls that come within this time wait for one look of the service together. */
const GATHER_MS = 10;

type Endpoint = { readonly url: string; readonly secret: string; readonly lightning?: { readonly url?: string } };

/**
 * Opens or creates the sandbox of a folder and serves it. Reuses the port of an earlier run when it is free.
 * @throws when another sandbox still serves this folder, or its files cannot be read
 */
export async function createSandbox(options: SandboxOptions): Promise<Sandbox> {
  const { folder, blockSeconds, clock, log = () => undefined } = options;
  const service = forgiving(options.service, log);
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const before = endpointBefore(folder);
  const secret = before?.secret ?? randomBytes(24).toString('hex');
  let handler: RequestListener = (_, response) => void response.writeHead(503).end();
  const server = createServer({ keepAliveTimeout: 30_000, requestTimeout: 30_000, headersTimeout: 30_000 }, (request, response) =>
    handler(request, response),
  );
  // the port is taken before the files are touched: two sandboxes never write to one journal
  const port = await bind(server, before);
  try {
    const nodes = openNodes(options);
    const evm = openSimulatedEvm({ folder, now: () => clock.now(), onBroken: brokenChain(options) });
    const announcers = await Promise.all([...nodes.values()].map(openAnnouncer));
    const exchanges = openExchanges({ folder, now: () => clock.now() });
    const bank = openBank(join(folder, 'bank.jsonl'), () => clock.now());
    const lightning = openLightningNode(folder, () => clock.now());
    const lnd = serveLightning(lightning, { folder, now: () => clock.now(), log });
    const lightningPort = await bindLightning(lnd.server, before);
    type Asked = { readonly sinceMs: number; readonly isAnnounced: boolean; readonly invoices?: readonly string[] };
    const asked = new Map<PaymentMethod, Asked>();
    const look = coalesced((currency: PaymentMethod) => {
      const since = asked.get(currency);
      asked.delete(currency);
      return service.untilRead([currency], NUDGE_MS, since).catch(logged(log));
    });
    const nudge = (currency: PaymentMethod, isAnnounced = false, paid: string | null = null): Promise<void> => {
      const others = asked.get(currency);
      // with somebody who waits for more than his invoice, all do
      const known = others === undefined ? [] : others.invoices;
      asked.set(currency, {
        sinceMs: clock.now(),
        isAnnounced: isAnnounced && others?.isAnnounced !== false,
        ...(paid === null || known === undefined ? {} : { invoices: [...known, paid] }),
      });
      return atMost(NUDGE_MS, look(currency));
    };
    const controlled = new Map<CurrencyCode, ControlledNode>();
    for (const code of CURRENCY_CODES)
      controlled.set(code, isUtxo(code) ? controlledUtxo(nodes.get(code) as SimulatedNode) : controlledEvm(evm, code));
    const url = `http://127.0.0.1:${port}`;
    const context = { nodes: controlled, lightning, url, exchanges, bank, service, clock, nudge };
    handler = sandboxHandler({ secret, nodes: nodes.values(), evm, context, log });
    const { certificate, macaroon, payMacaroon } = lnd;
    const lndUrl = `https://127.0.0.1:${lightningPort}`;
    const endpoints = { url, secret, lightning: { url: lndUrl, certificate, macaroon, payMacaroon } };
    writeWhole(join(folder, 'endpoints.json'), `${JSON.stringify(endpoints)}\n`);
    const timer = blockSeconds > 0 ? setInterval(() => mineOnAll([...nodes.values(), evm]), blockSeconds * 1000) : undefined;
    return {
      url,
      secret,
      giveCapital(currency, outputs, blocks) {
        const node = nodes.get(currency);
        if (node !== undefined && outputs.every(({ script }) => node.received(script.toString('hex')).length === 0))
          node.fund(outputs, blocks);
      },
      giveEvmCapital(outputs, blocks) {
        const missing = outputs.filter(({ currency, address }) => evm.received(currency, address).length === 0);
        for (const { currency, address, minor } of missing) evm.pay(currency, [{ to: address, minor }], null);
        if (missing.length > 0) evm.mine(blocks);
      },
      close: async () => {
        clearInterval(timer);
        await closeServer(server);
        await closeServer(lnd.server);
        for (const announcer of announcers) await announcer.close();
        for (const node of nodes.values()) node.close();
        evm.close();
        bank.close();
        lightning.close();
      },
    };
  } catch (error) {
    await closeServer(server);
    throw error;
  }
}

const brokenChain =
  ({ onEnd }: SandboxOptions) =>
  (error: Error): void =>
    onEnd(`the sandbox cannot store a chain: ${error.message}`);

function openNodes(options: SandboxOptions): ReadonlyMap<UtxoCode, SimulatedNode> {
  const { folder, clock } = options;
  const open = (currency: UtxoCode): [UtxoCode, SimulatedNode] => [
    currency,
    openSimulatedNode({ currency, folder, now: () => clock.now(), onBroken: brokenChain(options) }),
  ];
  return new Map([...DIALECTS.keys()].map(open));
}

/** A chain that cannot be stored has reported that to onEnd; the others go on until the process ends. */
function mineOnAll(nodes: readonly { mine(blocks: number): unknown }[]): void {
  for (const node of nodes) {
    try {
      node.mine(1);
    } catch {}
  }
}

/** Where the sandbox of this folder answered last; null at first, or when the file is unusable. */
function endpointBefore(folder: string): Endpoint | null {
  try {
    const { url, secret, lightning = {} } = JSON.parse(readFileSync(join(folder, 'endpoints.json'), 'utf8')) as Partial<Endpoint>;
    return typeof url === 'string' && typeof secret === 'string' ? { url, secret, lightning } : null;
  } catch {
    return null;
  }
}

/** Takes the port of the earlier run, or any free one when another program has it. */
async function bind(server: Server, before: Endpoint | null): Promise<number> {
  const wanted = before === null ? 0 : Number(new URL(before.url).port);
  for (const until = performance.now() + PREDECESSOR_MS; wanted !== 0; ) {
    try {
      return await listen(server, wanted);
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      if (code !== 'EADDRINUSE' && code !== 'EACCES') throw error;
      if (!(await isSandboxOf(before as Endpoint))) break;
      if (performance.now() > until)
        throw new Error(`another sandbox still serves this folder at ${before?.url}`, { cause: error });
      await delay(100);
    }
  }
  return listen(server, 0);
}

/** The Lightning node's port of the earlier run, or any free one. The folder is ours by then: nobody else can have it for long. */
async function bindLightning(server: Server, before: Endpoint | null): Promise<number> {
  const wanted = before?.lightning?.url === undefined ? 0 : Number(new URL(before.lightning.url).port);
  try {
    return await listen(server, wanted);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EADDRINUSE') throw error;
    return listen(server, 0);
  }
}

/** Whether the server there accepts this folder's secret, and no other. */
async function isSandboxOf({ url, secret }: Endpoint): Promise<boolean> {
  const ask = async (password: string): Promise<number> => {
    const authorization = `Basic ${Buffer.from(`bursar:${password}`).toString('base64')}`;
    return (await fetch(`${url}/alive`, { headers: { authorization }, signal: AbortSignal.timeout(1_000) })).status;
  };
  try {
    return (await ask(secret)) === 204 && (await ask('')) === 401;
  } catch {
    return false;
  }
}

const logged =
  (log: SandboxLog) =>
  (error: Error): false => {
    log('the service did not read the chain', error);
    return false;
  };

/** The service for a control that has done its own part: what cannot be done just now is only logged. */
function forgiving(service: SandboxService, log: SandboxLog): SandboxService {
  return {
    ...service,
    settle: (timeoutMs) => service.settle(timeoutMs).catch(logged(log)),
    refreshRates: () => service.refreshRates().catch((error: Error) => void logged(log)(error)),
  };
}

/** Waits for the end of the work, but no longer than this. */
async function atMost(ms: number, work: Promise<void>): Promise<void> {
  const enough = new AbortController();
  try {
    await Promise.race([work, delay(ms, undefined, { signal: enough.signal }).catch(() => undefined)]);
  } finally {
    enough.abort();
  }
}

/**
 * Runs one at a time for each key, a moment after it was first called for; callers that come after it began wait for one more run, which all
 * of them share.
 */
function coalesced<K>(run: (key: K) => Promise<unknown>): (key: K) => Promise<void> {
  const running = new Map<K, Promise<void>>();
  const next = new Map<K, Promise<void>>();
  async function start(key: K): Promise<void> {
    await Promise.all([running.get(key), delay(GATHER_MS)]);
    const current = run(key).then(() => {
      if (running.get(key) === current) running.delete(key);
    });
    running.set(key, current);
    next.delete(key);
    await current;
  }
  return (key) => {
    const waiting = next.get(key) ?? start(key);
    next.set(key, waiting);
    return waiting;
  };
}
