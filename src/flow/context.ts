// What every verb gets first: the database and the outside. Made once, in main/wire.ts.
import type { Network } from '../core/currency.ts';
import type { Ports } from '../core/ports.ts';
import type { Database } from '../store/connect.ts';

export type Context = {
  readonly db: Database;
  readonly ports: Ports;
  readonly network: Network;
  /** The service's own fee in basis points (BURSAR_FEE_BPS). */
  readonly feeBps: number;
  /** Seconds from succeeded to settled (BURSAR_SETTLEMENT_SECONDS). */
  readonly settlementSeconds: number;
};
