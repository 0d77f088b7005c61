// The Lightning nodes that the tests run on: the simulated one, and two real LND where they are to be had. Each with somebody who pays.
import { createHash, randomBytes } from 'node:crypto';
import { cpSync, existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { RECEIVING } from '../../src/outside/lightning/lnd.ts';
import { PAYING } from '../../src/outside/lightning/lnd-payer.ts';
import type { LndTarget } from '../../src/outside/lightning/lnd-rest.ts';
import { serveLightning } from '../../src/sandbox/lightning/lnd-server.ts';
import { bakeMacaroon } from '../../src/sandbox/lightning/macaroons.ts';
import { type LightningNode, openLightningNode } from '../../src/sandbox/lightning/node.ts';
import { closeServer, listen } from '../../src/sandbox/server.ts';
import { type LndPair, startLndPair } from './lnd.ts';
import { eventually } from './service.ts';

export type LightningEngine = {
  readonly name: string;
  /** With a macaroon for what receiving needs. */
  target(): LndTarget;
  /** Somebody pays an invoice; whether he could. */
  pay(paymentRequest: string, paymentHash: string): Promise<boolean>;
  /** With a macaroon for what paying needs. */
  payTarget(): LndTarget;
  /** An invoice of somebody outside; a held one stays in flight until it is decided. Without an amount the payer chooses. */
  invoice(of: {
    readonly sat: number | null;
    readonly isHeld?: boolean;
    /** Blocks that its recipient wants for itself; LND's invoices only. */
    readonly cltv?: number;
  }): Promise<{ readonly request: string; readonly hash: string }>;
  /** Waits until a held payment has reached its recipient. Throws when none has within a time, by default half a minute. */
  held(hash: string, withinMs?: number): Promise<void>;
  /** The recipient takes a held payment, or gives it back. Throws when none is held within a time, by default half a minute. */
  decide(hash: string, takes: boolean, withinMs?: number): Promise<void>;
  /** What the recipient of an invoice has, in satoshis. */
  arrived(hash: string): Promise<number>;
  /** Ends the node as a crash does, and starts it again. */
  restart(): Promise<void>;
  close(): Promise<void>;
};

export type SimulatedEngine = LightningEngine & {
  node(): LightningNode;
  /** A macaroon for these methods only. */
  bake(methods: readonly string[]): string;
  /** A copy of the node as it is now; the function returned ends the node and puts the copy in its place. */
  backup(): () => Promise<void>;
};

/** @param now the clock of the node */
export async function simulatedEngine(now: () => number = () => Date.now()): Promise<SimulatedEngine> {
  const folder = mkdtempSync(join(tmpdir(), 'bursar-ln-'));
  const log = (line: string, error: Error) => console.error(line, error);
  const open = () => {
    const node = openLightningNode(folder, now);
    return { node, served: serveLightning(node, { folder, now, log }) };
  };
  let { node, served } = open();
  let port = await listen(served.server, 0);
  const stop = async (): Promise<void> => {
    await closeServer(served.server);
    node.close();
  };
  return {
    name: 'the simulated node',
    node: () => node,
    bake(methods) {
      const { rootKey } = JSON.parse(readFileSync(join(folder, 'lightning.json'), 'utf8')) as { readonly rootKey: string };
      return bakeMacaroon(Buffer.from(rootKey, 'hex'), methods);
    },
    backup() {
      const copy = mkdtempSync(join(tmpdir(), 'bursar-ln-copy-'));
      cpSync(folder, copy, { recursive: true });
      return async () => {
        await stop();
        rmSync(folder, { recursive: true, force: true });
        cpSync(copy, folder, { recursive: true });
        rmSync(copy, { recursive: true, force: true });
        ({ node, served } = open());
        port = await listen(served.server, port);
      };
    },
    target: () => ({ url: `https://127.0.0.1:${port}`, certificate: served.certificate, macaroon: served.macaroon }),
    async pay(_request, paymentHash) {
      const found = node.find(paymentHash);
      return found !== null && node.pay(paymentHash, found.valueMsat, 1).paid;
    },
    payTarget: () => ({ url: `https://127.0.0.1:${port}`, certificate: served.certificate, macaroon: served.payMacaroon }),
    async invoice({ sat, isHeld = false }) {
      const behaviour = isHeld ? 'hold' : 'pay';
      return node.outgoing.invoice({ amountMsat: BigInt(sat ?? 0) * 1_000n, expirySeconds: 3_600, behaviour });
    },
    async held(hash, withinMs = 30_000) {
      await eventually('it is held', async () => node.outgoing.payment(hash)?.status === 'IN_FLIGHT', withinMs);
    },
    async decide(hash, takes) {
      if (!node.outgoing.resolve(hash, takes)) throw new Error(`no payment of ${hash} is held`);
    },
    arrived: async (hash) => Number((node.outgoing.find(hash)?.receivedMsat ?? 0n) / 1_000n),
    async restart() {
      await stop();
      ({ node, served } = open());
      port = await listen(served.server, port);
    },
    async close() {
      await stop();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

export type LndEngine = LightningEngine & {
  readonly pair: LndPair;
  /** Our node closes by force every channel that holds something. */
  closeHolding(): Promise<void>;
  /** The disk of our node is lost: it begins anew from its words and the file that names its channels. */
  loseDisk(): Promise<void>;
};

/** @param options.hasWords our node can be made again from its words */
export async function lndEngine(options: { readonly hasWords?: boolean } = {}): Promise<LndEngine> {
  const pair = await startLndPair(options);
  const bake = async () => [await pair.shop.bake(RECEIVING), await pair.shop.bake(PAYING)] as const;
  let [macaroon, payMacaroon] = await bake();
  const preimages = new Map<string, Buffer>();
  const base64 = (hex: string): string => Buffer.from(hex, 'hex').toString('base64');
  const accepted = async (hash: string, withinMs = 30_000): Promise<void> => {
    const look = () => pair.customer.call<{ state: string }>('GET', `/v1/invoice/${hash}`);
    await eventually('it is held', async () => (await look()).state === 'ACCEPTED', withinMs);
  };
  return {
    name: 'LND',
    pair,
    target: () => ({ ...pair.shop.target, macaroon }),
    pay: async (request) => (await pair.pay(request)) === 'SUCCEEDED',
    payTarget: () => ({ ...pair.shop.target, macaroon: payMacaroon }),
    async invoice({ sat, isHeld = false, cltv = null }) {
      const preimage = randomBytes(32);
      const hash = createHash('sha256').update(preimage).digest('hex');
      const of = { value: String(sat ?? 0), expiry: '3600', ...(cltv === null ? {} : { cltv_expiry: String(cltv) }) };
      const path = isHeld ? '/v2/invoices/hodl' : '/v1/invoices';
      const body = isHeld ? { ...of, hash: base64(hash), cltv_expiry: '40' } : { ...of, r_preimage: preimage.toString('base64') };
      if (isHeld) preimages.set(hash, preimage);
      const made = await pair.customer.call<{ payment_request: string }>('POST', path, body);
      return { request: made.payment_request, hash };
    },
    held: accepted,
    async decide(hash, takes, withinMs) {
      await accepted(hash, withinMs);
      if (takes) await pair.customer.call('POST', '/v2/invoices/settle', { preimage: preimages.get(hash)?.toString('base64') });
      else await pair.customer.call('POST', '/v2/invoices/cancel', { payment_hash: base64(hash) });
    },
    async arrived(hash) {
      const found = await pair.customer.call<{ state: string; amt_paid_sat: string }>('GET', `/v1/invoice/${hash}`);
      return found.state === 'SETTLED' ? Number(found.amt_paid_sat) : 0;
    },
    async closeHolding() {
      type Listed = { readonly channel_point: string; readonly pending_htlcs?: readonly unknown[] };
      const { channels } = await pair.shop.call<{ channels: readonly Listed[] }>('GET', '/v1/channels');
      // its answer goes on until the close is settled
      for (const { channel_point: point, pending_htlcs: held = [] } of channels)
        if (held.length > 0)
          pair.shop.call('DELETE', `/v1/channels/${point.replace(':', '/')}?force=true`).catch(() => undefined);
    },
    async loseDisk() {
      await pair.shop.loseDisk();
      [macaroon, payMacaroon] = await bake();
    },
    async restart() {
      await pair.shop.kill();
      await pair.shop.start();
    },
    close: () => pair.remove(),
  };
}

/** On Debian the real nodes must be there; elsewhere their part is skipped. */
export const HAS_LND = existsSync('/etc/debian_version');
