// Days in this computer's time zone, in the API's forms.

/** Current minutes ahead of UTC: one offset for all days, as the server counts with one. */
export const utcOffset = () => -new Date().getTimezoneOffset();

/** The first moment of a day: '2026-11-03', or with the offset unless the clock is UTC: '2026-11-03T00:00+01:00'. */
export const startOf = (day, offset = utcOffset()) => (offset ? `${day}T00:00${written(offset)}` : day);

/** '2026-10-31' -> '2026-11-01' */
export const dayAfter = (day, days = 1) => {
  const date = new Date(`${day}T00:00:00Z`);
  date.setUTCDate(date.getUTCDate() + days);
  return date.toISOString().slice(0, 10);
};

/** Counts by day, newest first -> where each day starts in the listing, and the moment at its end. */
export const daysInOrder = (counts, offset = utcOffset()) => {
  let from = 0;
  return counts.map(({ name, memories }, number) => {
    // The newest day has no end, as a filter may end within it.
    const day = { from, before: number ? startOf(dayAfter(name), offset) : null };
    from += memories;
    return day;
  });
};

const written = (offset) => {
  const minutes = Math.abs(offset);
  const two = (number) => String(number).padStart(2, '0');
  return `${offset < 0 ? '-' : '+'}${two(Math.floor(minutes / 60))}:${two(minutes % 60)}`;
};
