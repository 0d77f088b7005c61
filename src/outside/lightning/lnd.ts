// The Lightning port on LND (REST, 0.18 and newer): what LND's answers mean. Its refusals are HTTP 500 with a text, nearly all of them, so the
// texts decide; numbers of 64 bits are text.
import { createHash, randomBytes } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import type { InvoiceFacts, InvoiceState, LightningCondition, LightningPort } from '../../core/lightning/port.ts';
import { NodeTrouble } from '../utxo/node/trouble.ts';
import { bad, isNone, objects, text, whole } from './lnd-answers.ts';
import { type Answer, createLndRest, LndRefusal, type LndTarget } from './lnd-rest.ts';
import {
  readChainEvents,
  readForwarded,
  readHoldings,
  readHolds,
  readIsClosing,
  readLastForwarded,
  readMayBeOlder,
  STATEMENT,
} from './lnd-statement.ts';
import { bakeLine } from './permissions.ts';

/** LND asks bitcoind for this one, and hangs when that is away. */
const CONDITION_MS = 5_000;
const CALL_MS = 10_000;
const PAGE = 500;
const BETWEEN_TURNS_MS = 1_000;

const STATES: Readonly<Record<string, InvoiceState>> = {
  OPEN: 'open',
  ACCEPTED: 'accepted',
  SETTLED: 'settled',
  CANCELED: 'cancelled',
};

/** The methods that receiving needs, as a macaroon's `uri` permissions name them. */
export const RECEIVING: readonly string[] = [
  '/lnrpc.Lightning/GetInfo',
  '/lnrpc.Lightning/AddInvoice',
  '/lnrpc.Lightning/LookupInvoice',
  '/lnrpc.Lightning/ListInvoices',
  '/lnrpc.Lightning/SubscribeInvoices',
  '/lnrpc.Lightning/ListChannels',
  '/invoicesrpc.Invoices/CancelInvoice',
  ...STATEMENT,
];

/**
 * An invoice comes with every part that was ever sent for it, also those that were given back, which cost nothing, and with what the sender wrote into each:
 * three kilobytes of it, as often as he likes. None of it is ours to read.
 */
const WITHOUT_PARTS = { without: 'htlcs' };

/** In AMP, which we never ask for, each payment has a hash of its own, and LND lists its invoice without one. A stranger makes it by paying. */
const hasOneHash = (invoice: Answer): boolean => invoice.is_amp !== true;

function invoiceFacts(answer: Answer): InvoiceFacts {
  const state = STATES[text(answer, 'state')];
  if (state === undefined) throw bad(`an invoice is ${text(answer, 'state')}`);
  const paymentHash = Buffer.from(text(answer, 'r_hash'), 'base64').toString('hex');
  if (paymentHash.length !== 64) throw bad('an invoice without a payment hash');
  const isSettled = state === 'settled';
  return {
    paymentHash,
    state,
    paidMsat: isSettled ? whole(answer, 'amt_paid_msat') : 0n,
    addedAtMs: Number(whole(answer, 'creation_date')) * 1000,
    settledAtMs: isSettled ? Number(whole(answer, 'settle_date')) * 1000 : null,
    settleIndex: whole(answer, 'settle_index'),
    addIndex: whole(answer, 'add_index'),
    paymentRequest: text(answer, 'payment_request'),
  };
}

/** What the other side of an active channel can send us: what it has, less what it must keep and, where it pays them, the fees. */
function receivableOf(channel: Answer): bigint {
  const constraints = (channel.remote_constraints ?? {}) as Answer;
  const reserve = whole(constraints, 'chan_reserve_sat');
  const fee = channel.initiator === true ? 0n : 2n * whole(channel, 'commit_fee');
  const rest = whole(channel, 'remote_balance') - reserve - fee;
  return rest > 0n ? rest * 1000n : 0n;
}

const says = (error: unknown, words: string): boolean => error instanceof LndRefusal && error.message.includes(words);

/** @param options.chain the network that the node must be on; `callMs`: how long an answer may take */
export function createLnd(
  target: () => Promise<LndTarget>,
  options: { readonly chain: 'mainnet' | 'testnet' | 'regtest'; readonly callMs?: number },
): LightningPort {
  const rest = createLndRest(target);
  const { callMs: deadlineMs = CALL_MS } = options;
  const call = (verb: 'GET' | 'POST', path: string, body?: unknown): Promise<Answer> =>
    rest.call(verb, path, { deadlineMs, ...(body === undefined ? {} : { body }) });
  const readInvoices = (path: string): Promise<Answer> => rest.call('GET', path, { deadlineMs, ...WITHOUT_PARTS });

  async function readCondition(): Promise<LightningCondition> {
    const { state } = await rest.call('GET', '/v1/state', { deadlineMs: CONDITION_MS });
    if (state !== 'SERVER_ACTIVE' && state !== 'RPC_ACTIVE')
      return { state: 'warming_up', reason: state === 'LOCKED' ? 'its wallet is locked' : `it says ${String(state)}` };
    const info = await rest.call('GET', '/v1/getinfo', { deadlineMs: CONDITION_MS });
    const network = objects(info, 'chains')[0]?.network;
    if (network !== options.chain)
      return { state: 'wrong_network', reason: `it is on ${String(network)}, but BURSAR_NETWORK wants ${options.chain}` };
    if (info.synced_to_chain !== true) return { state: 'syncing', reason: 'it has not read its chain to the end' };
    return {
      state: 'ready',
      height: Number(whole(info, 'block_height')),
      identity: text(info, 'identity_pubkey'),
      version: text(info, 'version'),
    };
  }

  let receivable: Promise<bigint> | null = null;
  async function readReceivable(): Promise<bigint> {
    const channels = objects(await call('GET', '/v1/channels?active_only=true'), 'channels');
    return channels.reduce((total, channel) => total + receivableOf(channel), 0n);
  }

  /** How many invoices are asked for at once. */
  let listed = PAGE;
  async function invoice(paymentHash: string): Promise<InvoiceFacts | null> {
    try {
      return invoiceFacts(await readInvoices(`/v1/invoice/${paymentHash}`));
    } catch (error) {
      if (isNone(error)) return null;
      throw error;
    }
  }

  async function cancelInvoice(paymentHash: string, withinMs = deadlineMs): Promise<'cancelled' | 'settled' | 'unknown'> {
    const body = { payment_hash: Buffer.from(paymentHash, 'hex').toString('base64') };
    try {
      await rest.call('POST', '/v2/invoices/cancel', { deadlineMs: withinMs, body });
      return 'cancelled';
    } catch (error) {
      if (says(error, 'already settled')) return 'settled';
      if (says(error, 'already canceled')) return 'cancelled';
      if (isNone(error)) return 'unknown';
      throw error;
    }
  }

  /** A macaroon of an earlier version makes invoices, and cannot read these. */
  async function permitted<T>(work: Promise<T>): Promise<T> {
    try {
      return await work;
    } catch (error) {
      if (!(error instanceof NodeTrouble) || error.state !== 'unauthorized') throw error;
      throw new NodeTrouble('unauthorized', `${error.message}; BURSAR_LND_MACAROON wants one of: ${bakeLine(RECEIVING)}`);
    }
  }

  return {
    async condition() {
      try {
        return await readCondition();
      } catch (error) {
        if (error instanceof NodeTrouble) return { state: error.state, reason: error.message };
        if (error instanceof LndRefusal) return { state: 'bad_answer', reason: error.message };
        throw error;
      }
    },
    receivableMsat() {
      // callers at the same time share one answer
      receivable ??= readReceivable().finally(() => {
        receivable = null;
      });
      return receivable;
    },
    holdings: () => permitted(readHoldings(call)),
    isClosing: () => permitted(readIsClosing(call)),
    holds: (paymentHash) => readHolds(call, paymentHash),
    mayBeOlder: (withinMs, known, run) => permitted(readMayBeOlder(call, withinMs, known, run)),
    forwarded: (afterNs) => permitted(readForwarded(call, afterNs)),
    lastForwardedNs: () => permitted(readLastForwarded(call)),
    chainEvents: (fromHeight, toHeight) => permitted(readChainEvents(call, fromHeight, toHeight)),
    async addInvoice({ preimage, amountMsat, expirySeconds, description }) {
      const paymentHash = createHash('sha256').update(preimage).digest('hex');
      try {
        const made = await call('POST', '/v1/invoices', {
          r_preimage: Buffer.from(preimage).toString('base64'),
          value_msat: String(amountMsat),
          expiry: String(expirySeconds),
          memo: description,
          // route hints, where no channel is announced; otherwise it changes nothing
          private: true,
        });
        if (Buffer.from(text(made, 'r_hash'), 'base64').toString('hex') !== paymentHash)
          throw bad('an invoice has another payment hash than that of its preimage');
        return text(made, 'payment_request');
      } catch (error) {
        // this very call was made before, and its answer was lost
        const found = says(error, 'already exists') ? await invoice(paymentHash) : null;
        if (found === null) throw error;
        return found.paymentRequest;
      }
    },
    invoice,
    cancelInvoice: (paymentHash) => cancelInvoice(paymentHash),
    async writes() {
      // LND takes its turn to write before it looks for the invoice, and there is none to cancel
      const turn = (): Promise<unknown> => cancelInvoice(randomBytes(32).toString('hex'), deadlineMs / 2);
      await turn();
      // of a payment it may have written down until then which numbers it gives next, and waits for its turn once more, ten milliseconds later
      await delay(BETWEEN_TURNS_MS);
      await turn();
    },
    async invoices(afterIndex, { openOnly }) {
      for (let from = afterIndex; ; ) {
        const most = listed;
        const query = `index_offset=${from}&num_max_invoices=${most}${openOnly ? '&pending_only=true' : ''}`;
        try {
          const page = objects(await readInvoices(`/v1/invoices?${query}`), 'invoices');
          listed = Math.min(PAGE, most * 2);
          const found = page.filter(hasOneHash).map(invoiceFacts);
          const last = page.at(-1);
          // whoever asks goes on after the last one that he gets, and a page without any is the last
          if (found.length > 0 || last === undefined) return found;
          const next = whole(last, 'add_index');
          if (next <= from) throw bad(`invoices after number ${from} end at number ${next}`);
          from = next;
        } catch (error) {
          // it makes no answer of more than 200 MB, and one that did not come in time may come for fewer the next time
          listed = Math.ceil(most / 8);
          if (most === 1 || !(await rest.isTooMuch(error))) throw error;
        }
      }
    },
    subscribe(afterIndex, { onSettled, onEnd }) {
      const ending = new AbortController();
      const follow = async (): Promise<void> => {
        // no add_index: invoices that are made are told too, and left out below
        const path = `/v1/invoices/subscribe?settle_index=${afterIndex}`;
        for await (const line of rest.lines(path, ending.signal, WITHOUT_PARTS)) {
          if (!hasOneHash(line)) continue;
          const facts = invoiceFacts(line);
          if (facts.state === 'settled') onSettled(facts);
        }
      };
      follow().then(
        () => onEnd('LND ended the stream of settlements'),
        (error: Error) => onEnd(error.message),
      );
      return { close: () => ending.abort() };
    },
    close: () => rest.close(),
  };
}
