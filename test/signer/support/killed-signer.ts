// A signer in a process of its own that dies, as by kill -9, when its signature is in the journal and not yet answered.
import { join } from 'node:path';
import { trustedIntentKeys } from '../../../src/signer/intent-trust.ts';
import { createKeyring } from '../../../src/signer/keyring.ts';
import { openSignatureJournal, type SignatureJournal } from '../../../src/signer/signature-journal.ts';
import { createSigning } from '../../../src/signer/signing.ts';
import { createTurns } from '../../../src/signer/turns.ts';
import { connect } from '../../../src/store/postgres/connect.ts';

const [folder, url, request] = process.argv.slice(2) as [string, string, string];
const signerFolder = join(folder, 'signer');
const journal = await openSignatureJournal(signerFolder, 'regtest', { now: Date.now });
const dying: SignatureJournal = {
  ...journal,
  async append(signed) {
    await journal.append(signed);
    process.kill(process.pid, 'SIGKILL');
    return new Promise(() => undefined);
  },
};
const signing = createSigning({
  keyring: createKeyring({ folder: signerFolder, network: 'regtest', passphrase: { kind: 'generated' }, makesItsOwn: false }),
  db: connect({ url, role: 'bursar_signer', maxConnections: 1, applicationName: 'killed signer' }),
  journal: async () => dying,
  intentKeys: async () => (await trustedIntentKeys(signerFolder)) ?? [],
  limits: {},
  countedAlone: createTurns(),
  tokenContract: null,
  now: Date.now,
});
console.log(await signing.sign(JSON.parse(request)));
