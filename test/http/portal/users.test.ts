// The users of a merchant in the portal: made and changed by one who has every scope, never of another merchant, each password shown once.
import { afterAll, beforeAll, expect, test } from 'vitest';
import { SCOPES } from '../../../src/core/credentials.ts';
import { setUser } from '../../../src/flow/merchants/merchants.ts';
import { addOwnUser, choosePassword, MOST_USERS, renewPassword, setOwnScopes } from '../../../src/flow/merchants/own-users.ts';
import { type ApiServer, makeApi, PASSWORD } from '../api-server.ts';
import { hiddenFields, signedInBrowser, words } from './browser.ts';

let api: ApiServer;
beforeAll(async () => {
  api = await makeApi();
});
afterAll(async () => {
  expect(api.bugs).toEqual([]);
  await api.end();
});

const PATH = '/settings/users';
const secretOf = (text: string): string => /class="secret">([^<]+)</.exec(text)?.[1] as string;
const auth = (username: string, password: string) => api.send('/auth', { username, password });

test('a new user signs in with the password that is shown once, and may what was chosen', async () => {
  const browser = await signedInBrowser(api);
  const made = await browser.submit(PATH, 'add', { username: 'Till', scopes: 'payments', password: PASSWORD });
  const password = secretOf(made.text);
  expect(password).toMatch(/^[A-Za-z0-9_-]{24}$/);
  const { json } = await auth('till', password);
  const as = { access_token: json.access_token };
  expect((await api.send('/create_transaction', { ...as, amount: '5.00', crypto_selected: 'BTC' })).status).toBe(200);
  expect((await api.send('/get_account_info', as)).status).toBe(403);
  const listed = await browser.get(PATH);
  expect(words(listed.text)).toContain('Till payments');
  expect(listed.text).not.toContain(password);
});

test('other scopes end the sign-ins of the user, and hold from then on', async () => {
  const browser = await signedInBrowser(api);
  const password = secretOf((await browser.submit(PATH, 'add', { username: 'clerk', scopes: 'read', password: PASSWORD })).text);
  const before = { access_token: (await auth('clerk', password)).json.access_token };
  const changed = await browser.submit(`${PATH}/clerk`, 'change', { scopes: 'read payments payouts', password: PASSWORD });
  expect(words(changed.text)).toContain('Scopes: read, payments, payouts');
  expect((await api.send('/get_account_info', before)).status).toBe(401);
  const after = { access_token: (await auth('clerk', password)).json.access_token };
  expect((await api.send('/set_settings', { ...after, payout_approval_above: '5.00' })).status).toBe(200);
});

test('a new password takes the place of the old one', async () => {
  const browser = await signedInBrowser(api);
  const first = secretOf((await browser.submit(PATH, 'add', { username: 'guard', scopes: 'read', password: PASSWORD })).text);
  const second = secretOf((await browser.submit(`${PATH}/guard`, 'renew', { password: PASSWORD })).text);
  expect((await auth('guard', first)).status).toBe(401);
  expect((await auth('guard', second)).status).toBe(200);
});

test('everybody chooses his own password, which no answer that is lost takes away', async () => {
  const path = `${PATH}/only.read`;
  const own = await signedInBrowser(api, 'only.read');
  const chosen = { new_password: 'a new horse battery', again: 'a new horse battery', password: PASSWORD };
  const { text } = await own.get(path);
  expect(text).not.toContain('value="renew"');
  for (const [wrong, field] of [
    [{ password: 'wrong' }, 'password'],
    [{ again: 'another horse battery' }, 'again'],
    [{ new_password: '', again: '' }, 'new_password'],
  ] as const) {
    const shown = await own.submit(path, 'choose', { ...chosen, ...wrong });
    expect([field, shown.text.includes(`id="choose-${field}-wrong"`)]).toEqual([field, true]);
    expect(shown.text).not.toContain('horse battery');
  }
  expect((await auth('only.read', PASSWORD)).status).toBe(200);
  const fields = { ...hiddenFields(text, 'choose'), ...chosen };
  for (let i = 0; i < 2; i++) expect((await own.post(path, fields)).text).toContain('action="/sign-in"');
  expect((await auth('only.read', 'a new horse battery')).status).toBe(200);
  const shop = await signedInBrowser(api);
  const sent = hiddenFields((await shop.get(`${PATH}/shop`)).text, 'choose');
  expect((await shop.post(`${PATH}/guard`, { ...sent, ...chosen })).status).toBe(400);
  expect((await shop.post(`${PATH}/shop`, { ...sent, do: 'renew', password: PASSWORD })).status).toBe(400);
});

test('without the password, and without every scope, nothing is made or changed', async () => {
  const users = async () => api.sql('select username, scopes, password_hash from users order by id');
  const before = await users();
  const browser = await signedInBrowser(api);
  const refused = await browser.submit(PATH, 'add', { username: 'x', scopes: 'read', password: 'wrong' });
  expect([refused.status, refused.text]).toEqual([401, expect.stringContaining('The password is incorrect.')]);
  const few = await signedInBrowser(api, 'only.payments');
  const { form_token = '' } = hiddenFields((await few.get('/transactions/new')).text, 'create');
  const sent = { form_token, key: 'k', password: PASSWORD };
  for (const [path, fields] of [
    [PATH, { do: 'add', username: 'x', scopes: 'payments' }],
    [`${PATH}/shop`, { do: 'renew' }],
    [`${PATH}/clerk`, { do: 'change', scopes: 'payments' }],
  ] as const)
    expect([path, (await few.post(path, { ...sent, ...fields })).status]).toEqual([path, 403]);
  expect(await users()).toEqual(before);
});

test('nobody changes his own scopes, another merchant’s users, or makes one with a name that is taken or scopes that are none', async () => {
  const browser = await signedInBrowser(api);
  const own = await browser.get(`${PATH}/shop`);
  expect(own.text).not.toContain('value="change"');
  const { form_token = '' } = hiddenFields(own.text, 'choose');
  const sent = { form_token, key: 'k', password: PASSWORD };
  expect((await browser.post(`${PATH}/shop`, { ...sent, do: 'change', scopes: 'read' })).status).toBe(400);
  for (const path of [`${PATH}/other`, `${PATH}/OTHER`, `${PATH}/nobody`, `${PATH}/%00`]) {
    expect([path, (await browser.get(path)).status]).toEqual([path, 404]);
    expect([path, (await browser.post(path, { ...sent, do: 'renew' })).status]).toEqual([path, 404]);
  }
  expect((await auth('other', PASSWORD)).status).toBe(200);
  for (const [username, scopes] of [
    ['other', 'read'],
    ['SHOP', 'read'],
    ['', 'read'],
    ['a b', 'read'],
    ['new', ''],
    ['new', 'admin'],
  ] as const)
    expect([username, (await browser.submit(PATH, 'add', { username, scopes, password: PASSWORD })).status]).toEqual([
      username,
      400,
    ]);
});

/** A user with every scope, and what its session says of it. */
async function owner(username: string) {
  const browser = await signedInBrowser(api);
  const made = await browser.submit(PATH, 'add', { username, scopes: SCOPES.join(' '), password: PASSWORD });
  await auth(username, secretOf(made.text));
  const [row] = await api.sql(
    `select u.id, u.merchant_id, s.id as sign_in from users u join sign_ins s on s.user_id = u.id and s.revoked_at is null where u.username = $1`,
    [username],
  );
  const ids = { userId: BigInt(row.id), merchantId: BigInt(row.merchant_id), signInId: row.sign_in as string };
  return { ...ids, affiliateId: api.affiliateId, scopes: new Set(SCOPES) };
}

test('whose sign-in was ended while a change was on its way changes nothing', async () => {
  const [by] = [await owner('leaver'), await owner('stayer')];
  await setUser(api.ctx, { username: 'leaver', scopes: ['read'], password: 'another horse battery' });
  const ended = { code: 'invalid_token' };
  await expect(addOwnUser(api.ctx, by, { username: 'backdoor', scopes: ['payouts'] })).rejects.toMatchObject(ended);
  await expect(setOwnScopes(api.ctx, by, { username: 'stayer', scopes: ['read'] })).rejects.toMatchObject(ended);
  await expect(renewPassword(api.ctx, by, 'stayer')).rejects.toMatchObject(ended);
  await expect(choosePassword(api.ctx, by, { username: 'leaver', password: 'what the thief has chosen' })).rejects.toMatchObject(
    ended,
  );
  expect((await auth('leaver', 'another horse battery')).status).toBe(200);
  expect(await api.sql(`select scopes from users where username in ('backdoor', 'stayer')`)).toEqual([{ scopes: [...SCOPES] }]);
});

test('of two who take scopes from each other at once, one keeps them', async () => {
  for (let round = 0; round < 5; round++) {
    const names = [`one${round}`, `two${round}`] as const;
    const [one, two] = [await owner(names[0]), await owner(names[1])];
    const done = await Promise.allSettled([
      setOwnScopes(api.ctx, one, { username: names[1], scopes: ['payments'] }),
      setOwnScopes(api.ctx, two, { username: names[0], scopes: ['payments'] }),
    ]);
    expect(done.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected']);
    const kept = await api.sql('select scopes from users where username = any($1) order by cardinality(scopes)', [names]);
    expect(kept.map(({ scopes }) => scopes.length)).toEqual([1, SCOPES.length]);
  }
});

test('every name that a user may have has its page', async () => {
  const browser = await signedInBrowser(api);
  for (const username of ['%2F', 'a/b', '?x=1#y', '...', '__proto__', 'x'.repeat(128), 'ก'.repeat(128), `e\u0301`.repeat(120)]) {
    const made = await browser.submit(PATH, 'add', { username, scopes: 'read', password: PASSWORD });
    const href = [...(await browser.get(PATH)).text.matchAll(/href="(\/settings\/users\/[^"]+)"/g)].pop()?.[1] as string;
    const path = new URL(href, api.base).pathname;
    expect([username, (await browser.submit(path, 'change', { scopes: 'payments read', password: PASSWORD })).status]).toEqual([
      username,
      200,
    ]);
    expect((await auth(username, secretOf(made.text))).status).toBe(200);
  }
  for (const username of ['.', '..']) {
    const refused = await browser.submit(PATH, 'add', { username, scopes: 'read', password: PASSWORD });
    expect([refused.status, words(refused.text)]).toEqual([400, expect.stringContaining('no page can have the address')]);
  }
});

test('who may see nothing else finds his own page from every other, and chooses his password there', async () => {
  const browser = await signedInBrowser(api, 'only.payouts');
  const refused = await browser.get('/balances');
  expect(refused.status).toBe(403);
  const own = /<a class="user" href="([^"]+)"/.exec(refused.text)?.[1] as string;
  expect(own).toBe(`${PATH}/only.payouts`);
  const chosen = { new_password: 'only for payouts', again: 'only for payouts', password: PASSWORD };
  const sent = await browser.submit(own, 'choose', chosen);
  expect(sent.text).toContain('action="/sign-in"');
  expect((await auth('only.payouts', 'only for payouts')).status).toBe(200);
  const few = await signedInBrowser(api, 'only.payments');
  for (const path of [PATH, `${PATH}/shop`, `${PATH}/only.payouts`, `${PATH}/nobody`])
    expect([path, (await few.get(path)).status]).toEqual([path, 403]);
});

test('a merchant makes no more users than the limit', async () => {
  await api.sql(
    `insert into users (merchant_id, username, username_key, password_hash, scopes, created_at)
       select m.id, 'u' || n, 'u' || n, 'x', '{read}', now() from merchants m, generate_series(2, ${MOST_USERS}) n where m.affiliate_id = $1`,
    [api.otherAffiliateId],
  );
  const browser = await signedInBrowser(api, 'other');
  const refused = await browser.submit(PATH, 'add', { username: 'onemore', scopes: 'read', password: PASSWORD });
  expect([refused.status, words(refused.text)]).toEqual([400, expect.stringContaining('There are 100 users already')]);
  await api.sql(`delete from users where username in ('u99', 'u100')`);
  const sent = hiddenFields((await browser.get(PATH)).text, 'add');
  const names = ['a', 'b', 'c', 'd', 'e', 'f'];
  const made = await Promise.all(
    names.map((username) => browser.post(PATH, { ...sent, username, scopes: 'read', password: PASSWORD })),
  );
  expect(made.map(({ status }) => status).sort((a, b) => a - b)).toEqual([200, 200, 400, 400, 400, 400]);
});
