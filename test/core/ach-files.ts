// The NACHA files that the tests of writer and reader begin with.
import type { NachaEntry, NachaFile } from '../../src/core/ach/nacha-file.ts';

/** Who sends the files. */
export const ORIGIN = {
  bankRouting: '091000019',
  bankName: 'Wells Fargo Bank',
  companyId: '1234567890',
  companyName: 'Example Payments Inc',
};
/** To a checking and a savings account. */
export const TWO: readonly NachaEntry[] = [
  {
    transactionCode: 22,
    routing: '011401533',
    account: '123456789',
    cents: 99_000n,
    id: 'PO7K2M9Q4T1',
    name: 'Acme Coffee LLC',
    trace: '091000010000001',
  },
  {
    transactionCode: 32,
    routing: '021000021',
    account: '000987654321',
    cents: 2_500_050n,
    id: 'PO8R3N1W6X2',
    name: 'Blue Bike Inc',
    trace: '091000010000002',
  },
];
/** A file of these entries. */
export const fileOf = (entries: readonly NachaEntry[], more: Partial<NachaFile> = {}): NachaFile => ({
  origin: ORIGIN,
  date: '2026-11-21',
  time: '1430',
  modifier: 'A',
  entryClass: 'CCD',
  description: 'PAYOUT',
  effective: '2026-11-23',
  entries,
  ...more,
});
