// Reads the fields of a control's body and refuses wrong ones, naming the field and what is accepted.
import { type CurrencyCode, type PaymentMethod, paymentMethod } from '../core/currency.ts';
import { parseAmount } from '../core/money.ts';
import type { Refusal, RefusalCode } from '../core/refusal.ts';
import type { ControlledNode } from './controlled-node.ts';

/** A control's refusal, with the status and code of the answer. */
export class ControlRefusal extends Error {
  readonly httpStatus: 400 | 404 | 409;
  readonly code: string;
  readonly param: string | null;
  constructor(
    httpStatus: 400 | 404 | 409,
    code: RefusalCode | 'not_possible' | 'faucet_empty',
    message: string,
    param: string | null = null,
  ) {
    super(message);
    this.name = 'ControlRefusal';
    this.httpStatus = httpStatus;
    this.code = code;
    this.param = param;
  }
}

export type Body = Readonly<Record<string, unknown>>;

/** A refusal of the service whose status no control has becomes 409. */
export function fromRefusal(refusal: Refusal): ControlRefusal {
  const { httpStatus } = refusal;
  const status = httpStatus === 400 || httpStatus === 404 ? httpStatus : 409;
  return new ControlRefusal(status, refusal.code, refusal.message, refusal.param);
}

/**
 * The refusal 400 `invalid_request` of a field.
 * @param message follows the field's name: "must be …"
 */
export const bad = (param: string, message: string): ControlRefusal =>
  new ControlRefusal(400, 'invalid_request', `${param} ${message}`, param);
/** The refusal 409 of what the simulated world cannot do in its present state. */
export const impossible = (message: string): ControlRefusal => new ControlRefusal(409, 'not_possible', message);

/** An optional field; null counts as absent. */
const given = (body: Body, name: string): unknown => (Object.hasOwn(body, name) ? (body[name] ?? undefined) : undefined);

/** A text of 1 to 1,000 characters; null when it was not sent. */
export function optionalText(body: Body, name: string): string | null {
  const value = given(body, name);
  if (value === undefined) return null;
  if (typeof value !== 'string' || value === '' || value.length > 1000) throw bad(name, 'must be a text of 1 to 1000 characters');
  return value;
}

/** A text of 1 to 1,000 characters; without it 400 `missing_field`. */
export function requiredText(body: Body, name: string): string {
  const value = optionalText(body, name);
  if (value === null) throw new ControlRefusal(400, 'missing_field', `${name} is required`, name);
  return value;
}

/** A whole JSON number between two limits, both included; null when it was not sent. */
export function optionalWhole(body: Body, name: string, least: number, most: number): number | null {
  const value = given(body, name);
  if (value === undefined) return null;
  if (typeof value !== 'number' || !Number.isInteger(value) || value < least || value > most) {
    throw bad(name, `must be a whole number from ${least} to ${most}`);
  }
  return value;
}

/** A whole JSON number between two limits, both included; without it 400 `missing_field`. */
export function requiredWhole(body: Body, name: string, least: number, most: number): number {
  const value = optionalWhole(body, name, least, most);
  if (value === null)
    throw new ControlRefusal(400, 'missing_field', `${name} is required: a whole number from ${least} to ${most}`, name);
  return value;
}

/** True or false; null when it was not sent. */
export function optionalFlag(body: Body, name: string): boolean | null {
  const value = given(body, name);
  if (value === undefined) return null;
  if (typeof value !== 'boolean') throw bad(name, 'must be true or false');
  return value;
}

/** One of several fixed values; undefined when the field is absent, null when it is null. */
export function oneOf<T extends string>(body: Body, name: string, words: readonly T[]): T | null | undefined {
  if (!Object.hasOwn(body, name)) return undefined;
  const value = body[name];
  if (value === null) return null;
  const word = words.find((each) => each === value);
  if (word === undefined) throw bad(name, `must be one of ${words.join(', ')}`);
  return word;
}

/** A decimal string above zero, in minor units of a currency with `decimals`; null when absent. */
export function optionalAmount(body: Body, name: string, decimals: number): bigint | null {
  const value = given(body, name);
  if (value === undefined) return null;
  const accepted = `must be a decimal string above zero with at most ${decimals} decimals, such as "0.00100000"`;
  const parsed = typeof value === 'string' ? parseAmount(value, decimals) : { problem: 'malformed' as const };
  if ('problem' in parsed || parsed.minor === 0n) throw new ControlRefusal(400, 'invalid_amount', `${name} ${accepted}`, name);
  return parsed.minor;
}

/** Codes that a control accepts although they are no payment method. */
const PLACES = ['ACH', 'USD'];

/** What a currency code means; 400 for an unknown one. */
function knownCode(body: Body, name: string): string {
  const text = requiredText(body, name);
  const code = paymentMethod(text) ?? PLACES.find((place) => place === text.toUpperCase());
  if (code === undefined) {
    throw new ControlRefusal(400, 'unsupported_currency', `${name} must be a currency code such as BTC or LTC`, name);
  }
  return code;
}

export type Nodes = ReadonlyMap<CurrencyCode, ControlledNode>;

/** The simulated node of a currency code; 409 for a known code without a chain: Lightning, the bank. */
export function nodeOf(nodes: Nodes, code: string): ControlledNode {
  const node = nodes.get(code as CurrencyCode);
  if (node !== undefined) return node;
  const there = [...nodes.keys()].join(', ');
  throw new ControlRefusal(409, 'currency_unavailable', `${code} has no chain in the sandbox; there are ${there}`, 'currency');
}

/** The node of the body's required `currency`. */
export const requiredNode = (nodes: Nodes, body: Body): ControlledNode => nodeOf(nodes, knownCode(body, 'currency'));

/** The node of the body's `currency`, or of `usual` when it names none. */
export const nodeOr = (nodes: Nodes, body: Body, usual: PaymentMethod): ControlledNode =>
  given(body, 'currency') === undefined ? nodeOf(nodes, usual) : requiredNode(nodes, body);
