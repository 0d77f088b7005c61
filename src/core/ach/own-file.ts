// Reads a bank file as one of our own: only when every byte of it is what we would have written for its entries. Nothing can stand in it that one
// reader sees and another does not.
import { type AchOrigin, type NachaEntry, writeNachaFile } from './nacha-file.ts';
import { NachaMalformed, readNachaFile } from './nacha-reader.ts';

export type OwnFile = {
  /** <yyyy-mm-dd>-<modifier> */
  readonly name: string;
  readonly entries: readonly NachaEntry[];
};

/** How many characters of a payout's id an entry has: fewer may be how somebody else names an entry, and name no payout. */
export const REFERENCE_LENGTH = 15;

/** A payout as the entries of bank files name it: the end of its id, in capitals. */
export function achReference(payoutId: string): string {
  return payoutId.slice(-REFERENCE_LENGTH).toUpperCase();
}

/** Null for everything else than credits to companies (CCD) of this bank and company: other names of the two may stand in it. */
export function readOwnFile(bytes: Uint8Array, origin: AchOrigin): OwnFile | null {
  try {
    const text = new TextDecoder().decode(bytes);
    const read = readNachaFile(text);
    const [header = '', batch = '', ...records] = text.split('\n');
    const date = dateOf(header.slice(23, 29));
    const modifier = header.slice(33, 34);
    const entries = read.entries.map(
      ({ transactionCode, routing, account, cents, id, trace }, at): NachaEntry => ({
        transactionCode: transactionCode === '32' ? 32 : 22,
        routing,
        account,
        cents,
        id,
        // as it stands there, spaces at its beginning included
        name: (records[at] ?? '').slice(54, 76),
        trace,
      }),
    );
    const written = writeNachaFile({
      origin: { ...origin, bankName: header.slice(40, 63), companyName: header.slice(63, 86) },
      date,
      time: header.slice(29, 33),
      modifier,
      entryClass: 'CCD',
      description: batch.slice(53, 63),
      effective: dateOf(batch.slice(69, 75)),
      entries,
    });
    return written === text ? { name: `${date}-${modifier}`, entries } : null;
  } catch (error) {
    if (error instanceof NachaMalformed || error instanceof RangeError) return null;
    throw error;
  }
}

/** The references of the payouts that a file of ours names; none where it cannot be read. */
export function referencesIn(bytes: Uint8Array): readonly string[] {
  try {
    return readNachaFile(new TextDecoder().decode(bytes)).entries.map(({ id }) => id);
  } catch (error) {
    if (error instanceof NachaMalformed) return [];
    throw error;
  }
}

const dateOf = (yymmdd: string): string => `20${yymmdd.slice(0, 2)}-${yymmdd.slice(2, 4)}-${yymmdd.slice(4, 6)}`;
