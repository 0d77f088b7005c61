// What pages are made of: money, times, tables, facts and fields.
import type { Refused } from './frame.ts';
import { type Html, html } from './html.ts';

/** An amount as the API writes it, and its unit. */
export const money = (amount: string | null, code: string): Html | string =>
  amount === null ? '–' : html`<span class="money">${amount} ${code}</span>`;

/** A time as the API writes it, in UTC to the second. */
export const moment = (iso: string | null): Html | string =>
  iso === null ? '–' : html`<time datetime="${iso}">${iso.slice(0, 10)} ${iso.slice(11, 19)} UTC</time>`;

/** The address of a page with these parameters, without those that are undefined. */
export function withQuery(path: string, parameters: Readonly<Record<string, string | undefined>>): string {
  const given = Object.entries(parameters).filter((pair): pair is [string, string] => pair[1] !== undefined);
  return given.length === 0 ? path : `${path}?${new URLSearchParams(given)}`;
}

export type Cell = Html | string | number | false | null;

/** A table that scrolls by itself where it is too wide. @param empty what is said where there are no rows */
export function table(caption: string, heads: readonly string[], rows: readonly (readonly Cell[])[], empty: Html | string): Html {
  if (rows.length === 0) return html`<p class="note">${empty}</p>`;
  return html`<div class="wide" tabindex="0" role="group" aria-label="${caption}"><table><thead><tr>${heads.map((head) => html`<th scope="col">${head}</th>`)}</tr></thead>
<tbody>${rows.map((row) => html`<tr>${row.map((cell) => html`<td>${cell}</td>`)}</tr>`)}</tbody></table></div>`;
}

/** Names and values; those that are not there are left out. */
export const facts = (rows: readonly (readonly [string, Cell])[]): Html =>
  html`<dl>${rows.map(([name, value]) => value !== null && value !== false && html`<div><dt>${name}</dt><dd>${value}</dd></div>`)}</dl>`;

export type Input = {
  readonly name: string;
  readonly label: string;
  readonly hint?: string;
  /** What stands there before somebody types. */
  readonly value?: string | null;
  /** Values to choose from, each with its words. */
  readonly choices?: readonly (readonly [string, string])[];
  readonly type?: 'text' | 'password' | 'email' | 'date';
  readonly required?: boolean;
};

/** A labelled field; what was refused stands there again, with the reason beside the field at fault. @param prefix of its id, which no other form of the page has */
export function input(field: Input, refused: Refused | null, prefix = 'field'): Html {
  const id = `${prefix}-${field.name}`;
  const { name, label, hint, choices, type = 'text', required = false } = field;
  const isWrong = refused?.refusal.param === name;
  const value = type === 'password' ? '' : (refused?.form.get(name) ?? field.value ?? '');
  const about = [hint === undefined ? '' : `${id}-hint`, isWrong ? `${id}-wrong` : ''].join(' ').trim();
  const described = about !== '' && html` aria-describedby="${about}"`;
  const wrong = isWrong && html` aria-invalid="true"`;
  const must = required && html` required`;
  const ofPassword = name === 'password' ? 'current-password' : 'new-password';
  const autocomplete = type === 'password' ? ofPassword : name === 'username' ? 'username' : 'off';
  return html`<div class="field"><label for="${id}">${label}</label>
${
  choices === undefined
    ? html`<input id="${id}" name="${name}" type="${type}" value="${value}" autocomplete="${autocomplete}"${described}${wrong}${must}>`
    : html`<select id="${id}" name="${name}"${described}${wrong}>${choices.map(([one, words]) => html`<option value="${one}"${one === value && html` selected`}>${words}</option>`)}</select>`
}
${hint !== undefined && html`<p class="note" id="${id}-hint">${hint}</p>`}
${isWrong && html`<p class="wrong" id="${id}-wrong">${refused.refusal.message}</p>`}</div>`;
}
