// What a username, a password and a scope may be, and the one form in which usernames are compared.

export const SCOPES = ['read', 'payments', 'payouts'] as const;
export type Scope = (typeof SCOPES)[number];
/** Whether a text is one of {@link SCOPES}, exactly as written. */
export const isScope = (text: string): text is Scope => (SCOPES as readonly string[]).includes(text);

const MAX_USERNAME = 128;
const MIN_PASSWORD = 12;
const MAX_PASSWORD = 128;
const MAX_PASSWORD_BYTES = 512;

/** Letters of other scripts that look like Latin ones; a name of nothing but these is refused (UTS 39, whole-script confusables). */
const LATIN_LOOKALIKES = new Set('аеорсухіјѕһԁԛԝмнвктгпьωαβγεηικνορτυχкοϲϳաԍոսցօհյզ');
/** The letters of Latin alphabets and their combining marks, decomposed (NFD). */
const LATIN_PARTS = /^(?:[a-zæøđłþðœħŋ]|[\u0300-\u0304]|[\u0306-\u030c]|\u0323|[\u0326-\u0328]|\u032d|\u0331)+$/u;
const OTHER_SCRIPTS = [
  /^[\p{Script=Cyrillic}\p{M}]+$/u,
  /^[\p{Script=Greek}\p{M}]+$/u,
  /^[\p{Script=Armenian}\p{M}]+$/u,
  /^[\p{Script=Arabic}\p{M}]+$/u,
  /^[\p{Script=Hebrew}\p{M}]+$/u,
  /^[\p{Script=Devanagari}\p{M}]+$/u,
  /^[\p{Script=Thai}\p{M}]+$/u,
  /^[\p{Script=Hangul}]+$/u,
  /^[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}ー]+$/u,
] as const;

/**
 * The form in which usernames are compared: NFKC, case-folded (so that `Ｄemo` and `DEMO` are `demo`).
 * @returns null for a name that is not allowed: empty or over 128 characters; with white space, control or invisible characters; with
 * letters of several scripts, or letters that look like those of another script.
 */
export function usernameKey(username: string): string | null {
  if (username.length > 4 * MAX_USERNAME || !username.isWellFormed()) return null;
  // through upper case: JavaScript's toLowerCase alone does not fold ß, ſ and ς
  const key = username.normalize('NFKC').toUpperCase().toLowerCase().replaceAll('ς', 'σ').normalize('NFKC');
  const length = [...key].length;
  if (length < 1 || length > MAX_USERNAME) return null;
  const letters = key.replace(/[\x21-\x40\x5b-\x60\x7b-\x7e]/g, '');
  return letters === '' || isLatin(letters) || isOneOtherScript(letters) ? key : null;
}

function isLatin(letters: string): boolean {
  // é is e with a mark; a letter that is not in the alphabet once its marks are removed (ɑ, ɡ, ı) only looks like one that is
  const parts = letters.normalize('NFD');
  return LATIN_PARTS.test(parts) && !/^\p{M}|\p{M}{3}|[ij]\u0307/u.test(parts);
}

function isOneOtherScript(letters: string): boolean {
  if (/^\p{M}/u.test(letters) || !/^[\p{L}\p{M}]+$/u.test(letters)) return false;
  return OTHER_SCRIPTS.some((script) => script.test(letters)) && [...letters].some((letter) => !LATIN_LOOKALIKES.has(letter));
}

/**
 * What is wrong with a new password, as a sentence, or null: 12 to 128 characters, at most 512 bytes in UTF-8, any Unicode.
 * @param shortest the minimum number of characters, where it is not 12
 */
export function passwordProblem(password: string, shortest = MIN_PASSWORD): string | null {
  const normal = password.normalize('NFC');
  const length = [...normal].length;
  if (!password.isWellFormed()) return 'password must be valid Unicode.';
  if (length < shortest || length > MAX_PASSWORD) return `password must have ${shortest} to ${MAX_PASSWORD} characters.`;
  if (new TextEncoder().encode(normal).length > MAX_PASSWORD_BYTES)
    return `password must have at most ${MAX_PASSWORD_BYTES} bytes in UTF-8.`;
  return null;
}
