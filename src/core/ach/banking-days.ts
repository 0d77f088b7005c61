// Banking days of the Federal Reserve and the times of an ACH file, in Eastern Time. Dates are written yyyy-mm-dd.

const DAY_MS = 86_400_000;
const HOUR_MS = 3_600_000;
/** Files are handed over when a banking day's business ends: 17:00 Eastern Time. */
const CUT_OFF_HOUR = 17;
/** A bank returns an entry until the end of the second banking day after its settlement. */
const RETURN_DAYS = 2;

let eastern: Intl.DateTimeFormat | undefined;
/** Made when it is first needed: it takes as long as loading a whole library, in every process. */
function easternFormat(): Intl.DateTimeFormat {
  eastern ??= new Intl.DateTimeFormat('en-CA', {
    timeZone: 'America/New_York',
    hourCycle: 'h23',
    year: 'numeric',
    month: '2-digit',
    day: '2-digit',
    hour: '2-digit',
    minute: '2-digit',
  });
  return eastern;
}

/** The date in New York, and the time as HHMM. */
export function easternTime(ms: number): { readonly date: string; readonly time: string } {
  const parts = new Map(
    easternFormat()
      .formatToParts(ms)
      .map(({ type, value }) => [type, value]),
  );
  const at = (name: Intl.DateTimeFormatPartTypes): string => parts.get(name) ?? '';
  return { date: `${at('year')}-${at('month')}-${at('day')}`, time: `${at('hour')}${at('minute')}` };
}

const utc = (date: string): number => Date.parse(`${date}T00:00:00Z`);
const dateOf = (utcMs: number): string => new Date(utcMs).toISOString().slice(0, 10);
const following = (date: string, days = 1): string => dateOf(utc(date) + days * DAY_MS);

/** The moment at which it is this hour of a date in New York; New York is 4 or 5 hours behind UTC, and changes at night. */
function easternMoment(date: string, hour: number): number {
  const winter = utc(date) + (hour + 5) * HOUR_MS;
  const summer = winter - HOUR_MS;
  const wanted = `${String(hour).padStart(2, '0')}00`;
  const found = easternTime(summer);
  return found.date === date && found.time === wanted ? summer : winter;
}

/** The nth (1 = first, −1 = last) of a weekday (0 = Sunday) of a month (1 = January). */
function nthWeekday(year: number, month: number, weekday: number, nth: number): string {
  const last = new Date(Date.UTC(year, month, 0)).getUTCDate();
  const days = Array.from({ length: last }, (_, n) => dateOf(Date.UTC(year, month - 1, n + 1)));
  const found = days.filter((date) => new Date(utc(date)).getUTCDay() === weekday);
  return found.at(nth > 0 ? nth - 1 : nth) as string;
}

/** Of a fixed date: the Monday after when it is a Sunday. On a Saturday the banks are open on the Friday before. */
function observed(date: string): string {
  return new Date(utc(date)).getUTCDay() === 0 ? following(date) : date;
}

/** The days of a year on which the Federal Reserve is closed, besides weekends. */
export function federalHolidays(year: number): readonly string[] {
  return [
    observed(`${year}-01-01`), // New Year's Day
    nthWeekday(year, 1, 1, 3), // Martin Luther King Jr.
    nthWeekday(year, 2, 1, 3), // Presidents
    nthWeekday(year, 5, 1, -1), // Memorial Day
    observed(`${year}-06-19`), // Juneteenth
    observed(`${year}-07-04`), // Independence Day
    nthWeekday(year, 9, 1, 1), // Labor Day
    nthWeekday(year, 10, 1, 2), // Columbus
    observed(`${year}-11-11`), // Veterans
    nthWeekday(year, 11, 4, 4), // Thanksgiving
    observed(`${year}-12-25`), // Christmas
  ];
}

/** Whether the Federal Reserve settles ACH on a date (`yyyy-mm-dd`, Eastern time): no weekend and none of its holidays. */
export function isBankingDay(date: string): boolean {
  const weekday = new Date(utc(date)).getUTCDay();
  return weekday !== 0 && weekday !== 6 && !federalHolidays(Number(date.slice(0, 4))).includes(date);
}

function nextBankingDay(date: string): string {
  let next = following(date);
  while (!isBankingDay(next)) next = following(next);
  return next;
}

/** The last time until now at which a banking day's business ended. */
export function lastCutOff(nowMs: number): number {
  let { date } = easternTime(nowMs);
  while (!isBankingDay(date) || easternMoment(date, CUT_OFF_HOUR) > nowMs) date = following(date, -1);
  return easternMoment(date, CUT_OFF_HOUR);
}

/** When what is handed over on a date settles: the next banking day. */
export function settlementDate(handedOver: string): string {
  return nextBankingDay(handedOver);
}

/** When what settles on a date begins to be at its receiver. */
export function settlementMs(settles: string): number {
  return easternMoment(settles, 0);
}

/** The end of the second banking day after a settlement date. */
export function returnsEndMs(settles: string): number {
  let last = settles;
  for (let n = 0; n < RETURN_DAYS; n++) last = nextBankingDay(last);
  return easternMoment(following(last), 0);
}
