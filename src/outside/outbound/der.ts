// Reads DER (X.690), as far as certificates need it. OpenSSL takes lengths that are not told, too: those are none here.

/** Its body, and what comes after it. */
export type Element = { readonly tag: number; readonly body: Buffer; readonly rest: Buffer };

/** The first element of what is there. @throws RangeError where there is none */
export function element(from: Buffer): Element {
  const tag = from.readUInt8(0);
  const first = from.readUInt8(1);
  const size = first < 0x80 ? 0 : first - 0x80;
  const length = first < 0x80 ? first : from.readUIntBE(2, size);
  const body = part(from, 2 + size, length);
  return { tag, body, rest: from.subarray(2 + size + length) };
}

/** The first element. @throws RangeError where it is of another kind */
export function expected(tag: number, from: Buffer): Element {
  const one = element(from);
  if (one.tag !== tag) throw new RangeError('something else is there');
  return one;
}

/** One after the other, to the end. @throws RangeError where something else is there */
export function elements(from: Buffer): readonly Element[] {
  const found: Element[] = [];
  for (let rest = from; rest.length > 0; ) {
    const one = element(rest);
    found.push(one);
    rest = one.rest;
  }
  return found;
}

/** So many bytes from there on. @throws RangeError where there are fewer */
export function part(from: Buffer, at: number, length: number): Buffer {
  if (at + length > from.length) throw new RangeError('it ends too early');
  return from.subarray(at, at + length);
}
