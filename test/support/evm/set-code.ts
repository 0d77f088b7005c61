// Transactions that set the code of accounts (EIP-7702): each carries authorizations, which whoever has an account's key signs, and anybody may send.
import { secp256k1 } from '@noble/curves/secp256k1.js';
import { keccak_256 } from '@noble/hashes/sha3.js';
import { type RlpItem, rlp } from '../../../src/core/evm/rlp.ts';
import { CHAIN_ID, keccak } from '../../../src/sandbox/evm/transaction.ts';

const SET_CODE = 4;
const AUTHORIZATION = 5;
const GWEI = 10n ** 9n;

type Authorized = { readonly code: string; readonly nonce: number; readonly chainId?: number };
export type Authorization = readonly RlpItem[];

function signed(items: readonly RlpItem[], type: number, secret: Uint8Array): readonly [number, bigint, bigint] {
  const digest = keccak_256(Buffer.concat([Buffer.of(type), rlp(items)]));
  const made = secp256k1.sign(digest, secret, { prehash: false, format: 'recovered' });
  const word = (at: number): bigint => BigInt(`0x${Buffer.from(made.subarray(at, at + 32)).toString('hex')}`);
  return [made[0] as number, word(1), word(33)];
}

/** Lets an account have the code of a contract, in the place of its transaction with this nonce. */
export function authorization(secret: Uint8Array, { code, nonce, chainId = CHAIN_ID }: Authorized): Authorization {
  return [chainId, code, nonce, ...signed([chainId, code, nonce], AUTHORIZATION, secret)];
}

type Carrying = {
  readonly nonce?: number;
  readonly to: string;
  readonly value?: bigint;
  readonly input?: string;
  readonly list: readonly Authorization[];
};
/** A transaction with authorizations. @returns its bytes and its hash */
export function carrying(secret: Uint8Array, { nonce = 0, to, value = 0n, input = '0x', list }: Carrying) {
  const fields: readonly RlpItem[] = [CHAIN_ID, nonce, GWEI, 100n * GWEI, 500_000, to, value, input, [], list];
  const raw = Buffer.concat([Buffer.of(SET_CODE), rlp([...fields, ...signed(fields, SET_CODE, secret)])]);
  return { raw: `0x${raw.toString('hex')}`, txid: keccak(raw) };
}
