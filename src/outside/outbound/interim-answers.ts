// Before its answer a server may send interim ones that nobody asked for, which a client passes over (RFC 9110 §15.2). undici does so with all
// but `100 Continue`, where it ends the connection: what such a server takes would never count as taken. So that one is read as a `102`.

const [CR, LF] = [13, 10];
const HEAD_ENDS = [CR, LF, CR, LF];
/** Where a status begins in its line. */
const STATUS_AT = 'HTTP/1.1 '.length;
/** Its first digit is that of every interim answer. */
const CONTINUE = Buffer.from('100');
const LAST_DIGIT_READ_AS = '2'.charCodeAt(0);

/**
 * Changes, in the bytes of one answer that come part by part, the status of every interim `100` before it to `102`; says how many bytes of a part
 * come before the answer.
 */
export function passingContinue(): (part: Uint8Array) => number {
  let isFinal = false;
  /** How much was read of a line up to its status, and whether that is 100 so far. */
  let [read, isContinue] = [0, true];
  /** How many of the bytes that end a head have come in a row. */
  let ending = 0;
  return (part) => {
    let at = 0;
    for (; at < part.length && !isFinal; at++) {
      const byte = part[at] as number;
      const digit = read - STATUS_AT;
      if (digit === CONTINUE.length) {
        ending = byte === HEAD_ENDS[ending] ? ending + 1 : 0;
        if (ending === HEAD_ENDS.length) [read, isContinue, ending] = [0, true, 0];
        continue;
      }
      // empty lines may stand before a status line
      if (read === 0 && (byte === CR || byte === LF)) continue;
      read++;
      if (digit < 0) continue;
      if (digit === 0 && byte !== CONTINUE[0]) isFinal = true;
      isContinue &&= byte === CONTINUE[digit];
      if (digit === CONTINUE.length - 1 && isContinue) part[at] = LAST_DIGIT_READ_AS;
    }
    return at;
  };
}

/** Counts the lines of a head, up to the empty one at its end, in bytes that come part by part from within its first line on. */
export function headLines(): (part: Uint8Array) => number {
  let [isOver, isEmpty] = [false, false];
  return (part) => {
    let lines = 0;
    for (let at = 0; at < part.length && !isOver; at++) {
      if (part[at] === CR) continue;
      if (part[at] === LF) {
        lines++;
        isOver = isEmpty;
      }
      isEmpty = part[at] === LF;
    }
    return lines;
  };
}
