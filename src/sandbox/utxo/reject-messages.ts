// How a currency's node words its refusals, where that differs from today's Bitcoin Core.
import type { Dialect } from './dialects.ts';
import { RPC_ALREADY_IN_CHAIN, RPC_REJECTED, RPC_VERIFY, RpcError } from './rpc/error.ts';

/** Bitcoin Core's numbers of rejections (consensus/validation.h until 0.19). */
const INVALID = 16;
const CONFLICT = 18;
const NONSTANDARD = 64;
const LOW_FEE = 66;

function rejectCode(reason: string): number {
  if (reason.includes('conflict')) return CONFLICT;
  if (/fee/.test(reason)) return LOW_FEE;
  return /^(?:dust|scriptpubkey|version)/.test(reason) ? NONSTANDARD : INVALID;
}

/** The refusal as this currency's node would write it. */
export function withRejectMessage(dialect: Dialect, refusal: RpcError): RpcError {
  const { rejectCodes } = dialect.rpc;
  if (rejectCodes === 'none') return refusal;
  if (refusal.code === RPC_VERIFY) return new RpcError(RPC_VERIFY, 'Missing inputs');
  if (refusal.code === RPC_ALREADY_IN_CHAIN) return new RpcError(RPC_ALREADY_IN_CHAIN, 'transaction already in block chain');
  if (refusal.code !== RPC_REJECTED) return refusal;
  const reason = (refusal.message.split(',')[0] as string).replace('non-mandatory', 'mandatory');
  const code = rejectCode(reason);
  return new RpcError(RPC_REJECTED, rejectCodes === 'before' ? `${code}: ${reason}` : `${reason} (code ${code})`);
}
