// A refusal of the simulated JSON-RPC with bitcoind's number (src/rpc/protocol.h), and readers of parameters that refuse as bitcoind does.

export const RPC_PARSE = -32700;
export const RPC_INVALID_REQUEST = -32600;
export const RPC_METHOD_NOT_FOUND = -32601;
export const RPC_MISC = -1;
export const RPC_TYPE = -3;
export const RPC_NOT_FOUND = -5;
export const RPC_INVALID_PARAMETER = -8;
export const RPC_DESERIALIZATION = -22;
export const RPC_VERIFY = -25;
export const RPC_REJECTED = -26;
export const RPC_ALREADY_IN_CHAIN = -27;

/** An error answer of JSON-RPC, with Bitcoin Core's codes. */
export class RpcError extends Error {
  readonly code: number;
  constructor(code: number, message: string) {
    super(message);
    this.name = 'RpcError';
    this.code = code;
  }
}

export type Params = readonly unknown[];

const typeName = (value: unknown): string =>
  value === null ? 'null' : Array.isArray(value) ? 'array' : typeof value === 'boolean' ? 'bool' : typeof value;

function typed(params: Params, index: number, expected: string): unknown {
  const value = params[index];
  if (value === undefined || value === null) throw new RpcError(RPC_MISC, `parameter ${index + 1} (${expected}) is missing`);
  if (typeName(value) === expected) return value;
  throw new RpcError(RPC_TYPE, `JSON value of type ${typeName(value)} is not of expected type ${expected}`);
}

/** A parameter that is a text; any other type is the node's own type error. */
export const text = (params: Params, index: number): string => typed(params, index, 'string') as string;
/** A parameter that is an array; any other type is the node's own type error. */
export const list = (params: Params, index: number): readonly unknown[] => typed(params, index, 'array') as unknown[];

/**
 * A parameter that is a whole number.
 * @param fallback what counts when it was not sent; without it that is a type error
 */
export function integer(params: Params, index: number, fallback?: number): number {
  if (fallback !== undefined && (params[index] === undefined || params[index] === null)) return fallback;
  const value = typed(params, index, 'number') as number;
  if (!Number.isInteger(value)) throw new RpcError(RPC_MISC, 'JSON integer out of range');
  return value;
}

/** A verbosity that may be given as a number or as a boolean. */
export function verbosity(params: Params, index: number, fallback: number): number {
  const value = params[index];
  return typeof value === 'boolean' ? Number(value) : integer(params, index, fallback);
}

/** A parameter that is true or false; `fallback` when it was not sent. */
export function flag(params: Params, index: number, fallback: boolean): boolean {
  const value = params[index];
  if (value === undefined || value === null) return fallback;
  return typed(params, index, 'bool') as boolean;
}

/** A rate in whole units of the currency, as a number or a decimal string, in digits; null when it is not given. */
export function rateDigits(params: Params, index: number): string | null {
  const value = params[index];
  if (value === undefined || value === null) return null;
  return typeof value === 'number' ? value.toFixed(8) : text(params, index);
}

/** A hash of 32 bytes in hex; anything else is refused with bitcoind's message. */
export function hash(params: Params, index: number, name: string): string {
  const value = text(params, index);
  if (value.length !== 64) {
    throw new RpcError(RPC_INVALID_PARAMETER, `${name} must be of length 64 (not ${value.length}, for '${value}')`);
  }
  if (!/^[0-9a-fA-F]{64}$/.test(value))
    throw new RpcError(RPC_INVALID_PARAMETER, `${name} must be hexadecimal string (not '${value}')`);
  return value.toLowerCase();
}
