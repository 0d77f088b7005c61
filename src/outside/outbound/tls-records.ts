// Where the records of TLS begin in what a server sends (RFC 8446 §5.1, RFC 5246 §6.2): their heads are never encrypted. What a record is for may be,
// and some are for TLS itself, of which nothing is told.

export const RECORD_HEAD_BYTES = 5;
/** Records of handshake messages, where that is not encrypted: before TLS 1.3, and until its first answer. */
export const HANDSHAKE = 22;
/** Of these many may be in a record. */
const SMALLEST_MESSAGE_BYTES = 4;

/**
 * Finds the records in the bytes of one connection that come part by part, from the head of a record on.
 * @returns for a part, how far into it the head of each record ends that ends there; once for each message that may be in it
 */
export function recordsOf(): (part: Uint8Array) => readonly number[] {
  const head: number[] = [];
  let left = 0;
  return (part) => {
    const found: number[] = [];
    for (let at = 0; at < part.length; ) {
      if (left > 0) {
        const passed = Math.min(left, part.length - at);
        at += passed;
        left -= passed;
        continue;
      }
      head.push(part[at++] as number);
      if (head.length < RECORD_HEAD_BYTES) continue;
      const [type, , , high, low] = head.splice(0) as [number, number, number, number, number];
      left = high * 256 + low;
      const messages = type === HANDSHAKE ? Math.ceil(left / SMALLEST_MESSAGE_BYTES) : 1;
      for (let n = 0; n < messages; n++) found.push(at);
    }
    return found;
  };
}
