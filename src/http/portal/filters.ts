// By what lists are filtered: the address of a page says it, and nothing else remembers it.
import { type Form, typed } from '../pages/forms.ts';
import { type Html, html } from '../pages/html.ts';
import { input } from '../pages/parts.ts';

const DAY_MS = 86_400_000;
const DAY = 'YYYY-MM-DD';
const DAYS = ['from', 'to'] as const;

/** What stands in the address, as it does. @param names of the filters besides the days */
export const shownIn = (query: Form, names: readonly string[]): Readonly<Record<string, string | undefined>> =>
  Object.fromEntries([...names, ...DAYS].map((name) => [name, typed(query, name)]));

/** The same in the fields of an operation, which refuses what is no day. */
export function filterOf(query: Form, names: readonly string[]): Readonly<Record<string, string | undefined>> {
  const { from, to, ...others } = shownIn(query, names);
  return { ...others, created_gte: from && startOf(from, 0), created_lt: to && startOf(to, DAY_MS) };
}

/** The start of a day in UTC, or of one so much later; what is no day stays as it is. */
function startOf(day: string, laterMs: number): string {
  const at = new Date(`${day}T00:00:00.000Z`);
  const isDay = day.length === DAY.length && !Number.isNaN(at.getTime()) && at.toISOString().startsWith(`${day}T`);
  return isDay ? new Date(at.getTime() + laterMs).toISOString() : day;
}

/** The fields for them. */
export const days = (
  query: Form,
): Html => html`${input({ name: 'from', label: 'From (UTC)', type: 'date', value: query.get('from') }, null)}
${input({ name: 'to', label: 'Through (UTC)', type: 'date', value: query.get('to') }, null)}`;
