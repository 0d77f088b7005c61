// Transactions of EIP-1559 as bytes: what is hashed and signed, and what is sent. Amounts in wei, addresses 0x and 40 digits.
import { rlp } from './rlp.ts';

export type EvmCall = {
  readonly chainId: number;
  readonly nonce: number;
  /** maxPriorityFeePerGas and maxFeePerGas. */
  readonly tip: bigint;
  readonly maxFee: bigint;
  readonly gas: number;
  readonly to: string;
  readonly value: bigint;
  /** Call data, 0x and pairs of digits. */
  readonly input: string;
};
export type EvmSignature = { readonly yParity: number; readonly r: bigint; readonly s: bigint };

/** EIP-2718's type of EIP-1559. */
export const DYNAMIC_FEE = 2;

const fieldsOf = ({ chainId, nonce, tip, maxFee, gas, to, value, input }: EvmCall) =>
  [chainId, nonce, tip, maxFee, gas, to, value, input, []] as const;
const typed = (fields: Parameters<typeof rlp>[0]): Buffer => Buffer.concat([Buffer.of(DYNAMIC_FEE), rlp(fields)]);

/** The bytes whose Keccak-256 is signed. */
export const unsignedBytes = (call: EvmCall): Buffer => typed(fieldsOf(call));
/** The bytes that are sent; their Keccak-256 is the transaction's hash. */
export const signedBytes = (call: EvmCall, { yParity, r, s }: EvmSignature): Buffer => typed([...fieldsOf(call), yParity, r, s]);

/** The selector of transfer(address,uint256) of ERC-20. */
const TRANSFER = 'a9059cbb';
const word = (digits: string): string => digits.padStart(64, '0');

/** The call data of an ERC-20 transfer. @param to 0x and 40 digits */
export function transferCall(to: string, units: bigint): string {
  return `0x${TRANSFER}${word(to.slice(2).toLowerCase())}${word(units.toString(16))}`;
}
