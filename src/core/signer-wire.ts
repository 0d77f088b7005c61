// The protocol of the signer's unix socket: frames of a four-byte length (big-endian) and that many bytes of JSON in UTF-8. No message
// carries a key that can spend.
import type { CurrencyCode, Network } from './currency.ts';
import type { PayingNode, PaymentFacts, SendAnswer, TrackedPayment } from './lightning/payer.ts';

/** An account of the signer: its path, and the public key from which receiving addresses are derived. */
export type SignerAccount = {
  readonly currency: CurrencyCode;
  readonly network: Network;
  readonly path: string;
  readonly xpub: string;
  /** Of the seed's root key (BIP32), hex: descriptors identify it by this. */
  readonly fingerprint: string;
};

export type SignerRequest =
  | { readonly op: 'ping' }
  | { readonly op: 'xpubs' }
  /** Whose payouts count. */
  | { readonly op: 'intent_keys' }
  | { readonly op: 'confirm_xpub'; readonly currency: string; readonly xpub: string }
  | ({ readonly op: 'sign' } & TransactionToSign)
  /** A transaction (hex) that made some of these inputs, for a request whose transactions together are more than a frame holds. */
  | { readonly op: 'show'; readonly raw: string; readonly inputs: readonly { readonly txid: string; readonly vout: number }[] }
  /** With a batch: only what was signed for it. Answered after every signature that was asked for before. */
  | { readonly op: 'signed'; readonly after: number; readonly batchId?: string }
  /** Whether a payment may be made: from its answer on the signer knows of it. */
  | { readonly op: 'authorize_payment'; readonly payoutId: string; readonly leaseEpoch: string }
  /** Has our Lightning node pay what was authorized, and is committed in the database. */
  | { readonly op: 'send_payment'; readonly payoutId: string; readonly leaseEpoch: string }
  | { readonly op: 'authorized_payments'; readonly after: number }
  | { readonly op: 'paying_node' }
  /** Every channel that a node has had open while the signer knew it. */
  | { readonly op: 'known_channels'; readonly node: string }
  | { readonly op: 'track_payment'; readonly paymentHash: string }
  | { readonly op: 'node_payments'; readonly after: string };

/** A payment over Lightning that the signer's rules allowed. Satoshis as text. */
export type AuthorizedPayment = {
  /** Rises by one with each. */
  readonly sequence: number;
  readonly payoutId: string;
  readonly paymentHash: string;
  /** What the payout takes at most: its amount, and its highest fee. */
  readonly takes: string;
  /** The transaction whose payments go back; absent for a payout, and in what was written before this was kept. */
  readonly reimburses?: string;
  /** The system's clock. */
  readonly authorizedAtMs: number;
};

/** Amounts are minor units as decimal text. */
export type TransactionToSign = {
  readonly currency: string;
  readonly batchId: string;
  /** 1 for the first transaction of a batch, then one more for each replacement. The same number again gets the same bytes. */
  readonly number: number;
  readonly leaseEpoch: string;
  readonly inputs: readonly {
    readonly txid: string;
    readonly vout: number;
    readonly amount: string;
    /** The account key, 0 for its receiving or 1 for its change chain, and the index of the key that can spend it. */
    readonly xpub: string;
    readonly chain: 0 | 1;
    readonly index: number;
  }[];
  /**
   * In the order of the transaction; the change comes after them. `total` for a reimbursement only: what it takes of our outputs, which is its
   * amount and its share of the fee. `reimburses`, which the signer adds to what it keeps: the transaction whose payments go back.
   */
  readonly outputs: readonly {
    readonly payoutId: string;
    readonly script: string;
    readonly amount: string;
    readonly total?: string;
    readonly reimburses?: string;
  }[];
  readonly change: { readonly index: number; readonly amount: string } | null;
  /**
   * The raw transactions (hex) that made the inputs, in any order: for currencies whose signatures do not cover the amounts of inputs (P2PKH
   * before BIP143). The signer keeps none of them. Those that it was shown by themselves before may be absent.
   */
  readonly previous?: readonly string[];
  /**
   * Of a transaction on Ethereum's chain (EIP-1559): its one input is sender and nonce, its one output the payee.
   * `contract`: the token's; null for ether. `maxFee` and `tip` in wei for each unit of gas. `fee`: what its payout is charged at most, of a
   * sweep or top-up the most that its gas may cost. `purpose`: it pays no payout, but moves what is ours to an address of ours; its one output
   * is named by its batch.
   */
  readonly evm?: {
    readonly contract: string | null;
    readonly gas: number;
    readonly maxFee: string;
    readonly tip: string;
    readonly fee: string;
    readonly purpose?: 'sweep' | 'top_up';
    /**
     * Of a top-up: the currency of the address, and its index in the receiving chain of that account. `chain` 1: it is the address that payouts
     * in that currency leave from, index 0.
     */
    readonly payee?: { readonly currency: CurrencyCode; readonly index: number; readonly chain?: 1 };
  };
};

/** A transaction that the signer has signed. */
export type SignedTransaction = {
  /** Rises by one with each signature of this signer. */
  readonly sequence: number;
  readonly request: Omit<TransactionToSign, 'previous'>;
  readonly txid: string;
  readonly raw: string;
  readonly fee: string;
  readonly vbytes: number;
  readonly signedAtMs: number;
};

export type SignerReplies = {
  readonly ping: { readonly network: Network; readonly keys: 'present' | 'absent' };
  readonly xpubs: { readonly accounts: readonly SignerAccount[] };
  /** Public keys of APIs (Ed25519) in hex. */
  readonly intent_keys: { readonly keys: readonly string[] };
  /** Whether the signer's own account of this currency has exactly this key. */
  readonly confirm_xpub: { readonly confirmed: boolean; readonly path: string | null };
  readonly sign: SignedTransaction;
  readonly show: { readonly txid: string };
  /** What was signed after a sequence number, oldest first; `more` when there is more. */
  readonly signed: { readonly transactions: readonly SignedTransaction[]; readonly more: boolean };
  readonly authorize_payment: AuthorizedPayment;
  readonly send_payment: SendAnswer;
  readonly authorized_payments: { readonly payments: readonly AuthorizedPayment[]; readonly more: boolean };
  readonly paying_node: PayingNode;
  readonly known_channels: { readonly points: readonly string[] };
  readonly track_payment: TrackedPayment;
  readonly node_payments: { readonly payments: readonly PaymentFacts[] };
};

/**
 * `refused`: a rule of the signer forbids the signature, whoever asks; the message names the rule. `no_payer`: it has no Lightning node to pay
 * with. `node`: that node cannot be asked, and has said nothing.
 */
export type SignerError = 'bad_request' | 'no_keys' | 'refused' | 'no_payer' | 'node' | 'failed';

/** Every request has its own number on its connection; answers carry it and may come in any order. */
export type SignerRequestFrame = SignerRequest & { readonly id: number };
export type SignerReplyFrame =
  | { readonly id: number; readonly ok: true; readonly reply: SignerReplies[keyof SignerReplies] }
  | { readonly id: number | null; readonly ok: false; readonly error: SignerError; readonly message: string };

/** A transaction of 200 inputs and as many payees, with the transactions that made the inputs as far as they are of the size that nodes relay. */
export const MAX_FRAME_BYTES = 8_388_608;
/** How many characters of transactions that made the inputs a request has at most: room is left for the rest of it. */
export const MOST_PREVIOUS = MAX_FRAME_BYTES - 1_048_576;
const PREFIX_BYTES = 4;
/** What a reader has room for at first. */
const USUAL_BYTES = 65_536;

/** A message as one frame. */
export function encodeFrame(message: SignerRequestFrame | SignerReplyFrame): Uint8Array {
  const body = new TextEncoder().encode(JSON.stringify(message));
  if (body.length > MAX_FRAME_BYTES) throw new Error(`a frame of the signer has at most ${MAX_FRAME_BYTES} bytes`);
  const frame = new Uint8Array(PREFIX_BYTES + body.length);
  new DataView(frame.buffer).setUint32(0, body.length);
  frame.set(body, PREFIX_BYTES);
  return frame;
}

export type FrameReader = {
  /** Takes the next bytes of the stream; returns the messages that are now complete. Throws when the other side does not follow the protocol. */
  push(bytes: Uint8Array): readonly unknown[];
};

/** Reads frames: four bytes of length (big-endian, at most {@link MAX_FRAME_BYTES}), then JSON in UTF-8. It keeps what is incomplete. */
export function createFrameReader(): FrameReader {
  let held = new Uint8Array(USUAL_BYTES);
  let size = 0;
  const decoder = new TextDecoder('utf-8', { fatal: true });

  /** Room is doubled: a frame that comes a few bytes at a time is not copied with each of them. */
  function keep(bytes: Uint8Array): void {
    if (size + bytes.length > held.length) {
      const larger = new Uint8Array(Math.max(2 * held.length, size + bytes.length));
      larger.set(held.subarray(0, size));
      held = larger;
    }
    held.set(bytes, size);
    size += bytes.length;
  }

  function drop(count: number): void {
    const rest = held.subarray(count, size);
    // a large frame is over
    if (rest.length <= USUAL_BYTES && held.length > USUAL_BYTES) {
      held = new Uint8Array(USUAL_BYTES);
      held.set(rest);
    } else held.copyWithin(0, count, size);
    size -= count;
  }

  return {
    push(bytes) {
      keep(bytes);
      const view = new DataView(held.buffer);
      const messages: unknown[] = [];
      let start = 0;
      while (size - start >= PREFIX_BYTES) {
        const length = view.getUint32(start);
        if (length > MAX_FRAME_BYTES) throw new Error('the frame is too long');
        if (size - start < PREFIX_BYTES + length) break;
        messages.push(JSON.parse(decoder.decode(held.subarray(start + PREFIX_BYTES, start + PREFIX_BYTES + length))));
        start += PREFIX_BYTES + length;
      }
      if (start > 0) drop(start);
      return messages;
    },
  };
}
