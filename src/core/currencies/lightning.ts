// Lightning: another way to pay Bitcoin, without a balance of its own.
import { BTC } from './btc.ts';

export const LIGHTNING = {
  method: 'BTC-LN',
  /** Other names that `crypto_selected` accepts for it, in capitals. */
  aliases: ['LN', 'LIGHTNING', 'BTC_LN', 'BTC-LIGHTNING'],
  /** The balance that its payments go to. */
  balance: BTC.code,
} as const;
