// Which language the checkout page is written in: the one that its address asks for (`?lang=`), else the one that the customer's browser prefers.
import { AR } from './ar.ts';
import { DE } from './de.ts';
import { EN, type Words } from './en.ts';
import { ES } from './es.ts';
import { FR } from './fr.ts';
import { JA } from './ja.ts';
import { PT } from './pt.ts';

/** By the tags of BCP 47, as they stand in a document's `lang`; in the order in which they are offered. */
export const LANGUAGES = { en: EN, de: DE, es: ES, fr: FR, pt: PT, ja: JA, ar: AR } as const satisfies Record<string, Words>;
export type Language = keyof typeof LANGUAGES;

const USUAL: Language = 'en';
/** More than any browser sends. */
const MOST = 50;

/**
 * The language of a request: of several that its browser takes the one that it wants most (RFC 9110 §12.5.4).
 * @param of.asked what the address says; a language that there is not counts as none
 * @param of.accepted the header Accept-Language
 */
export function languageOf({
  asked,
  accepted = '',
}: {
  readonly asked: string | null;
  readonly accepted?: string | undefined;
}): Language {
  const named = asked === null ? null : known(asked);
  if (named !== null) return named;
  let best: Language = USUAL;
  let wanted = 0;
  for (const range of accepted.split(',', MOST)) {
    const [tag = '', ...parameters] = range.split(';').map((part) => part.trim());
    const language = known(tag);
    const weight = weightOf(parameters);
    if (language === null || weight <= wanted) continue;
    best = language;
    wanted = weight;
  }
  return best;
}

/** By its first part: `de-AT` is German. */
function known(tag: string): Language | null {
  const first = tag.split('-', 1)[0]?.toLowerCase() ?? '';
  return Object.hasOwn(LANGUAGES, first) ? (first as Language) : null;
}

function weightOf(parameters: readonly string[]): number {
  const quality = parameters.find((parameter) => /^q=/i.test(parameter));
  if (quality === undefined) return 1;
  const weight = Number(quality.slice('q='.length));
  return weight >= 0 && weight <= 1 ? weight : 0;
}
