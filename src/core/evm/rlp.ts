// RLP, the serialisation of Ethereum's transactions (Ethereum yellow paper, appendix B).

export type RlpItem = number | bigint | string | readonly RlpItem[];

/** RLP of numbers (without leading zeros), of data (0x and pairs of digits) and of lists of these. */
export function rlp(item: RlpItem): Buffer {
  if (typeof item === 'object') {
    const body = Buffer.concat(item.map(rlp));
    return Buffer.concat([lengthPrefix(body.length, 0xc0), body]);
  }
  const bytes = typeof item === 'string' ? Buffer.from(item.slice(2), 'hex') : numberBytes(BigInt(item));
  if (bytes.length === 1 && (bytes[0] as number) < 0x80) return bytes;
  return Buffer.concat([lengthPrefix(bytes.length, 0x80), bytes]);
}

function lengthPrefix(length: number, offset: number): Buffer {
  if (length < 56) return Buffer.of(offset + length);
  const size = numberBytes(BigInt(length));
  return Buffer.concat([Buffer.of(offset + 55 + size.length), size]);
}

/** Big-endian without leading zeros; none for zero. */
function numberBytes(number: bigint): Buffer {
  if (number === 0n) return Buffer.alloc(0);
  const digits = number.toString(16);
  return Buffer.from(digits.length % 2 === 0 ? digits : `0${digits}`, 'hex');
}
