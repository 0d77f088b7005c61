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
  /** The output script (hex) for a chain of Bitcoin's family, otherwise the destination as it was sent. */
  readonly destination: string;
  readonly createdAtMs: number;
  /** The transaction whose payments go back; null for a payout. */
  readonly reimburses: string | null;
};

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
  ];
  return new TextEncoder().encode(JSON.stringify(fields));
}
