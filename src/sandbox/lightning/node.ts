// A simulated Lightning node: its key, its one channel with the outside world, its invoices. What it has answered for is a line of its journal,
// on disk. Invoices expire by the clock, as LND's do; nothing else happens by itself. What it pays is in outgoing.ts.
import { createHash, randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { secp256k1 } from '@noble/curves/secp256k1.js';
import { NO_TROUBLE, type Trouble } from '../trouble.ts';
import { openJournal } from '../utxo/journal.ts';
import { paymentRequest } from './bolt11.ts';
import { createLnurls, type LnurlLine } from './lnurl.ts';
import { createOutgoing, type OutgoingLine } from './outgoing.ts';
import { createOwnMoney, type OwnMoneyLine } from './own-money.ts';

/** What our side of the channel holds at first, and the other side: 50 BTC each. */
const EACH_SIDE_MSAT = 50n * 100_000_000_000n;

export type InvoiceStatus = 'OPEN' | 'SETTLED' | 'CANCELED';
export type Invoice = {
  readonly hash: string;
  readonly preimage: string;
  readonly valueMsat: bigint;
  readonly memo: string;
  readonly expirySeconds: number;
  readonly createdAtMs: number;
  readonly addIndex: number;
  readonly paymentRequest: string;
  status: 'OPEN' | 'SETTLED' | 'CANCELED';
  settleIndex: number;
  settledAtMs: number;
  paidMsat: bigint;
  /** How many HTLCs paid it. */
  parts: number;
};

type Line =
  | { readonly kind: 'node'; readonly key: string }
  | {
      readonly kind: 'add';
      readonly preimage: string;
      readonly valueMsat: string;
      readonly memo: string;
      readonly expirySeconds: number;
      readonly atMs: number;
      readonly request: string;
    }
  | { readonly kind: 'cancel'; readonly hash: string }
  | { readonly kind: 'settle'; readonly hash: string; readonly paidMsat: string; readonly parts: number; readonly atMs: number }
  | { readonly kind: 'trouble'; readonly trouble: Trouble }
  | OutgoingLine
  | { readonly kind: 'own'; readonly line: OwnMoneyLine }
  | LnurlLine;

/** What an outsider's payment came to; the reason is what the payer's wallet would show. */
export type PayAnswer = { readonly paid: true } | { readonly paid: false; readonly reason: string };

export type LightningNode = ReturnType<typeof openLightningNode>;

const sha256 = (hex: string): string => createHash('sha256').update(Buffer.from(hex, 'hex')).digest('hex');

/** @param folder of its journal. Throws DamagedFile */
export function openLightningNode(folder: string, now: () => number) {
  const invoices = new Map<string, Invoice>();
  /** In the order in which they were made. */
  const inOrder: Invoice[] = [];
  const listeners = new Set<(invoice: Invoice) => void>();
  const troubleListeners = new Set<() => void>();
  let key: Uint8Array | null = null;
  let settled = 0;
  let receivedMsat = 0n;
  let trouble: Trouble = NO_TROUBLE;
  const startedMs = now();
  let isPeerAway = false;
  const outgoing = createOutgoing({
    write: (line) => write(line),
    now,
    localMsat: () => EACH_SIDE_MSAT + receivedMsat + own.earnedMsat() - outgoing.leftMsat(),
    isOwn: (request) => inOrder.some((invoice) => invoice.paymentRequest === request.toLowerCase()),
    nodeKey: () => secret,
  });
  const lnurls = createLnurls((line) => write(line));
  const own = createOwnMoney((line) => write({ kind: 'own', line }), now);

  function apply(line: Line): void {
    if (line.kind === 'node') key = Buffer.from(line.key, 'hex');
    else if (line.kind === 'trouble') trouble = line.trouble;
    else if (line.kind === 'outside' || line.kind === 'send' || line.kind === 'sent' || line.kind === 'forget')
      outgoing.apply(line);
    else if (line.kind === 'own') own.apply(line.line);
    else if (line.kind === 'lnurl' || line.kind === 'lnurl_invoice') lnurls.apply(line);
    else if (line.kind === 'add') {
      const invoice: Invoice = {
        hash: sha256(line.preimage),
        preimage: line.preimage,
        valueMsat: BigInt(line.valueMsat),
        memo: line.memo,
        expirySeconds: line.expirySeconds,
        createdAtMs: line.atMs,
        addIndex: inOrder.length + 1,
        paymentRequest: line.request,
        status: 'OPEN',
        settleIndex: 0,
        settledAtMs: 0,
        paidMsat: 0n,
        parts: 0,
      };
      invoices.set(invoice.hash, invoice);
      inOrder.push(invoice);
    } else {
      const invoice = invoices.get(line.hash) as Invoice;
      if (line.kind === 'cancel') invoice.status = 'CANCELED';
      else {
        settled += 1;
        receivedMsat += BigInt(line.paidMsat);
        Object.assign(invoice, { status: 'SETTLED', settleIndex: settled, settledAtMs: line.atMs });
        Object.assign(invoice, { paidMsat: BigInt(line.paidMsat), parts: line.parts });
      }
    }
  }
  const journal = openJournal(join(folder, 'lightning.jsonl'), (line) => apply(line as Line));
  function write(line: Line): void {
    journal.append(line);
    apply(line);
  }
  if (key === null) write({ kind: 'node', key: Buffer.from(secp256k1.utils.randomSecretKey()).toString('hex') });
  const secret = key as unknown as Uint8Array;

  /** As of now: an open one whose time is over is cancelled. */
  function seen(invoice: Invoice): Invoice {
    if (invoice.status === 'OPEN' && now() >= invoice.createdAtMs + invoice.expirySeconds * 1000) invoice.status = 'CANCELED';
    return invoice;
  }
  const remoteMsat = (): bigint => EACH_SIDE_MSAT - receivedMsat - own.earnedMsat() + outgoing.leftMsat();

  return {
    identity: Buffer.from(secp256k1.getPublicKey(secret, true)).toString('hex'),
    /** Makes an invoice; null when there is one with this preimage already. */
    add(asked: Pick<Invoice, 'preimage' | 'valueMsat' | 'memo' | 'expirySeconds'>): Invoice | null {
      const hash = sha256(asked.preimage);
      if (invoices.has(hash)) return null;
      const atMs = now();
      const request = paymentRequest({
        key: secret,
        amountMsat: asked.valueMsat,
        atMs,
        paymentHash: Buffer.from(hash, 'hex'),
        paymentSecret: randomBytes(32),
        description: asked.memo,
        expirySeconds: asked.expirySeconds,
      });
      const { preimage, memo, expirySeconds } = asked;
      write({ kind: 'add', preimage, valueMsat: String(asked.valueMsat), memo, expirySeconds, atMs, request });
      return invoices.get(hash) as Invoice;
    },
    find(hash: string): Invoice | null {
      const found = invoices.get(hash);
      return found === undefined ? null : seen(found);
    },
    /** Every invoice in the order in which they were made. */
    all: (): readonly Invoice[] => inOrder.map(seen),
    cancel(hash: string): InvoiceStatus | null {
      const found = this.find(hash);
      if (found?.status === 'OPEN') write({ kind: 'cancel', hash });
      return found?.status ?? null;
    },
    /** Somebody pays an invoice, in this many parts. */
    pay(hash: string, amountMsat: bigint, parts: number): PayAnswer {
      const found = this.find(hash);
      const refused = (reason: string): PayAnswer => ({ paid: false, reason });
      if (found === null) return refused('the node has no such invoice');
      if (found.status === 'SETTLED') return refused('the invoice is already paid');
      if (found.status === 'CANCELED') return refused('the invoice is expired or cancelled');
      if (amountMsat < found.valueMsat) return refused('a Lightning invoice cannot be paid with less than it asks for');
      if (amountMsat > remoteMsat()) return refused('no route: the channels cannot receive that much');
      write({ kind: 'settle', hash, paidMsat: String(amountMsat), parts, atMs: now() });
      for (const listener of [...listeners]) listener(found);
      return { paid: true };
    },
    /** Calls back for each invoice that is settled from now on; returns what ends that. */
    onSettled(listener: (invoice: Invoice) => void): () => void {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
    outgoing,
    lnurls,
    own,
    localMsat: (): bigint => EACH_SIDE_MSAT + receivedMsat + own.earnedMsat() - outgoing.outMsat(),
    remoteMsat,
    capacityMsat: 2n * EACH_SIDE_MSAT,
    runsMs: (): number => now() - startedMs,
    isPeerAway: (): boolean => isPeerAway,
    /** Whoever is on the other side of its channels cannot be reached, until it is started again. */
    setPeerAway(isAway: boolean): void {
      isPeerAway = isAway;
    },
    trouble: (): Trouble => trouble,
    setTrouble(after: Trouble): void {
      write({ kind: 'trouble', trouble: after });
      for (const listener of [...troubleListeners]) listener();
    },
    /** Calls back when the trouble changes. */
    onTrouble: (listener: () => void): void => void troubleListeners.add(listener),
    close: () => journal.close(),
  };
}
