// What the API process signs when it takes a payout, and what the signer verifies before it signs a transaction: whoever can write to the
// database without this key cannot make money leave.

/** A payout as it was requested. Amounts in minor units of `currency`. */
export type PayoutIntent = {
  /** The network whose money it is: an intent of a test network is worth nothing elsewhere. */
  readonly network: string;
  readonly payoutId: string;
  readonly merchantId: bigint;
  readonly method: string;
  readonly currency: string;
  readonly amount: bigint;
  readonly feeMax: bigint;
  /** The output script (hex) for a chain of Bitcoin's family, the invoice over Lightning, otherwise the destination as it was sent. */
  readonly destination: string;
  readonly createdAtMs: number;
  /** The transaction whose payments go back; null for a payout. */
  readonly reimburses: string | null;
  /** The transaction here that an entry pays; absent or null for one that leaves. */
  readonly internalTo?: string | null;
  /** It was above its merchant's limit: it needs `approval` to leave. Absent: it was not. */
  readonly needsApproval?: boolean;
  /** The operator's, which the intent does not cover: it comes later. */
  readonly approval?: Approval | null;
};

/** An operator's word that a payout may leave: a signature of {@link approvalBytes} by the key of an API. */
export type Approval = { readonly keyId: string; readonly signature: Uint8Array };

/** What a row says of a payout, with the key that is said to have signed it, and the signature. */
export type SignedPayout = Omit<PayoutIntent, 'network' | 'payoutId' | 'internalTo' | 'needsApproval' | 'approval'> & {
  readonly id: string;
  readonly internalTo: string | null;
  readonly needsApproval: boolean;
  readonly approval: Approval | null;
  /** As it is stored: a bank account may be sealed. */
  readonly destination: string;
  /** The output script (hex); null for a method without one. */
  readonly script: string | null;
  /** BOLT11; null for what is not paid over Lightning. */
  readonly paymentRequest: string | null;
  readonly intentKey: string;
  readonly intent: Uint8Array;
};

/** Whether an API that is trusted has signed this, and, where it needs that, an operator has approved it. */
export type IntentTrust = (intent: PayoutIntent, keyId: string, signature: Uint8Array) => boolean;
/** Asks whose intents count now; null while nobody says it. */
export type AskTrust = () => Promise<IntentTrust | null>;

/**
 * What must have been signed for a row.
 * @param at.destination a bank account in plain; a row with an output script or an invoice is signed with that
 */
export function intentOf(payout: SignedPayout, at: { readonly network: string; readonly destination: string }): PayoutIntent {
  const { id, script, paymentRequest, intentKey: _key, intent: _signature, ...asked } = payout;
  return { ...asked, network: at.network, payoutId: id, destination: script ?? paymentRequest ?? at.destination };
}

/** The key of an API process, by which it signs the intents that it takes. */
export type IntentKey = {
  /** Signs (Ed25519). `keyId` is the public key, 32 bytes in hex: the signer acts on keys that it was told of only. */
  sign(bytes: Uint8Array): { readonly keyId: string; readonly signature: Uint8Array };
};

/** The bytes that are signed (Ed25519, RFC 8032): one spelling for one intent. */
export function intentBytes(intent: PayoutIntent): Uint8Array {
  const fields = [
    'bursar payout 1',
    intent.network,
    intent.payoutId,
    intent.merchantId.toString(),
    intent.method,
    intent.currency,
    intent.amount.toString(),
    intent.feeMax.toString(),
    intent.destination,
    intent.createdAtMs.toString(),
    ...(intent.reimburses === null ? [] : [intent.reimburses]),
    ...(intent.internalTo == null ? [] : ['internal', intent.internalTo]),
    ...(intent.needsApproval === true ? ['needs approval'] : []),
  ];
  return new TextEncoder().encode(JSON.stringify(fields));
}

/**
 * What may have been signed for an intent, the likeliest first: that a payout needs an approval was not always signed with it, and a row that says
 * so on its own only waits.
 */
export function signedForms(intent: PayoutIntent): readonly Uint8Array[] {
  return intent.needsApproval === true
    ? [intentBytes(intent), intentBytes({ ...intent, needsApproval: false })]
    : [intentBytes(intent)];
}

/** What an approval signs (Ed25519): the network and the payout, whose amount and destination its intent covers. */
export function approvalBytes(network: string, payoutId: string): Uint8Array {
  return new TextEncoder().encode(JSON.stringify(['bursar approval 1', network, payoutId]));
}
