// The signer's own code in this process, with a seed that it made itself: for tests that drive payouts over real nodes.
import type { CurrencyCode } from '../../src/core/currency.ts';
import { readIntentPublicKey } from '../../src/main/wiring/intent-key.ts';
import { createKeyring, type Keyring } from '../../src/signer/keyring.ts';
import { openSignatureJournal, type SignatureJournal } from '../../src/signer/signature-journal.ts';
import { createSigning } from '../../src/signer/signing.ts';
import { createTurns } from '../../src/signer/turns.ts';
import { addSignerKey, confirmKey, listKeys } from '../../src/store/chain/xpubs.ts';
import { connect, type Database } from '../../src/store/postgres/connect.ts';
import type { Signing } from '../../src/worker/payouts/driver-options.ts';

export type PayoutSigner = {
  readonly signing: Signing;
  readonly journal: SignatureJournal;
  readonly keyring: Keyring;
  close(): Promise<void>;
};

/**
 * @param folder the signer's own, which has the intent key too
 * @param currencies whose account keys the database gets
 */
export async function openPayoutSigner(
  { db, url }: { readonly db: Database; readonly url: string },
  {
    folder,
    currencies,
    tokenContract,
  }: { readonly folder: string; readonly currencies: readonly CurrencyCode[]; readonly tokenContract: string | null },
): Promise<PayoutSigner> {
  const keyring = createKeyring({ folder, network: 'regtest', passphrase: { kind: 'generated' }, makesItsOwn: true });
  for (const { currency, xpub } of (await keyring.accounts()) ?? [])
    if (currencies.some((one) => one === currency)) await addSignerKey(db, { currency, xpub, at: new Date() });
  for (const { id } of await listKeys(db)) await confirmKey(db, id, new Date());
  const readOnly = connect({ url, role: 'bursar_signer', maxConnections: 1, applicationName: 'test signer' });
  const journal = await openSignatureJournal(folder, 'regtest', { now: Date.now });
  const own = createSigning({
    keyring,
    db: readOnly,
    journal: async () => journal,
    intentKeys: async () => [(await readIntentPublicKey(folder)) as string],
    limits: {},
    countedAlone: createTurns(),
    tokenContract,
    now: () => Date.now(),
  });
  return {
    signing: {
      sign: (request) => own.sign(request),
      signed: ({ after, batchId }) => own.signed(after, batchId ?? null),
    },
    journal,
    keyring,
    async close() {
      await journal.close();
      await readOnly.close();
    },
  };
}
