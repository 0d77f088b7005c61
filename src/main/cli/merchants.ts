// `bursar merchant add|list|suspend|resume` and `bursar user add|set`.
import { randomBytes } from 'node:crypto';
import { type Command, InvalidArgumentError } from 'commander';
import { isScope, SCOPES } from '../../core/credentials.ts';
import { addMerchant, addUser, resumeMerchant, setUser, suspendMerchant } from '../../flow/merchants/merchants.ts';
import { readUnsealed, vouch } from '../../flow/merchants/seals.ts';
import { listMerchants } from '../../store/merchants/merchants.ts';
import { group, leaf, print, table } from './output.ts';
import { withForeignSeals, withSignIns } from './service-access.ts';

type JsonOption = { readonly json?: boolean };
type Credentials = { readonly username: string; readonly password?: string };

/** A comma-separated list of scopes. */
function scopes(text: string): readonly string[] {
  const names = text.split(',').map((name) => name.trim());
  if (names.length > 0 && names.every(isScope)) return names;
  throw new InvalidArgumentError(`Accepted: one or more of ${SCOPES.join(', ')}, separated by commas.`);
}

const PASSWORDS = '12 to 128 characters (sandbox: any)';

/** Shown only once; 144 random bits. */
const newPassword = (): string => randomBytes(18).toString('base64url');

const fields = (value: Readonly<Record<string, string>>): string[] =>
  Object.entries(value).map(([name, text]) => `${name}: ${text}`);

/** Adds `merchant …` and `user …`. A password that is made here is printed once. */
export function addMerchantCommands(bursar: Command): void {
  const merchant = group(bursar, 'merchant', 'Merchants.');
  leaf(merchant, 'add', 'Makes a merchant and its first user, who may do everything.')
    .requiredOption('--username <name>', "the first user's name")
    .option('--password <text>', `${PASSWORDS}; one is made when it is left out`)
    .requiredOption('--email <address>', "the account's e-mail address")
    .requiredOption('--business-name <name>', 'the registered business name')
    .action(async (options: Credentials & { email: string; businessName: string } & JsonOption) => {
      const { username, password = newPassword(), email, businessName } = options;
      const { affiliateId } = await withSignIns((ctx) => addMerchant(ctx, { username, password, email, businessName }));
      const made = { affiliate_id: affiliateId, username, password };
      print(options.json, made, [...fields(made), 'The password is not shown again.']);
    });
  leaf(merchant, 'list', 'Lists every merchant with its users, the oldest first.').action(list);
  leaf(merchant, 'seal', 'Shows users and settings that are not what was sealed: of an older database, or changed by somebody.')
    .option('--accept', 'after you have looked at them: seals them as they are now')
    .action(seal);
  leaf(merchant, 'suspend <affiliate_id>', "Refuses all of a merchant's calls from now on.").action(
    async (affiliateId: string, { json }: JsonOption) => {
      await withSignIns((ctx) => suspendMerchant(ctx, { affiliateId }));
      print(json, { affiliate_id: affiliateId, suspended: true }, [`${affiliateId} is suspended.`]);
    },
  );
  leaf(merchant, 'resume <affiliate_id>', 'Ends a suspension.').action(async (affiliateId: string, { json }: JsonOption) => {
    await withSignIns((ctx) => resumeMerchant(ctx, { affiliateId }));
    print(json, { affiliate_id: affiliateId, suspended: false }, [`${affiliateId} may call again.`]);
  });
  addUserCommands(bursar);
}

async function list({ json }: JsonOption): Promise<void> {
  const merchants = await withSignIns((ctx) => listMerchants(ctx.db));
  const data = merchants.map((one) => ({
    affiliate_id: one.affiliateId,
    business_name: one.businessName,
    email: one.email,
    created_at: one.createdAt.toISOString(),
    suspended_at: one.suspendedAt?.toISOString() ?? null,
    users: one.users,
  }));
  const rows = data.map((one) => [
    one.affiliate_id,
    one.suspended_at === null ? 'active' : 'suspended',
    one.created_at,
    one.users.map(({ username }) => username).join(', '),
    one.email,
    one.business_name,
  ]);
  const head = ['merchant', 'state', 'since', 'users', 'email', 'business name'];
  print(json, { data }, rows.length === 0 ? ['There is no merchant yet.'] : table(head, rows));
}

async function seal({ accept = false, json }: { readonly accept?: boolean } & JsonOption): Promise<void> {
  const { users, merchants } = await withForeignSeals((ctx) => (accept ? vouch(ctx) : readUnsealed(ctx)));
  const found = users.map(({ usernameKey: username, affiliateId, scopes: may }) => ({
    username,
    affiliate_id: affiliateId,
    scopes: may,
  }));
  const rows = found.map((one) => [one.username, one.affiliate_id, one.scopes.join(', ')]);
  const settings = merchants.length === 0 ? [] : [`settings of ${merchants.join(', ')}`];
  const nothing = users.length + merchants.length === 0;
  print(json, { users: found, settings: merchants, sealed: accept }, [
    ...(nothing ? ['Everything is as it was sealed.'] : table(['user', 'merchant', 'may'], rows)),
    ...settings,
    ...(nothing
      ? []
      : [accept ? 'They are sealed as they are now.' : 'bursar merchant seal --accept seals them as they are now.']),
  ]);
}

function addUserCommands(bursar: Command): void {
  const user = group(bursar, 'user', 'Users of merchants.');
  leaf(user, 'add', 'Makes a further user of a merchant.')
    .requiredOption('--merchant <affiliate_id>', 'whose user')
    .requiredOption('--username <name>', 'the name to sign in with')
    .option('--password <text>', `${PASSWORDS}; one is made when it is left out`)
    .requiredOption('--scopes <list>', `of ${SCOPES.join(', ')}, separated by commas`, scopes)
    .action(async (options: Credentials & { merchant: string; scopes: readonly string[] } & JsonOption) => {
      const { merchant: affiliateId, username, password = newPassword() } = options;
      await withSignIns((ctx) => addUser(ctx, { affiliateId, username, password, scopes: options.scopes }));
      const made = { affiliate_id: affiliateId, username, password, scopes: options.scopes };
      print(options.json, made, [...fields({ ...made, scopes: options.scopes.join(',') }), 'The password is not shown again.']);
    });
  leaf(user, 'set', "Changes a user's password or scopes, and ends all of the user's sign-ins.")
    .requiredOption('--username <name>', 'which user')
    .option('--password <text>', `the new password: ${PASSWORDS}`)
    .option('--scopes <list>', `the new scopes: of ${SCOPES.join(', ')}, separated by commas`, scopes)
    .action(async (options: Credentials & { scopes?: readonly string[] } & JsonOption) => {
      const { username, password } = options;
      await withSignIns((ctx) => setUser(ctx, { username, password, scopes: options.scopes }));
      const changed = [...(password === undefined ? [] : ['password']), ...(options.scopes === undefined ? [] : ['scopes'])];
      print(options.json, { username, changed }, [`${username}: ${changed.join(' and ')} changed; all sign-ins ended.`]);
    });
}
