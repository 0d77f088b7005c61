// Macaroons as LND makes them: the binary format of version 2 (libmacaroons), and the identifier, a protobuf message with the operations that
// it permits. Bytes in, bytes out; who signs and checks them is elsewhere.

export type MacaroonOperation = { readonly entity: string; readonly actions: readonly string[] };
export type Macaroon = {
  readonly location: string;
  readonly identifier: Uint8Array;
  /** First-party caveats, such as `time-before 2026-06-01T00:00:00Z`. */
  readonly caveats: readonly Uint8Array[];
  readonly signature: Uint8Array;
};

const VERSION = 2;
const FIELD = { end: 0, location: 1, identifier: 2, signature: 6 } as const;
/** LND puts its own version in front of the message. */
const ID_VERSION = 3;

type Cursor = { readonly bytes: Uint8Array; at: number };

class MacaroonMalformed extends Error {}

function varint(cursor: Cursor): number {
  let value = 0;
  for (let shift = 0; shift < 28; shift += 7) {
    const byte = cursor.bytes[cursor.at++];
    if (byte === undefined) throw new MacaroonMalformed('it is cut off');
    value |= (byte & 0x7f) << shift;
    if (byte < 0x80) return value;
  }
  throw new MacaroonMalformed('a length is too large');
}

function lengthAnd(cursor: Cursor): Uint8Array {
  const length = varint(cursor);
  const part = cursor.bytes.subarray(cursor.at, cursor.at + length);
  if (part.length < length) throw new MacaroonMalformed('it is cut off');
  cursor.at += length;
  return part;
}

/** The fields of one section, by their numbers; it ends with a zero byte. */
function section(cursor: Cursor): ReadonlyMap<number, Uint8Array> {
  const fields = new Map<number, Uint8Array>();
  for (;;) {
    const type = varint(cursor);
    if (type === FIELD.end) return fields;
    fields.set(type, lengthAnd(cursor));
  }
}

/** @returns null when these bytes are no macaroon of version 2 */
export function readMacaroon(bytes: Uint8Array): Macaroon | null {
  if (bytes[0] !== VERSION) return null;
  try {
    const cursor = { bytes, at: 1 };
    const head = section(cursor);
    const caveats: Uint8Array[] = [];
    for (;;) {
      const caveat = section(cursor);
      if (caveat.size === 0) break;
      caveats.push(caveat.get(FIELD.identifier) ?? new Uint8Array());
    }
    if (varint(cursor) !== FIELD.signature) return null;
    const signature = lengthAnd(cursor);
    const identifier = head.get(FIELD.identifier);
    if (identifier === undefined || signature.length !== 32 || cursor.at !== bytes.length) return null;
    return { location: new TextDecoder().decode(head.get(FIELD.location) ?? new Uint8Array()), identifier, caveats, signature };
  } catch (error) {
    if (error instanceof MacaroonMalformed) return null;
    throw error;
  }
}

/** The operations that an identifier of LND permits; null when it is of another form. */
export function permittedOperations(identifier: Uint8Array): readonly MacaroonOperation[] | null {
  if (identifier[0] !== ID_VERSION) return null;
  try {
    const text = (part: Uint8Array): string => new TextDecoder().decode(part);
    return messageFields(identifier.subarray(1))
      .filter(({ number }) => number === 3)
      .map(({ value }) => {
        const fields = messageFields(value);
        const entity = fields.find(({ number }) => number === 1)?.value ?? new Uint8Array();
        return { entity: text(entity), actions: fields.filter(({ number }) => number === 2).map((one) => text(one.value)) };
      });
  } catch (error) {
    if (error instanceof MacaroonMalformed) return null;
    throw error;
  }
}

/** A protobuf message whose fields all have a length (wire type 2). */
function messageFields(bytes: Uint8Array): readonly { readonly number: number; readonly value: Uint8Array }[] {
  const cursor = { bytes, at: 0 };
  const fields: { number: number; value: Uint8Array }[] = [];
  while (cursor.at < bytes.length) {
    const tag = varint(cursor);
    if ((tag & 7) !== 2) throw new MacaroonMalformed('a field of another type');
    fields.push({ number: tag >> 3, value: lengthAnd(cursor) });
  }
  return fields;
}

const encodedVarint = (value: number): readonly number[] =>
  value < 0x80 ? [value] : [(value & 0x7f) | 0x80, ...encodedVarint(value >> 7)];
const field = (type: number, value: Uint8Array): readonly number[] => [type, ...encodedVarint(value.length), ...value];

/** The identifier that {@link permittedOperations} reads. */
export function macaroonIdentifier(nonce: Uint8Array, operations: readonly MacaroonOperation[]): Uint8Array {
  const text = (value: string): Uint8Array => new TextEncoder().encode(value);
  const lengthDelimited = (number: number): number => number * 8 + 2;
  const operation = ({ entity, actions }: MacaroonOperation): Uint8Array =>
    Uint8Array.from([
      ...field(lengthDelimited(1), text(entity)),
      ...actions.flatMap((action) => field(lengthDelimited(2), text(action))),
    ]);
  return Uint8Array.from([
    ID_VERSION,
    ...field(lengthDelimited(1), nonce),
    ...field(lengthDelimited(2), text('0')),
    ...operations.flatMap((one) => field(lengthDelimited(3), operation(one))),
  ]);
}

/** The bytes of a macaroon in libmacaroons' binary format, version 2; its caveats are all of first parties. */
export function writeMacaroon({ location, identifier, caveats, signature }: Macaroon): Uint8Array {
  return Uint8Array.from([
    VERSION,
    ...field(FIELD.location, new TextEncoder().encode(location)),
    ...field(FIELD.identifier, identifier),
    FIELD.end,
    ...caveats.flatMap((caveat) => [...field(FIELD.identifier, caveat), FIELD.end]),
    FIELD.end,
    ...field(FIELD.signature, signature),
  ]);
}
