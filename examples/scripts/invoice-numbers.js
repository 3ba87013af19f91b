// Gives orders of the day their invoice number, without gaps: number and order are stored together or not at all.
// `swap` makes a second run that would take the same number repeat itself with the next one.
export default script(async ({ db, kv, now }) => {
  const waiting = await db.orders.find({ state: "shipped", invoice: null }, { order: "shipped", limit: 200 });
  if (waiting.length === 0) return [];
  const { year } = now.toZonedDateTimeISO();
  const key = `invoices/${year}`;
  const last = await kv.get(key);
  await kv.swap(key, last, (last ?? 0) + waiting.length);
  const numbers = waiting.map((_order, at) => `${year}-${String((last ?? 0) + at + 1).padStart(5, "0")}`);
  for (const [at, order] of waiting.entries()) await db.orders.update(order.id, { invoice: numbers[at] });
  return numbers;
});
