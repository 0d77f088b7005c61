// The settings: what is taken as paid, and Settings > Payouts, where the money goes by itself.
import { PAYOUT_UNITS } from '../../core/payouts/units.ts';
import { Refusal } from '../../core/refusal.ts';
import { type Form, typed } from '../pages/forms.ts';
import type { Refused } from '../pages/frame.ts';
import { type Html, html } from '../pages/html.ts';
import { facts, type Input, moment } from '../pages/parts.ts';
import { form, lacks, link, PASSWORD } from './parts.ts';
import { DESTINATION_HINT, METHOD_CHOICES, METHODS, SOURCE } from './payouts.ts';
import type { Page, ReplyOf, Visit } from './visit.ts';

const DAY = 'A loosened rule takes effect after 24 hours.';

export const SETTINGS: Page = {
  path: '/settings',
  under: '/settings',
  async show(visit, refused) {
    const { settings } = await visit.ask('getSettings');
    const body = html`<p>${link(visit, '/settings/payouts', 'Automatic payouts')} · ${link(visit, '/settings/users', 'Users')}</p>
<h2>Payments</h2>
${visit.has('payments') ? form(visit, { act: 'payments', button: 'Save', inputs: ofPayments(settings), refused }) : lacks('payments')}
<h2>Rules for payouts</h2>
${from('The destinations', settings.payout_allow_list_from)}
${from('The limit for approval', settings.payout_approval_above_from)}
${visit.has('payouts') ? form(visit, { act: 'rules', button: 'Save', inputs: ofPayouts(settings), refused }) : lacks('payouts')}`;
    return { title: 'Settings', body };
  },
  acts: {
    async payments(visit, sent) {
      await visit.ask('setSettings', {
        tolerance_percent: typed(sent, 'tolerance_percent'),
        late_payments: typed(sent, 'late_payments'),
      });
      return '/settings';
    },
    async rules(visit, sent) {
      await visit.confirm(sent);
      const list = (typed(sent, 'payout_allow_list') ?? '').split(/\s+/).filter((one) => one !== '');
      await visit.ask('setSettings', {
        payout_allow_list: list,
        payout_approval_above: typed(sent, 'payout_approval_above') ?? null,
      });
      return '/settings';
    },
  },
};

const from = (what: string, at: string | undefined): Html | null =>
  at === undefined ? null : html`<p class="note">${what} as shown from ${moment(at)} on.</p>`;

type Settings = ReplyOf<'getSettings'>['settings'];

function ofPayments(settings: Settings): Input[] {
  return [
    {
      name: 'tolerance_percent',
      label: 'How many percent may be missing',
      hint: '0 to 5, and never more than 5 USD. For payments that are asked for from now on.',
      value: settings.tolerance_percent,
    },
    {
      name: 'late_payments',
      label: 'Payments that come too late',
      choices: [
        ['review', 'wait for your decision'],
        ['accept', 'are accepted'],
      ],
      value: settings.late_payments,
    },
  ];
}

function ofPayouts(settings: Settings): Input[] {
  return [
    {
      name: 'payout_allow_list',
      label: 'Money may leave only to',
      hint: `Destinations with spaces between them; none: anywhere. ${DAY}`,
      value: settings.payout_allow_list.join(' '),
    },
    {
      name: 'payout_approval_above',
      label: 'Payouts above this many USD wait for approval',
      hint: `Empty: none does. ${DAY}`,
      value: settings.payout_approval_above,
    },
    PASSWORD,
  ];
}

export const PAYOUT_SETTINGS: Page = {
  path: '/settings/payouts',
  under: '/settings',
  async show(visit, refused) {
    const { settings } = await visit.ask('getPayoutSettings');
    const body = html`<p>When a balance reaches the threshold, what is above the rest goes out by itself.</p>
${condition(settings)}
${visit.has('payouts') ? change(visit, settings, refused) : lacks('payouts')}`;
    return { title: 'Settings > Payouts', body };
  },
  acts: {
    async save(visit, sent) {
      const settings = sentSettings(sent);
      await visit.confirm(sent);
      await visit.ask('setPayoutSettings', settings);
      return '/settings/payouts';
    },
  },
};

type PayoutSettings = ReplyOf<'getPayoutSettings'>['settings'];

function condition(settings: PayoutSettings): Html {
  const { method, enabled, paused, paused_reason: why, destination_usable_at: usableAt } = settings;
  if (method === null) return html`<p class="note">Nothing is set: you request each payout yourself.</p>`;
  return facts([
    ['Now', !enabled ? 'off' : paused ? `paused: ${why}` : 'on'],
    ['Method', METHODS[method].name],
    ['Threshold', settings.threshold !== null && `${settings.threshold} ${PAYOUT_UNITS[method].code}`],
    ['Destination used from', moment(usableAt)],
  ]);
}

function change(visit: Visit, settings: PayoutSettings, refused: Refused | null): Html {
  // one that was named stays until another is
  const source = settings.source_currency;
  const inputs: Input[] = [
    {
      name: 'enabled',
      label: 'Automatic payouts',
      choices: [
        ['true', 'on'],
        ['false', 'off'],
      ],
      value: String(settings.enabled || settings.method === null),
    },
    { name: 'method', label: 'Method', choices: METHOD_CHOICES, value: settings.method ?? 'bitcoin' },
    {
      name: 'destination',
      label: 'Where to',
      hint: `${DESTINATION_HINT} An invoice can be paid once, so it cannot stand here. A new destination is used after 24 hours.`,
      value: settings.destination,
    },
    { name: 'threshold', label: 'Pay out from this balance on', hint: 'In the unit of the method.', value: settings.threshold },
    { name: 'leave', label: 'Leave in the balance', hint: 'In the unit of the method.', value: settings.leave ?? '0' },
    { ...SOURCE, choices: source === null ? SOURCE.choices : SOURCE.choices.slice(1), value: source },
    PASSWORD,
  ];
  return form(visit, { act: 'save', button: settings.paused ? 'Save and go on' : 'Save', inputs, refused });
}

/** @throws Refusal missing_field: for the operation a field that is not sent stays, but who empties one expects that it does not */
function sentSettings(sent: Form) {
  const onOrOff = sent.get('enabled');
  const [destination, threshold, leave] = (['destination', 'threshold', 'leave'] as const).map((name) => {
    const text = typed(sent, name);
    if (text === undefined && onOrOff === 'true')
      throw new Refusal('missing_field', { message: 'This is required. To stop automatic payouts, choose off.', param: name });
    return text;
  });
  return {
    // anything else is the operation's to refuse
    enabled: onOrOff === 'true' || (onOrOff === 'false' ? false : onOrOff),
    method: typed(sent, 'method'),
    destination,
    threshold,
    leave,
    source_currency: typed(sent, 'source_currency'),
    paused: false,
  };
}
