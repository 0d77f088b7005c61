// Lightning: another way to pay Bitcoin, and no balance of its own.
import { BTC } from './btc.ts';

export const LIGHTNING = {
  method: 'BTC-LN',
  /** Other names by which a customer's choice may call it, in capitals. */
  aliases: ['LN', 'LIGHTNING', 'BTC_LN', 'BTC-LIGHTNING'],
  /** The balance that it is paid into. */
  balance: BTC.code,
} as const;
