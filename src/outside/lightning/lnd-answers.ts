// Reads the parts of LND's answers: numbers of 64 bits are text, and what is missing or of another form is the node's fault.
import { NodeTrouble } from '../utxo/node/trouble.ts';
import { type Answer, LndRefusal } from './lnd-rest.ts';

/** The trouble of an answer that LND should not have given. */
export const bad = (what: string): NodeTrouble => new NodeTrouble('bad_answer', `LND: ${what}`);

/** A whole number of 64 bits, which LND's REST writes as a string; a field that is not there is 0, as in protobuf. */
export function whole(answer: Answer, name: string): bigint {
  const value = answer[name] ?? '0';
  if ((typeof value === 'string' || typeof value === 'number') && /^-?\d{1,19}$/.test(String(value))) return BigInt(value);
  throw bad(`${name} is ${JSON.stringify(value)?.slice(0, 50)}, no whole number`);
}
/** A text that must be there. */
export function text(answer: Answer, name: string): string {
  const value = answer[name];
  if (typeof value === 'string') return value;
  throw bad(`there is no ${name} in an answer`);
}
/** A list of objects; one that is not there is empty, as in protobuf. */
export function objects(answer: Answer, name: string): readonly Answer[] {
  const list = answer[name] ?? [];
  if (Array.isArray(list) && list.every((one) => typeof one === 'object' && one !== null)) return list as Answer[];
  throw bad(`${name} is no list`);
}

/** LND says that it has none of this. */
export const isNone = (error: unknown): boolean =>
  error instanceof LndRefusal && (error.code === 5 || error.message.includes('unable to locate invoice'));
