// What the contracts of the simulated chain do, without a virtual machine: the token, a look-alike of it, and a contract that sends on what
// it gets. Each call is executed on the accounts, with the events and call frames that a node would show of it.
import type { EvmTransaction } from './transaction.ts';

/** Balances of ether and tokens and nonces, by `kind:address`. */
export type Accounts = {
  get(key: string): bigint;
  set(key: string, value: bigint): void;
};

export type Log = { readonly address: string; readonly topics: readonly string[]; readonly data: string };
export type Frame = {
  readonly type: 'CALL';
  readonly from: string;
  readonly to: string;
  readonly value: bigint;
  readonly input: string;
  readonly error?: string;
  readonly calls?: readonly Frame[];
};
export type Executed = { readonly succeeded: boolean; readonly logs: readonly Log[]; readonly frame: Frame };
export type Share = { readonly to: string; readonly minor: bigint };

export const TOKEN = '0x5fbdb2315678afecb367f032d93f642f64180aa3';
export const FAKE_TOKEN = '0xe7f1725e7734ce288f8367e1bb143e90bb3f0512';
export const FORWARDER = '0x9fe46736679d2d9a65f0992f2272de9f3c7fa6e0';
export const CONTRACTS: ReadonlySet<string> = new Set([TOKEN, FAKE_TOKEN, FORWARDER]);

const TRANSFER_EVENT = '0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef';
/** transfer(address,uint256), decimals(), balanceOf(address) of ERC-20. */
export const TRANSFER = 'a9059cbb';
export const DECIMALS = '313ce567';
export const BALANCE_OF = '70a08231';
/** The forwarder's own: it sends ether on, tries to in a call that reverts, or passes on tokens of the caller. */
const SEND_ETHER = 'e0000001';
const SEND_ETHER_AND_REVERT = 'e0000002';
const SEND_TOKENS = 'e0000003';
const REVERTED = 'execution reverted';

/** 32 bytes of call data (Solidity's ABI), 64 hexadecimal digits without `0x`: a number, or an address as `0x…`. */
export const word = (value: bigint | string): string =>
  (typeof value === 'string' ? value.slice(2) : value.toString(16)).padStart(64, '0');
const addressAt = (input: string, nth: number): string => `0x${input.slice(10 + nth * 64 + 24, 10 + (nth + 1) * 64)}`;
const numberAt = (input: string, nth: number): bigint => BigInt(`0x${input.slice(10 + nth * 64, 10 + (nth + 1) * 64) || '0'}`);

/** The key of an address's ether, in wei. */
export const ether = (address: string): string => `ether:${address}`;
/** The key of an address's tokens of a contract, in the token's minor units. */
export const tokens = (contract: string, address: string): string => `${contract}:${address}`;

/** The call data of a transfer of a token. */
export const transferCall = (to: string, minor: bigint): string => `0x${TRANSFER}${word(to)}${word(minor)}`;
/** The call data that makes the forwarder send these shares. */
export function forwardCall(shares: readonly Share[], what: 'ether' | 'reverted' | 'tokens'): string {
  const selector = { ether: SEND_ETHER, reverted: SEND_ETHER_AND_REVERT, tokens: SEND_TOKENS }[what];
  return `0x${selector}${shares.map(({ to, minor }) => word(to) + word(minor)).join('')}`;
}

function sharesIn(input: string): readonly Share[] {
  const count = Math.floor((input.length - 10) / 128);
  return Array.from({ length: count }, (_, n) => ({ to: addressAt(input, 2 * n), minor: numberAt(input, 2 * n + 1) }));
}

export type Paid = Share & { readonly currency: 'ETH' | 'USDT' };

/** What a transaction pays to whom if it succeeds. */
export function paidBy({ to, value, input }: Pick<EvmTransaction, 'to' | 'value' | 'input'>): readonly Paid[] {
  const selector = input.slice(2, 10);
  if (to === TOKEN && selector === TRANSFER) return [{ currency: 'USDT', to: addressAt(input, 0), minor: numberAt(input, 1) }];
  if (to === FORWARDER && selector === SEND_ETHER) return sharesIn(input).map((share) => ({ currency: 'ETH', ...share }));
  if (to === FORWARDER && selector === SEND_TOKENS) return sharesIn(input).map((share) => ({ currency: 'USDT', ...share }));
  return CONTRACTS.has(to) || value === 0n ? [] : [{ currency: 'ETH', to, minor: value }];
}

function move(accounts: Accounts, from: string, to: string, amount: bigint): boolean {
  const has = accounts.get(from);
  if (has < amount) return false;
  accounts.set(from, has - amount);
  accounts.set(to, accounts.get(to) + amount);
  return true;
}

/** The event of a transfer of a token. */
export function transferLog(address: string, from: string, { to, minor }: Share): Log {
  return { address, topics: [TRANSFER_EVENT, `0x${word(from)}`, `0x${word(to)}`], data: `0x${word(minor)}` };
}

/** Executes a transaction's call; the fee is the caller's business. A call that fails leaves the accounts as they were. */
export function execute(accounts: Accounts, transaction: Pick<EvmTransaction, 'from' | 'to' | 'value' | 'input'>): Executed {
  const { from, to, value, input } = transaction;
  const root = { type: 'CALL', from, to, value, input } as const;
  const failed: Executed = { succeeded: false, logs: [], frame: { ...root, error: REVERTED } };
  const selector = input.slice(2, 10);
  if (!CONTRACTS.has(to)) {
    return move(accounts, ether(from), ether(to), value) ? { succeeded: true, logs: [], frame: root } : failed;
  }
  if (to !== FORWARDER) {
    const share = { to: addressAt(input, 0), minor: numberAt(input, 1) };
    if (selector !== TRANSFER || value > 0n || !move(accounts, tokens(to, from), tokens(to, share.to), share.minor))
      return failed;
    return { succeeded: true, logs: [transferLog(to, from, share)], frame: root };
  }
  const shares = sharesIn(input);
  const total = shares.reduce((sum, { minor }) => sum + minor, 0n);
  if (selector === SEND_TOKENS) {
    if (value > 0n || accounts.get(tokens(TOKEN, from)) < total) return failed;
    for (const share of shares) move(accounts, tokens(TOKEN, from), tokens(TOKEN, share.to), share.minor);
    const calls = shares.map((share) => frameOf(FORWARDER, TOKEN, 0n, transferCall(share.to, share.minor)));
    return { succeeded: true, logs: shares.map((share) => transferLog(TOKEN, from, share)), frame: { ...root, calls } };
  }
  if (total !== value || accounts.get(ether(from)) < value) return failed;
  const calls = shares.map((share) => frameOf(FORWARDER, share.to, share.minor));
  if (selector === SEND_ETHER) {
    for (const share of shares) move(accounts, ether(from), ether(share.to), share.minor);
    return { succeeded: true, logs: [], frame: { ...root, calls } };
  }
  // it calls itself, sends, and reverts: what it got goes back to the caller
  const inner: Frame = { ...frameOf(FORWARDER, FORWARDER, 0n, input), error: REVERTED, calls };
  return { succeeded: true, logs: [], frame: { ...root, calls: [inner, frameOf(FORWARDER, from, value)] } };
}

const frameOf = (from: string, to: string, value: bigint, input = '0x'): Frame => ({ type: 'CALL', from, to, value, input });

/** The result of a call that changes nothing, as eth_call answers it; null = it reverts. */
export function callOnly(
  accounts: Accounts,
  call: { readonly from: string; readonly to: string; readonly value: bigint; readonly input: string },
): string | null {
  const selector = call.input.slice(2, 10);
  const isToken = call.to === TOKEN || call.to === FAKE_TOKEN;
  if (isToken && selector === DECIMALS) return `0x${word(6n)}`;
  if (isToken && selector === BALANCE_OF) return `0x${word(accounts.get(tokens(call.to, addressAt(call.input, 0))))}`;
  const scratch = new Map<string, bigint>();
  const copy: Accounts = {
    get: (key) => scratch.get(key) ?? accounts.get(key),
    set: (key, value) => void scratch.set(key, value),
  };
  return execute(copy, call).succeeded ? '0x' : null;
}
