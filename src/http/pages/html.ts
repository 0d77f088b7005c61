// Writing HTML: what is put into a template is text unless it was made by one itself, so that nobody can forget to escape a merchant's words.

/** A piece of a page. */
export type Html = { readonly html: string };
type Part = Html | string | number | false | null | readonly Part[];

/** @param parts `false` and `null` are nothing, lists are written one after the other, everything else is text */
export function html(texts: TemplateStringsArray, ...parts: readonly Part[]): Html {
  return { html: texts.map((text, index) => text + (index < parts.length ? written(parts[index] as Part) : '')).join('') };
}

/**
 * A whole page.
 * @param head what else its head has
 * @param body the element itself, with its attributes
 */
export function htmlPage(
  {
    title,
    style,
    head = null,
    language = 'en',
    direction = 'ltr',
  }: { title: string; style: string; head?: Html | null; language?: string; direction?: 'ltr' | 'rtl' },
  body: Html,
): string {
  return html`<!doctype html>
<html lang="${language}" dir="${direction}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${title}</title>
<link rel="stylesheet" href="${style}">
${head}
</head>
${body}
</html>
`.html;
}

function written(part: Part): string {
  if (part === null || part === false) return '';
  if (typeof part === 'string' || typeof part === 'number') return escaped(String(part));
  return 'html' in part ? part.html : part.map(written).join('');
}

const ENTITIES: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' };

/** Text for an element or a quoted attribute (WHATWG HTML §13.3). */
const escaped = (text: string): string => text.replace(/[&<>"']/g, (character) => ENTITIES[character] as string);
