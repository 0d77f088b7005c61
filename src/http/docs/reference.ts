// The reference of the API as a page, written from the OpenAPI document: what is not there cannot stand here, and a program that reads the one knows the other.

import { pageFile } from '../pages/files.ts';
import { type Html, html, htmlPage } from '../pages/html.ts';

/** What of the document is shown. */
export type Document = {
  readonly info: { readonly version: string; readonly summary: string; readonly description: string };
  readonly servers: readonly { readonly url: string }[];
  readonly tags: readonly { readonly name: string; readonly description: string }[];
  readonly paths: Readonly<Record<string, { readonly get?: Operation; readonly post?: Operation }>>;
  readonly components: { readonly schemas: Readonly<Record<string, Schema>> };
};
type Operation = {
  readonly operationId: string;
  readonly tags: readonly string[];
  readonly summary: string;
  readonly description?: string;
  readonly parameters?: readonly { readonly name: string; readonly description: string; readonly schema: Schema }[];
  readonly requestBody?: { readonly content: Content };
  readonly responses: Readonly<Record<string, { readonly content?: Content }>>;
};
type Content = Readonly<
  Record<
    string,
    {
      readonly schema: Schema;
      readonly example?: unknown;
      readonly examples?: Readonly<Record<string, { readonly value: { readonly message: string } }>>;
    }
  >
>;
type Schema = {
  readonly $ref?: string;
  readonly type?: string | readonly string[];
  readonly description?: string;
  readonly enum?: readonly unknown[];
  readonly const?: unknown;
  readonly anyOf?: readonly Schema[];
  readonly items?: Schema;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly contentSchema?: Schema;
};
type Shown = { readonly path: string; readonly method: 'GET' | 'POST'; readonly operation: Operation };

/** What the page loads. */
export const STYLE = pageFile('docs', 'docs', 'css');

const JSON_TYPE = 'application/json';
/** Longer values of enumerations are in the document. */
const MOST_WORDS = 14;

/** The page. Its addresses are relative, so that a proxy may put it anywhere. */
export function reference(document: Document): string {
  const { info, tags } = document;
  const all = Object.entries(document.paths).flatMap(([path, { get, post }]): Shown[] => [
    ...(post === undefined ? [] : [{ path, method: 'POST' as const, operation: post }]),
    ...(get === undefined ? [] : [{ path, method: 'GET' as const, operation: get }]),
  ]);
  const subjects = tags.map((tag) => ({ ...tag, shown: all.filter(({ operation }) => operation.tags.includes(tag.name)) }));
  const body = html`<body>
<nav aria-label="Operations">
<p class="name">Bursar API</p>
${subjects.map(
  ({ name, shown }) => html`<p>${name}</p>
<ul>${shown.map(({ path }) => html`<li><a href="#${anchor(path)}">${path}</a></li>`)}</ul>`,
)}
</nav>
<main>
<h1>Bursar API reference</h1>
<p>${info.summary}, version ${info.version}. For programs: <a href="openapi.json">openapi.json</a> (OpenAPI 3.1).</p>
${prose(info.description)}
${subjects.map(
  ({ name, description, shown }) => html`<section>
<h2>${name}</h2>
${prose(description)}
${shown.map((one) => described(document, one))}
</section>`,
)}
</main>
</body>`;
  return htmlPage({ title: 'Bursar API reference', style: `docs/${STYLE.name}` }, body);
}

const anchor = (path: string): string => path.slice(1).replaceAll('/', '-');

function described(document: Document, { path, method, operation }: Shown): Html {
  const { summary, description, parameters = [], requestBody, responses } = operation;
  const asked = requestBody?.content[JSON_TYPE];
  const [type, done] = Object.entries(responses['200']?.content ?? {})[0] ?? [];
  const body = asked === undefined ? null : fieldsOf(document, asked.schema);
  const answer = done === undefined ? null : fieldsOf(document, done.schema.contentSchema ?? done.schema);
  const refused = Object.entries(responses).filter(([status]) => status !== '200');
  return html`<article id="${anchor(path)}">
<h3><span class="method">${method}</span> ${path}</h3>
<p class="summary">${summary}</p>
${description !== undefined && prose(description)}
${parameters.map((one) => html`<p>Header <code>${one.name}</code>: ${words(one.description)}</p>`)}
${
  body !== null &&
  body.length > 0 &&
  table(
    'Fields',
    ['Field', 'Type', 'Required', 'About'],
    body.map((one) => [html`<code>${one.name}</code>`, one.type, one.isRequired ? 'yes' : '', one.about]),
  )
}
<h4>Example</h4>
<pre><code>${curl(document, { path, method, operation })}</code></pre>
${done !== undefined && html`<pre><code>${type === JSON_TYPE ? pretty(done.example) : String(done.example)}</code></pre>`}
${
  answer !== null &&
  answer.length > 0 &&
  table(
    'Answer',
    ['Field', 'Type', 'About'],
    answer.map((one) => [html`<code>${one.name}</code>`, one.type, one.about]),
  )
}
${table(
  'Refusals',
  ['HTTP', 'error', 'message'],
  refused.flatMap(([status, { content }]) => refusalsOf(status, content)),
)}
</article>`;
}

function refusalsOf(status: string, content: Content | undefined): Cell[][] {
  const examples = Object.entries(content?.[JSON_TYPE]?.examples ?? {});
  return examples.map(([code, { value }]) => [status, html`<code>${code}</code>`, value.message]);
}

type Cell = Html | string;
function table(title: string, heads: readonly string[], rows: readonly (readonly Cell[])[]): Html | null {
  if (rows.length === 0) return null;
  return html`<details${title === 'Fields' && html` open`}><summary>${title}</summary>
<div class="wide" tabindex="0"><table><thead><tr>${heads.map((head) => html`<th scope="col">${head}</th>`)}</tr></thead>
<tbody>${rows.map((row) => html`<tr>${row.map((cell) => html`<td>${cell}</td>`)}</tr>`)}</tbody></table></div></details>`;
}

function curl({ servers }: Document, { path, method, operation }: Shown): string {
  const url = `${servers[0]?.url ?? ''}${path}`;
  if (method === 'GET') return `curl -s ${url}`;
  const example = operation.requestBody?.content[JSON_TYPE]?.example ?? {};
  // in single quotes a shell changes nothing but the quote itself
  const text = JSON.stringify(example).replaceAll("'", `'\\''`);
  return `curl -s ${url} \\\n  -H 'content-type: ${JSON_TYPE}' \\\n  -d '${text}'`;
}

/** Long values, such as pictures, are cut. */
function pretty(example: unknown): string {
  const cut = (_name: string, value: unknown) =>
    typeof value === 'string' && value.length > 80 ? `${value.slice(0, 60)}…` : value;
  return JSON.stringify(example, cut, 2);
}

type FieldRow = { readonly name: string; readonly type: string; readonly isRequired: boolean; readonly about: Html };

/** The fields of an object, those of objects in it after them with their whole name. */
function fieldsOf(document: Document, schema: Schema, prefix = ''): FieldRow[] {
  const { properties = {}, required = [] } = resolved(document, schema);
  return Object.entries(properties).flatMap(([name, of]) => {
    const whole = resolved(document, of);
    const options = whole.anyOf
      ?.map((one) => resolved(document, one))
      .find((one) => one.properties !== undefined || one.items !== undefined);
    const inner = options ?? whole;
    const listed = inner.items === undefined ? null : resolved(document, inner.items);
    const row = {
      name: prefix + name,
      type: typeOf(document, of),
      isRequired: required.includes(name),
      about: words(of.description ?? whole.description ?? ''),
    };
    if (listed?.properties !== undefined) return [row, ...fieldsOf(document, listed, `${prefix}${name}[].`)];
    return inner.properties === undefined ? [row] : [row, ...fieldsOf(document, inner, `${prefix}${name}.`)];
  });
}

function resolved(document: Document, schema: Schema): Schema {
  const name = schema.$ref?.split('/').at(-1);
  return name === undefined ? schema : (document.components.schemas[name] ?? {});
}

function typeOf(document: Document, schema: Schema): string {
  const { type, enum: listed, const: only, anyOf, items } = resolved(document, schema);
  if (only !== undefined) return JSON.stringify(only);
  if (listed !== undefined && listed.length <= MOST_WORDS) return listed.join(', ');
  if (anyOf !== undefined) return anyOf.map((one) => typeOf(document, one)).join(' or ');
  if (items !== undefined) return `list of ${typeOf(document, items)}`;
  return typeof type === 'string' ? type : (type ?? ['any']).join(' or ');
}

/** Paragraphs, with what is between backticks as code. */
const prose = (text: string): Html => html`${text.split('\n\n').map((one) => html`<p>${words(one)}</p>`)}`;
const words = (text: string): Html =>
  html`${text.split('`').map((one, index) => (index % 2 === 0 ? one : html`<code>${one}</code>`))}`;
