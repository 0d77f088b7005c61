// Output scripts and their addresses (BIP173, BIP350, base58check, CashAddr), by the parameters of the currency's row.
import { bech32, bech32m, createBase58check } from '@scure/base';
import type { AddressParameters } from '../../core/currencies/utxo.ts';
import { sha256 } from './bytes.ts';
import { cashAddress, readCashAddress } from './cashaddr.ts';

const base58check = createBase58check((bytes: Uint8Array) => sha256(bytes));
const script = (...parts: readonly (Uint8Array | readonly number[])[]): Buffer =>
  Buffer.concat(parts.map((part) => Buffer.from(part)));

/** P2PKH of a key's 20-byte hash. */
export const keyHashScript = (hash: Uint8Array): Buffer => script([0x76, 0xa9, 20], hash, [0x88, 0xac]);
/** P2SH of a script's 20-byte hash (BIP 16). */
export const scriptHashScript = (hash: Uint8Array): Buffer => script([0xa9, 20], hash, [0x87]);
/** A witness program (BIP 141): version 0 to 16, program of 2 to 40 bytes. */
export const witnessScript = (version: number, program: Uint8Array): Buffer =>
  script([version === 0 ? 0 : 0x50 + version, program.length], program);

export type ScriptKind =
  | 'pubkey'
  | 'pubkeyhash'
  | 'scripthash'
  | 'witness_v0_keyhash'
  | 'witness_v0_scripthash'
  | 'witness_v1_taproot'
  | 'nulldata'
  | 'nonstandard';

/** Bitcoin Core's name for the form of a script. */
export function kindOf(bytes: Buffer): ScriptKind {
  const { length } = bytes;
  const [first, second] = bytes;
  if (length === 22 && first === 0 && second === 20) return 'witness_v0_keyhash';
  if (length === 34 && first === 0 && second === 32) return 'witness_v0_scripthash';
  if (length === 34 && first === 0x51 && second === 32) return 'witness_v1_taproot';
  if (length === 25 && first === 0x76 && second === 0xa9 && bytes[2] === 20 && bytes[23] === 0x88 && bytes[24] === 0xac)
    return 'pubkeyhash';
  if (length === 23 && first === 0xa9 && second === 20 && bytes[22] === 0x87) return 'scripthash';
  if ((length === 67 || length === 35) && first === length - 2 && bytes[length - 1] === 0xac) return 'pubkey';
  return first === 0x6a ? 'nulldata' : 'nonstandard';
}

/** The address of a script; null when it has none. */
export function addressOf(bytes: Buffer, parameters: AddressParameters): string | null {
  const kind = kindOf(bytes);
  if (parameters.cashaddr !== null) {
    if (kind === 'pubkeyhash') return cashAddress(parameters.cashaddr, kind, bytes.subarray(3, 23));
    return kind === 'scripthash' ? cashAddress(parameters.cashaddr, kind, bytes.subarray(2, 22)) : null;
  }
  if (kind === 'pubkeyhash') return base58check.encode(script([parameters.pubKeyHash], bytes.subarray(3, 23)));
  if (kind === 'scripthash') return base58check.encode(script([parameters.scriptHash], bytes.subarray(2, 22)));
  if (parameters.bech32 === null || !kind.startsWith('witness_')) return null;
  const version = kind === 'witness_v1_taproot' ? 1 : 0;
  const coder = version === 0 ? bech32 : bech32m;
  return coder.encode(parameters.bech32, [version, ...coder.toWords(bytes.subarray(2))]);
}

function fromBech32(address: string, prefix: string): Buffer | null {
  for (const [coder, versions] of [
    [bech32, [0, 0]],
    [bech32m, [1, 16]],
  ] as const) {
    const decoded = coder.decodeUnsafe(address, 90);
    if (decoded === undefined || decoded.prefix !== prefix) continue;
    const [version = -1, ...words] = decoded.words;
    const program = coder.fromWordsUnsafe(words);
    if (!program || version < versions[0] || version > versions[1]) continue;
    const fits = version === 0 ? program.length === 20 || program.length === 32 : program.length >= 2 && program.length <= 40;
    return fits ? witnessScript(version, program) : null;
  }
  return null;
}

/** The script of an address of this network; null when it is none. */
export function scriptOf(address: string, parameters: AddressParameters): Buffer | null {
  if (parameters.bech32 !== null && address.toLowerCase().startsWith(`${parameters.bech32}1`)) {
    return fromBech32(address, parameters.bech32);
  }
  const cash = parameters.cashaddr === null ? null : readCashAddress(parameters.cashaddr, address);
  if (cash !== null) return cash.kind === 'pubkeyhash' ? keyHashScript(cash.hash) : scriptHashScript(cash.hash);
  let bytes: Uint8Array;
  try {
    bytes = base58check.decode(address);
  } catch {
    return null;
  }
  if (bytes.length !== 21) return null;
  if (bytes[0] === parameters.pubKeyHash) return keyHashScript(bytes.subarray(1));
  return bytes[0] === parameters.scriptHash ? scriptHashScript(bytes.subarray(1)) : null;
}

const OPCODES: Readonly<Record<number, string>> = {
  79: '-1',
  106: 'OP_RETURN',
  118: 'OP_DUP',
  135: 'OP_EQUAL',
  136: 'OP_EQUALVERIFY',
  168: 'OP_SHA256',
  169: 'OP_HASH160',
  172: 'OP_CHECKSIG',
  174: 'OP_CHECKMULTISIG',
};

function pushLength(bytes: Buffer, at: number): { readonly head: number; readonly length: number } | null {
  const opcode = bytes[at] as number;
  if (opcode < 0x4c) return { head: 1, length: opcode };
  if (opcode === 0x4c && at + 1 < bytes.length) return { head: 2, length: bytes[at + 1] as number };
  return opcode === 0x4d && at + 2 < bytes.length ? { head: 3, length: bytes.readUInt16LE(at + 1) } : null;
}

/** A script in words, as Bitcoin Core writes `asm` (data in hex; numbers of up to four bytes in decimal). */
export function asmOf(bytes: Buffer): string {
  const words: string[] = [];
  for (let at = 0; at < bytes.length; ) {
    const opcode = bytes[at] as number;
    const push = opcode === 0 ? null : pushLength(bytes, at);
    if (push !== null) {
      const data = bytes.subarray(at + push.head, at + push.head + push.length);
      if (data.length < push.length) return [...words, '[error]'].join(' ');
      words.push(data.length <= 4 ? String(scriptNumber(data)) : data.toString('hex'));
      at += push.head + push.length;
      continue;
    }
    words.push(opcode === 0 ? '0' : opcode >= 0x51 && opcode <= 0x60 ? String(opcode - 0x50) : (OPCODES[opcode] ?? 'OP_UNKNOWN'));
    at += 1;
  }
  return words.join(' ');
}

function scriptNumber(data: Buffer): number {
  let value = 0;
  data.forEach((byte, index) => {
    value += (index === data.length - 1 ? byte & 0x7f : byte) * 2 ** (8 * index);
  });
  return data.length > 0 && (data[data.length - 1] as number) & 0x80 ? -value : value;
}
