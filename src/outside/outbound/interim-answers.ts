// Before its answer a server may send interim ones that nobody asked for, which a client passes over (RFC 9110 §15.2). undici does so with all
// but `100 Continue`, where it ends the connection: what such a server takes would never count as taken. So that one is read as a `102`. What
// undici cannot parse has a status all the same, which says whether an event was taken: it is read here too.

const [CR, LF] = [13, 10];
const HEAD_ENDS = [CR, LF, CR, LF];
const VERSION = Buffer.from('HTTP/1.');
/** Where a status begins in its line. */
const STATUS_AT = 'HTTP/1.1 '.length;
const STATUS_DIGITS = 3;
const [ZERO, NINE] = [48, 57];
const CONTINUE = 100;
const LAST_DIGIT_READ_AS = '2'.charCodeAt(0);

export type AnswerStart = {
  /** Takes the bytes of one answer part by part, and changes the status of every interim `100` before it to `102`. */
  pass(part: Uint8Array): void;
  /** The status of the answer, once it was read; null where the bytes are no answer of HTTP/1. */
  status(): number | null;
};

/** For the bytes that follow one request. */
export function readStart(): AnswerStart {
  let status: number | null = null;
  let isOver = false;
  /** How much was read of a line up to its status, and what that is so far. */
  let [read, number] = [0, 0];
  /** How many of the bytes that end a head have come in a row. */
  let ending = 0;

  function passByte(part: Uint8Array, at: number): void {
    const byte = part[at] as number;
    if (read === STATUS_AT + STATUS_DIGITS) {
      ending = byte === HEAD_ENDS[ending] ? ending + 1 : 0;
      if (ending === HEAD_ENDS.length) [read, number, ending] = [0, 0, 0];
      return;
    }
    // empty lines may stand before a status line
    if (read === 0 && (byte === CR || byte === LF)) return;
    read++;
    if (read <= STATUS_AT) {
      isOver = read <= VERSION.length && byte !== VERSION[read - 1];
      return;
    }
    if (byte < ZERO || byte > NINE) {
      isOver = true;
      return;
    }
    number = number * 10 + byte - ZERO;
    if (read < STATUS_AT + STATUS_DIGITS) return;
    if (number === CONTINUE) part[at] = LAST_DIGIT_READ_AS;
    if (Math.floor(number / 100) === 1) return;
    status = number;
    isOver = true;
  }

  return {
    pass(part) {
      for (let at = 0; at < part.length && !isOver; at++) passByte(part, at);
    },
    status: () => status,
  };
}
