// The users of a merchant, for people and for programs: each signs in here and at /auth, as far as its scopes go.
import { SCOPES, usernameKey } from '../../core/credentials.ts';
import { Refusal } from '../../core/refusal.ts';
import {
  addOwnUser,
  choosePassword,
  mayChangeUsers,
  ownUsers,
  renewPassword,
  setOwnScopes,
} from '../../flow/merchants/own-users.ts';
import { typed } from '../pages/forms.ts';
import type { Refused, Shown } from '../pages/frame.ts';
import { html } from '../pages/html.ts';
import { type Input, moment, table } from '../pages/parts.ts';
import { userPath } from './frame.ts';
import { form, link, PASSWORD } from './parts.ts';
import type { Page, Visit } from './visit.ts';

const PATH = '/settings/users';
const NOT_YOURS = html`<p class="note">Users are made and changed by one who has every scope (${SCOPES.join(', ')}).</p>`;
const MAY: Input = {
  name: 'scopes',
  label: 'May',
  choices: [
    ['read', 'see everything (read)'],
    ['read payments', 'and ask for payments and decide them (read, payments)'],
    ['read payments payouts', 'and send money out (read, payments, payouts)'],
    ['payments', 'only ask for payments and decide them (payments)'],
  ],
};

const CHOSEN: readonly Input[] = [
  { name: 'new_password', label: 'New password', type: 'password', required: true },
  { name: 'again', label: 'The same again', type: 'password', required: true },
];

export const USERS: Page = {
  path: PATH,
  under: '/settings',
  async show(visit, refused) {
    // what an account that is suspended, or a user who may see nothing, is refused
    await visit.ask('getSettings');
    const { caller } = visit.session;
    const users = await ownUsers(visit.context.ctx, caller);
    const rows = users.map((one) => [
      link(visit, userPath(one.username), one.username),
      one.scopes.join(', '),
      moment(one.createdAt.toISOString()),
    ]);
    const inputs: readonly Input[] = [{ name: 'username', label: 'Username', required: true }, MAY, PASSWORD];
    const body = html`${table('Users', ['Username', 'Scopes', 'Made'], rows, '')}
<h2>New user</h2>
${mayChangeUsers(caller) ? form(visit, { act: 'add', button: 'Make the user', inputs, refused }) : NOT_YOURS}`;
    return { title: 'Users', body };
  },
  acts: {
    async add(visit, sent) {
      await visit.confirm(sent);
      const username = typed(sent, 'username') ?? '';
      const scopes = (sent.get('scopes') ?? '').split(' ');
      const { password } = await addOwnUser(visit.context.ctx, visit.session.caller, { username, scopes });
      return withPassword(visit, username, password);
    },
  },
};

export const USER: Page = {
  path: `${PATH}/:id`,
  under: '/settings',
  async show(visit, refused) {
    const { caller, username } = visit.session;
    const key = usernameKey(visit.id);
    await checkMaySee(visit, key === username);
    const user = (await ownUsers(visit.context.ctx, caller)).find((one) => usernameKey(one.username) === key);
    if (user === undefined) throw new Refusal('not_found', { message: 'There is no user with this username.' });
    const may = mayChangeUsers(caller);
    const isOwn = user.id === caller.userId;
    const scopes = { ...MAY, value: user.scopes.join(' ') };
    const body = html`<p>Scopes: ${user.scopes.join(', ')}</p>
<h2>New password</h2>
<p class="note">It ends every sign-in of this user: of people and of programs.</p>
${newPassword(visit, { may, isOwn }, refused)}
${may && !isOwn && html`<h2>Scopes</h2>${form(visit, { act: 'change', button: 'Change', inputs: [scopes, PASSWORD], refused })}`}`;
    return { title: `User ${user.username}`, body };
  },
  acts: {
    async renew(visit, sent) {
      await visit.confirm(sent);
      const { password } = await renewPassword(visit.context.ctx, visit.session.caller, visit.id);
      return withPassword(visit, visit.id, password);
    },
    async choose(visit, sent) {
      await visit.confirm(sent);
      const [password, again] = [sent.get('new_password') ?? '', sent.get('again') ?? ''];
      if (password !== again) throw new Refusal('invalid_request', { message: 'The two are not the same.', param: 'again' });
      try {
        await choosePassword(visit.context.ctx, visit.session.caller, { username: visit.id, password });
      } catch (error) {
        // the field of that name is the password so far
        if (!(error instanceof Refusal) || error.param !== 'password') throw error;
        throw new Refusal(error.code, { message: error.message, param: 'new_password' });
      }
      return '/';
    },
    async change(visit, sent) {
      await visit.confirm(sent);
      const scopes = (sent.get('scopes') ?? '').split(' ');
      await setOwnScopes(visit.context.ctx, visit.session.caller, { username: visit.id, scopes });
      return userPath(visit.id);
    },
  },
};

/** What an account that is suspended is refused, and a user who may see nothing, but of himself. */
async function checkMaySee(visit: Visit, isOwn: boolean): Promise<void> {
  try {
    await visit.ask('getSettings');
  } catch (error) {
    const isAllowed = isOwn && error instanceof Refusal && error.code === 'insufficient_permissions';
    if (!isAllowed) throw error;
  }
}

function newPassword(visit: Visit, { may, isOwn }: { readonly may: boolean; readonly isOwn: boolean }, refused: Refused | null) {
  if (isOwn) return form(visit, { act: 'choose', button: 'Change', inputs: [...CHOSEN, PASSWORD], refused });
  if (!may) return NOT_YOURS;
  return form(visit, { act: 'renew', button: 'Make a new password', inputs: [PASSWORD], refused });
}

/** A password is shown once. */
function withPassword(visit: Visit, username: string, password: string): Shown {
  const body = html`<p>The password of <b>${username}</b>. It is shown only now.</p>
<p><code class="secret">${password}</code></p>
<p>${link(visit, PATH, 'Users')}</p>`;
  return { title: 'New password', body };
}
